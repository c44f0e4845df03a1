"""What a recording is made of."""

from __future__ import annotations

from typing import TypeAlias

from google.protobuf.message import Message

from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import InputError
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen
from nri_resmgr.values.error_fields import with_fields


@with_fields
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


@frozen
class Header(ByContent):
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


@frozen
class Called(ByContent):
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


@frozen
class Answered(ByContent):
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


@frozen
class Decided(ByContent):
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


@frozen
class Refused(ByContent):
    """A request was refused, or would have been, had it not been a dry run.

    Attributes:
        title: ``namespace/pod/container``, or ``namespace/pod``.
        why: The sentence.
    """

    time: int
    title: str
    why: str


@frozen
class Remembered(ByContent):
    """What an earlier process had written down of its state.

    Attributes:
        text: The checkpoint.
    """

    time: int
    text: str


@frozen
class Configured(ByContent):
    """A configuration came into force."""

    time: int
    text: str


@frozen
class MachineChanged(ByContent):
    """CPUs or memory came or went."""

    time: int
    machine: Machine


Entry: TypeAlias = (
    Called | Answered | Decided | Refused | Remembered | Configured | MachineChanged
)
