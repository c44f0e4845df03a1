"""What a recording is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from google.protobuf.message import Message

from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import InputError


@dataclass(eq=False)
class BadRecording(InputError):
    """A file is no recording, or a line of it is none of ours.

    Attributes:
        line: Counted from 1.
    """

    path: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}: line {self.line}: {self.why}"


class Header(msgspec.Struct, frozen=True):
    """How a recording began.

    Attributes:
        version: Of nri-resmgr.
        time: UNIX nanoseconds.
        machine: The node.
        dry_run: Whether nothing was adjusted.
        unsolicited_updates: As the option of that name.
        has_env: Whether environments and arguments of containers are in it.
    """

    version: str
    time: int
    machine: Machine
    dry_run: bool = False
    unsolicited_updates: str = "auto"
    has_env: bool = False


class Called(msgspec.Struct, frozen=True):
    """A request.

    Attributes:
        time: UNIX nanoseconds, as in all entries.
        number: Of the call.
        method: ``CreateContainer``.
        body: The message; None where it could not be read.
        is_ours: Whether we called the runtime.
    """

    time: int
    number: int
    method: str
    body: Message | None = None
    is_ours: bool = False


class Answered(msgspec.Struct, frozen=True):
    """A reply, or an error in place of one.

    Attributes:
        number: Of the call.
        body: The message; None for an error.
        code: The ttRPC status of an error; 0 where there is none.
        why: Its sentence.
        is_ours: Whether we answered the runtime.
    """

    time: int
    number: int
    method: str
    body: Message | None = None
    code: int = 0
    why: str = ""
    is_ours: bool = False


class Decided(msgspec.Struct, frozen=True):
    """What an event led to.

    Attributes:
        event: Its class: ``Created``.
        reasons: One per container that it is about.
        hints: By container, where the things sit that it uses.
        updates: For other containers, where no reply tells of them.
    """

    time: int
    event: str
    reasons: tuple[Reason, ...] = ()
    hints: tuple[tuple[str, tuple[Hint, ...]], ...] = ()
    updates: tuple[PinUpdate, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """A request was refused, or would have been, had it not been a dry run.

    Attributes:
        title: ``namespace/pod/container``, or ``namespace/pod``.
        why: The sentence.
    """

    time: int
    title: str
    why: str


class Remembered(msgspec.Struct, frozen=True):
    """What an earlier process had written down of its state.

    Attributes:
        text: The checkpoint.
    """

    time: int
    text: str


class Configured(msgspec.Struct, frozen=True):
    """A configuration came into force."""

    time: int
    text: str


class MachineChanged(msgspec.Struct, frozen=True):
    """CPUs or memory came or went."""

    time: int
    machine: Machine


Entry: TypeAlias = (
    Called | Answered | Decided | Refused | Remembered | Configured | MachineChanged
)
