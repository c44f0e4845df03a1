"""Failures of requests, and losses of plugins, in the test runtime."""

from __future__ import annotations

from dataclasses import dataclass

from nri_proto import Code, NriLevel
from nri_proto.levels import NEWEST
from nri_resmgr.testing.subjects import subject


class RuntimeRefusal(Exception):
    """A request failed; a CRI client would get an error."""


@dataclass(eq=False)
class PluginRefused(RuntimeRefusal):
    """A plugin answered with an error; it stays connected."""

    plugin: str
    method: str
    code: int
    message: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} failed {self.method}: {self.message}"


@dataclass(eq=False)
class FieldConflict(RuntimeRefusal):
    """Two plugins, or one plugin twice, set the same field.

    Attributes:
        plugin: The second one.
        owner: The first one.
        field: Its number.
        key: The key in the field; None for a field with one value.
        level: The NRI release whose words the sentence has.
    """

    plugin: str
    owner: str
    field: int
    key: str | None = None
    level: NriLevel = NEWEST

    def __str__(self) -> str:
        what = subject(self.field, self.level)
        if self.key is not None:
            what += f" {self.key}"
        return f'plugins "{self.plugin}" and "{self.owner}" both tried to set {what}'


@dataclass(eq=False)
class UpdateDuringCreation(RuntimeRefusal):
    """A plugin replied an update of the container being created."""

    plugin: str
    container_id: str

    def __str__(self) -> str:
        return (
            f'plugin "{self.plugin}" asked update of "{self.container_id}" '
            "during creation"
        )


@dataclass(eq=False)
class AdjustmentRejected(RuntimeRefusal):
    """A validator rejected the merged adjustment."""

    validator: str
    reason: str

    def __str__(self) -> str:
        reason = self.reason or "unknown rejection reason"
        return (
            f'validator "{self.validator}" rejected container adjustment, '
            f"reason: {reason}"
        )


@dataclass(eq=False)
class ValidatorLost(RuntimeRefusal):
    """A validator did not answer, which fails the creation."""

    validator: str
    why: str

    def __str__(self) -> str:
        return f'validator "{self.validator}" gave no answer: {self.why}'


@dataclass(eq=False)
class UpdatesFailed(RuntimeRefusal):
    """Updates of containers could not be applied."""

    container_ids: tuple[str, ...]

    def __str__(self) -> str:
        return "NRI update of (some) containers failed"


@dataclass(eq=False)
class StartFailed(RuntimeRefusal):
    """NRI could not start, which also prevents the CRI service from starting."""

    why: str

    def __str__(self) -> str:
        return f"failed to start NRI: {self.why}"


class PluginLost(Exception):
    """The connection to a plugin has ended; the event continues without it."""


@dataclass(eq=False)
class PluginHungUp(PluginLost):
    """End of file, or the runtime had closed the connection."""

    def __str__(self) -> str:
        return "ttrpc: closed"


@dataclass(eq=False)
class PluginLate(PluginLost):
    """No answer within the request timeout."""

    method: str
    timeout: float

    def __str__(self) -> str:
        return f"{self.method} got no answer within {self.timeout:.3f} s"


@dataclass(eq=False)
class RegistrationFailed(Exception):
    """A plugin failed before its first event."""

    plugin: str
    why: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r}: {self.why}"


class IdentityRejected(RegistrationFailed):
    """A name or index is not valid; the runtime leaves the socket open."""


@dataclass(eq=False)
class ErrorReply(Exception):
    """Raised by the runtime's own service to answer with an error status."""

    message: str
    code: int = Code.UNKNOWN

    def __str__(self) -> str:
        return self.message
