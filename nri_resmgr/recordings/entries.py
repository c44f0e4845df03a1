"""The header and the entries of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from google.protobuf.message import Message

from nri_resmgr.policy.decision import PinUpdate, Reason
from nri_resmgr.policy.events import Rebalance
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import InputError


@dataclass(eq=False)
class BadRecording(InputError):
    """A file is not a recording, or a line of it is invalid.

    Attributes:
        line: Counted from 1.
    """

    path: str
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}: line {self.line}: {self.why}"


class Header(msgspec.Struct, frozen=True):
    """The first line of a recording.

    Attributes:
        time: UNIX nanoseconds.
        machine: The model of the node.
        dry_run: Whether nothing was adjusted.
        unsolicited_updates: The option of that name.
        has_env: Whether environments and arguments of containers are included.
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
        number: The number of the call.
        method: ``CreateContainer``.
        body: The message; None where it could not be read.
        is_ours: Whether the plugin called the runtime.
    """

    time: int
    number: int
    method: str
    body: Message | None = None
    is_ours: bool = False


class Answered(msgspec.Struct, frozen=True):
    """A reply, or an error in place of one.

    Attributes:
        number: The number of the call.
        body: The message; None for an error.
        code: The ttRPC status of an error; 0 for success.
        why: The sentence of an error.
        is_ours: Whether the plugin answered the runtime.
    """

    time: int
    number: int
    method: str
    body: Message | None = None
    code: int = 0
    why: str = ""
    is_ours: bool = False


class Decided(msgspec.Struct, frozen=True):
    """A decision.

    Attributes:
        event: The class of the event: ``Created``.
        reasons: One per container.
        hints: Topology hints by container.
        updates: Updates of other containers that are in no reply.
    """

    time: int
    event: str
    reasons: tuple[Reason, ...] = ()
    hints: tuple[tuple[str, tuple[Hint, ...]], ...] = ()
    updates: tuple[PinUpdate, ...] = ()


class Rebalancing(msgspec.Struct, frozen=True):
    """The event of a rebalance, before the decision on it."""

    time: int
    event: Rebalance


class RecordedRefusal(msgspec.Struct, frozen=True):
    """A refused request, also one that a dry run would have refused.

    Attributes:
        title: ``namespace/pod/container``, or ``namespace/pod``.
    """

    time: int
    title: str
    why: str


class RecordedCheckpoint(msgspec.Struct, frozen=True):
    """The checkpoint of an earlier process."""

    time: int
    text: str


class Configured(msgspec.Struct, frozen=True):
    """A configuration was put in force."""

    time: int
    text: str


class MachineChanged(msgspec.Struct, frozen=True):
    """CPUs or memory came or went."""

    time: int
    machine: Machine


Entry: TypeAlias = (
    Called
    | Answered
    | Decided
    | Rebalancing
    | RecordedRefusal
    | RecordedCheckpoint
    | Configured
    | MachineChanged
)


class Recording(msgspec.Struct, frozen=True):
    """A recording.

    Attributes:
        entries: The valid entries before the first invalid one.
        cut: The mistake in the first invalid entry; empty if all are valid.
    """

    header: Header
    entries: tuple[Entry, ...]
    cut: str = ""
