"""The request that a handler answers, beside its arguments."""

from __future__ import annotations

import contextvars
from typing import Final

import attrs

# The part of a request's time that a handler may use. After all of it the runtime
# disconnects the plugin, so the answer must be on its way well before.
SAFE_SHARE: Final = 0.6

_current: contextvars.ContextVar[RequestContext] = contextvars.ContextVar("nri_request")


@attrs.define(eq=False, repr=False)
class RequestContext:
    """The request being handled.

    Attributes:
        method: CamelCase, as the service names it: ``CreateContainer``.
        received: Time of arrival on the event loop's clock, in seconds.
        timeout: Seconds from then until the runtime stops waiting.
        metadata: Header pairs; a traced runtime sends ``traceparent``.
        safe_answer: The answer to send if an asynchronous handler is late; set it
            early, with the type that the handler returns. None answers empty.
        is_over: Whether it was answered, or will never be.
    """

    method: str
    received: float
    timeout: float
    metadata: tuple[tuple[str, str], ...] = ()
    safe_answer: object = None
    is_over: bool = attrs.field(default=False, init=False)

    @property
    def deadline(self) -> float:
        """Time at which the handler must be done, on the event loop's clock."""
        return self.received + self.timeout * SAFE_SHARE

    def remaining(self, now: float) -> float:
        """Return the seconds that the handler has left; negative if it is late."""
        return self.deadline - now


def current_request() -> RequestContext | None:
    """Return the request that the calling code handles; None if there is none.

    It is also current in tasks that the handler started, until it is answered.
    """
    request = _current.get(None)
    return None if request is None or request.is_over else request


def causing_request() -> RequestContext | None:
    """Return the request whose handler led to the calling code, answered or not."""
    return _current.get(None)


# Makes a request the current one of this context; returns a token for `leave`.
enter: Final = _current.set

# Restores the request that was current before the `enter` that returned the token.
leave: Final = _current.reset
