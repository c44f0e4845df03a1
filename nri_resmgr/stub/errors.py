"""Errors between a plugin and its runtime, and errors in a plugin's replies."""

from __future__ import annotations

from dataclasses import dataclass

from nri_proto import Code, NriLevel
from nri_resmgr.values.errors import HostError, InputError, ResmgrError


class SessionError(ResmgrError):
    """The session with the runtime failed; a new one may work."""


@dataclass(eq=False)
class ConnectionLost(SessionError):
    """The runtime closed the connection or broke the protocol."""

    reason: str = "the runtime closed the connection"

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class CallTimedOut(SessionError):
    """The runtime did not answer a call in time; it may still act on it."""

    method: str
    seconds: float

    def __str__(self) -> str:
        return f"the runtime did not answer {self.method} within {self.seconds:g} s"


@dataclass(eq=False)
class ConfigureMissing(SessionError):
    """The runtime registered the plugin and did not configure it."""

    seconds: float

    def __str__(self) -> str:
        return f"the runtime sent no Configure within {self.seconds:g} s"


@dataclass(eq=False)
class CallFailed(SessionError):
    """The peer answered a call with an error."""

    method: str
    code: int
    message: str

    def __str__(self) -> str:
        return f"{self.method}: {self.message or Code(self.code).name}"


@dataclass(eq=False)
class RegistrationRefused(InputError):
    """The runtime does not accept a plugin with this name or index."""

    name: str
    index: str
    message: str

    def __str__(self) -> str:
        return f"the runtime refused plugin {self.index}-{self.name}: {self.message}"


@dataclass(eq=False)
class SocketUnusable(HostError):
    """No runtime listens on the socket, or this process may not connect to it."""

    path: str
    why: str

    def __str__(self) -> str:
        return (
            f"cannot connect to the NRI socket {self.path}: {self.why}; "
            "is NRI enabled in the runtime, and is this process root?"
        )


@dataclass(eq=False)
class RuntimeTooOld(HostError):
    """The runtime knows none of the events that the plugin handles."""

    runtime: str
    level: NriLevel | None
    events: str

    def __str__(self) -> str:
        return (
            f"{self.runtime} speaks {_nri(self.level)}, which knows none of the events "
            f"this plugin handles ({self.events})"
        )


class BadIdentity(InputError):
    """A plugin name, index or inherited descriptor is not valid for NRI."""


class BadHandler(InputError):
    """A handler of the plugin has a mistake, or there is no handler at all."""


class CalledFromHandler(RuntimeError):
    """UpdateContainers was called while a request was being handled.

    The runtime holds its lock until the request is answered: the call could only
    end when both have timed out and the runtime has disconnected the plugin. Return
    the updates in the reply, or use `Stub.schedule_updates`.
    """

    def __str__(self) -> str:
        return (
            "update_containers() inside a handler dead-locks the runtime: return "
            "the updates in the reply, or use schedule_updates()"
        )


@dataclass(eq=False)
class UnsolicitedUpdatesUnsafe(ResmgrError):
    """This runtime can dead-lock on an UpdateContainers call."""

    level: NriLevel | None
    runtime: str = ""

    def __str__(self) -> str:
        return (
            f"{self.runtime or 'a runtime'} with {_nri(self.level)} can dead-lock on "
            "UpdateContainers (fixed in containerd with NRI 0.12.1): use "
            "schedule_updates(), or unsolicited_updates=always"
        )


def _nri(level: NriLevel | None) -> str:
    return "an unknown NRI version" if level is None else f"NRI {level}"


@dataclass(eq=False)
class RequestRejected(Exception):
    """Raise it in a handler to fail the request with this status and message."""

    message: str
    code: Code = Code.UNKNOWN

    def __str__(self) -> str:
        return self.message


class ReplyError(ValueError):
    """A reply is invalid; the plugin's code that built it has a bug.

    It is raised before anything is sent to the runtime.
    """


@dataclass(eq=False)
class DuplicateKey(ReplyError):
    """A field, or a key of one, is set twice in one reply.

    The runtime would refuse the whole request as a conflict of the plugin with itself.
    """

    field: str
    key: str = ""

    def __str__(self) -> str:
        what = f"{self.field} {self.key!r}" if self.key else self.field
        return f"{what} is set twice in one reply"


@dataclass(eq=False)
class InvalidKey(ReplyError):
    """A key is empty, or begins with the "-" that marks a removal."""

    field: str
    key: str

    def __str__(self) -> str:
        if not self.key:
            return f"{self.field} needs a key that is not empty"
        return f'{self.field} key {self.key!r} begins with "-", the mark of removal'


@dataclass(eq=False)
class EmptyText(ReplyError):
    """A field is set to "", which NRI reads as "unchanged"."""

    field: str

    def __str__(self) -> str:
        return f'{self.field} cannot be set to "": NRI reads that as unchanged'


@dataclass(eq=False)
class MissingContainerId(ReplyError):
    """An update or eviction names no container; the runtime would drop it silently."""

    kind: str

    def __str__(self) -> str:
        return f"{self.kind} without a container id"


@dataclass(eq=False)
class SelfUpdate(ReplyError):
    """An update of the container being created, which only an adjustment can change."""

    container_id: str

    def __str__(self) -> str:
        return (
            f"update of {self.container_id!r} while it is being created: "
            "use the adjustment"
        )


@dataclass(eq=False)
class BadField(ReplyError):
    """A value does not fit into its field of the schema."""

    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"
