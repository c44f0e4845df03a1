"""From an HTTP response of an API server to an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.agent.api.errors import (
    ApiError,
    BadAnswer,
    Conflict,
    Forbidden,
    KindMissing,
    ObjectMissing,
    ObjectRejected,
    ServerFailed,
    Unauthorized,
    VersionExpired,
)
from nri_resmgr.agent.api.resources import Ref

OK: Final = 200
CREATED: Final = 201
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MISSING: Final = 404
_CONFLICT: Final = 409
_GONE: Final = 410
_REJECTED: Final = (400, 413, 415, 422)
_BUSY: Final = 429
_TEXT: Final = 300  # characters of what a server says that a sentence takes


class Asked(msgspec.Struct, frozen=True):
    """The subject of a request, as errors name it.

    Attributes:
        verb: As in RBAC rules.
        ref: The object; without a name for all of a namespace.
        server: Address of the API server.
        credentials: By which it was asked, such as "the token of FILE".
    """

    verb: str
    ref: Ref
    server: str
    credentials: str = "the credentials"


class Answer(msgspec.Struct, frozen=True):
    """A whole response.

    Attributes:
        status: Of HTTP.
        body: All of it.
        headers: The ones that count, in lower case.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """``metav1.Status``, which is also the object of a watch's ``ERROR`` event."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


def error_of(answer: Answer, asked: Asked) -> ApiError:
    """Return the error that an answer other than 200 or 201 is."""
    status = _status_of(answer.body)
    retry_after = _seconds(answer.headers.get("retry-after", ""))
    if status is None:
        text = _sentence(answer.body.decode(errors="replace"))
        return _error(Status(answer.status, "", text), asked, retry_after, plain=True)
    return _error(
        msgspec.structs.replace(status, code=answer.status), asked, retry_after
    )


def error_of_event(json: bytes, asked: Asked) -> ApiError:
    """Return the error that an ``ERROR`` event of a watch is."""
    status = _status_of(json)
    if status is None:
        return BadAnswer(asked.server, "an ERROR event without a Status")
    return _error(status, asked, None)


def _error(
    status: Status, asked: Asked, retry_after: float | None, *, plain: bool = False
) -> ApiError:
    why = _sentence(status.message) or status.reason or "without a reason"
    if retry_after is None and status.details is not None:
        retry_after = status.details.retry_after_seconds
    match status.code:
        case code if code == _BUSY or code >= 500:  # noqa: PLR2004 - HTTP's classes
            return ServerFailed(asked.server, code, why, retry_after)
        case code if code in _REJECTED:
            return ObjectRejected(str(asked.ref), code, why)
        case code if code == _UNAUTHORIZED:
            return Unauthorized(asked.server, asked.credentials)
        case code if code == _FORBIDDEN:
            return Forbidden(asked.verb, asked.ref, why)
        case code if code == _MISSING:
            return _missing(status, asked, why, plain=plain)
    return _rarer(status.code, asked, why)


def _rarer(code: int, asked: Asked, why: str) -> ApiError:
    if code == _CONFLICT:
        return Conflict(str(asked.ref), why)
    if code == _GONE:
        return VersionExpired(why)
    return BadAnswer(asked.server, f"status {code}, {why}")


def _missing(status: Status, asked: Asked, why: str, *, plain: bool) -> ApiError:
    # For a kind that is not installed the answer is "404 page not found". A Status
    # without the object's name is about the path as well.
    is_named = status.details is not None and status.details.name
    if plain or not is_named or asked.verb in ("list", "watch"):
        return KindMissing(asked.ref.resource)
    return ObjectMissing(str(asked.ref), why)


def _status_of(json: bytes) -> Status | None:
    try:
        return msgspec.json.decode(json, type=Status)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _seconds(text: str) -> float | None:
    # A date is allowed by HTTP, and not sent by API servers; clocks are not compared.
    return float(text) if text.isascii() and text.isdecimal() else None


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"
