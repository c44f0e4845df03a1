"""What can go wrong between a plugin and its runtime, by who can act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nri_proto import Code, NriLevel
from nri_resmgr.values.errors import HostError, InputError, ResmgrError

_NOT_TOLD: Final = "an NRI of unknown level"


class SessionError(ResmgrError):
    """The session with the runtime failed; a new one may work."""


@dataclass(eq=False)
class ConnectionLost(SessionError):
    """The runtime hung up, or stopped making sense."""

    reason: str = "the runtime closed the connection"

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class CallTimedOut(SessionError):
    """The runtime did not answer one of our calls; it may still act on it."""

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
    """The peer answered one of our calls with an error."""

    method: str
    code: int
    message: str

    def __str__(self) -> str:
        return f"{self.method}: {self.message or Code(self.code).name}"


@dataclass(eq=False)
class RegistrationRefused(InputError):
    """The runtime does not take a plugin of this name or index."""

    name: str
    index: str
    message: str

    def __str__(self) -> str:
        return f"the runtime refused plugin {self.index}-{self.name}: {self.message}"


@dataclass(eq=False)
class SocketUnusable(HostError):
    """There is no runtime behind the socket path, or it is not for us."""

    path: str
    why: str

    def __str__(self) -> str:
        return (
            f"cannot connect to the NRI socket {self.path}: {self.why}; "
            "is NRI enabled in the runtime, and is this process root?"
        )


@dataclass(eq=False)
class RuntimeTooOld(HostError):
    """No event that the plugin handles is known to this runtime."""

    runtime: str
    level: NriLevel | None
    events: str

    def __str__(self) -> str:
        nri = _NOT_TOLD if self.level is None else f"NRI {self.level}"
        return (
            f"{self.runtime} speaks {nri}, which knows none of the events "
            f"this plugin handles ({self.events})"
        )


@dataclass(eq=False)
class BadIdentity(InputError):
    """A plugin name, index or inherited descriptor is not what NRI wants."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(eq=False)
class BadHandler(ValueError):
    """The plugin's code offers a handler that NRI does not have, or none."""

    why: str

    def __str__(self) -> str:
        return self.why


class CalledFromHandler(RuntimeError):
    """UpdateContainers was called while a request was being handled.

    The runtime holds its lock until the request is answered: the call could only
    end when both have timed out and the plugin is thrown out. Return the updates
    in the reply, or use `Stub.schedule_updates`.
    """

    def __str__(self) -> str:
        return (
            "update_containers() inside a handler dead-locks the runtime: return "
            "the updates in the reply, or use schedule_updates()"
        )


@dataclass(eq=False)
class UnsolicitedUpdatesUnsafe(ResmgrError):
    """This runtime can dead-lock on updates that nobody asked for."""

    level: NriLevel | None

    def __str__(self) -> str:
        nri = _NOT_TOLD if self.level is None else f"NRI {self.level}"
        return (
            f"the runtime speaks {nri}, which can dead-lock on UpdateContainers "
            "(fixed in 0.12.1): use schedule_updates(), or unsolicited_updates=always"
        )


@dataclass(eq=False)
class RequestRejected(Exception):
    """Raised by a handler: fail the request with this status and sentence."""

    message: str
    code: Code = Code.UNKNOWN

    def __str__(self) -> str:
        return self.message
