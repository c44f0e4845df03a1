"""The runtime as Configure describes it, and the events to subscribe to there."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_proto import NriLevel, events_of, infer_level, nri_pb2
from nri_proto.levels import OLDEST_EVENT_MASK, SAFE_UPDATES
from nri_resmgr.stub.errors import BadHandler, RuntimeTooOld

# NRI's own defaults. The second one holds until Configure brings another.
DEFAULT_REGISTRATION_TIMEOUT: Final = 5.0  # seconds
DEFAULT_REQUEST_TIMEOUT: Final = 2.0  # seconds

_MILLISECONDS: Final = 1000


class RuntimeInfo(msgspec.Struct, frozen=True):
    """Name, version and time limits of a runtime.

    Attributes:
        name: ``containerd`` or ``cri-o`` (containerd 2.0.0 to 2.0.3 say ``v2``).
        version: The runtime's own version, in its own spelling.
        level: Its NRI release, as reported or inferred; None if it is unknown.
        registration_timeout: Seconds that a plugin has to register.
        request_timeout: Seconds within which every request must be answered.
        reports_timeouts: Whether it has reported both; otherwise they are NRI's
            defaults, and its own may differ.
    """

    name: str = ""
    version: str = ""
    level: NriLevel | None = None
    registration_timeout: float = DEFAULT_REGISTRATION_TIMEOUT
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT
    reports_timeouts: bool = False

    @classmethod
    def of(cls, request: nri_pb2.ConfigureRequest) -> RuntimeInfo:
        """Read a Configure request; missing timeouts are NRI's defaults."""
        registration = request.registration_timeout / _MILLISECONDS
        timeout = request.request_timeout / _MILLISECONDS
        return cls(
            name=request.runtime_name,
            version=request.runtime_version,
            level=infer_level(
                request.runtime_name,
                request.runtime_version,
                nri_version=request.NRI_version,
                has_timeouts=request.request_timeout > 0,
            ),
            registration_timeout=registration or DEFAULT_REGISTRATION_TIMEOUT,
            request_timeout=timeout or DEFAULT_REQUEST_TIMEOUT,
            reports_timeouts=timeout > 0,
        )

    @property
    def is_safe_to_call(self) -> bool:
        """True if it cannot dead-lock on UpdateContainers outside a request."""
        # NRI 0.12.1 mended the order of locks in NRI and containerd. CRI-O has locks of
        # its own, whose order is wrong with each NRI (cri-o/cri-o#9835).
        is_fixed = self.level is not None and self.level >= SAFE_UPDATES
        return is_fixed and self.name == "containerd"

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip() or "the runtime"


class Configuration(msgspec.Struct, frozen=True):
    """The argument of the ``configure`` handler.

    Attributes:
        text: The plugin's drop-in file, verbatim; of an external plugin the file that
            ``--config`` names, or empty.
        runtime: The runtime of the session.
        is_dry_run: Whether nothing that handlers return is sent; a plugin that writes
            to the host itself should not do so.
    """

    text: str
    runtime: RuntimeInfo
    is_dry_run: bool = False


def choose_mask(
    handled: int, requested: int | None, runtime: RuntimeInfo, *, may_guess: bool
) -> int:
    """Limit a subscription to the events that the runtime's NRI knows.

    One unknown bit ends the session, and an empty mask subscribes to everything,
    so neither is ever sent.

    Args:
        handled: The events that have a handler.
        requested: What the ``configure`` handler returned; None or 0 is all.
        runtime: Its level decides; None is an unknown one.
        may_guess: Whether to try the whole mask on a runtime of unknown level. The
            runtime hangs up if that was wrong, so the connection must be repeatable.

    Raises:
        BadHandler: *requested* has an event without a handler.
        RuntimeTooOld: The runtime knows none of the events.
    """
    if extra := (requested or 0) & ~handled:
        names = ", ".join(event.method for event in events_of(extra)) or hex(extra)
        raise BadHandler(f"configure() subscribed to {names} without a handler")
    mask = requested or handled
    if runtime.level is not None:
        known = runtime.level.event_mask
    else:
        known = mask if may_guess else OLDEST_EVENT_MASK
    if not mask & known:
        names = ", ".join(event.method for event in events_of(mask))
        raise RuntimeTooOld(str(runtime), runtime.level, names)
    return mask & known
