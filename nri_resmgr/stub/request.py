"""What a handler can learn of the request it answers, beside its arguments."""

from __future__ import annotations

import contextvars
from typing import Final

import attrs

# The part of a request's time that a handler may use. Past the whole of it the
# runtime throws the plugin out, so the answer must be on its way well before.
SAFE_SHARE: Final = 0.6

_current: contextvars.ContextVar[RequestContext] = contextvars.ContextVar("nri_request")


@attrs.define(eq=False, repr=False)
class RequestContext:
    """The request being handled.

    Attributes:
        method: CamelCase, as the service names it: ``CreateContainer``.
        received: When it came, on the event loop's clock, seconds.
        timeout: Seconds from then until the runtime gives up.
        metadata: Header pairs; a traced runtime sends ``traceparent``.
        safe_answer: What to answer when an asynchronous handler overruns; set it
            early, in the type that the handler returns. None answers empty.
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
        """When the handler must be done, on the event loop's clock."""
        return self.received + self.timeout * SAFE_SHARE

    def remaining(self, now: float) -> float:
        """Seconds that the handler has left; negative when it is late."""
        return self.deadline - now


def current_request() -> RequestContext | None:
    """Return the request that the calling code answers, if it answers one.

    A task that a handler started answers it, too, until the answer is out.
    """
    request = _current.get(None)
    return None if request is None or request.is_over else request


def causing_request() -> RequestContext | None:
    """Return the request whose handler led to the calling code, answered or not."""
    return _current.get(None)


# Marks a request as the one being answered in this context; returns a token.
enter: Final = _current.set

# Undoes it, given the token.
leave: Final = _current.reset
