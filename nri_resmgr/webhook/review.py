"""Reviews of admission: the request of an API server in, the answer out; no I/O."""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import msgspec

from nri_resmgr.app.requests.declared_requests import LONGEST_REQUESTS
from nri_resmgr.values import InputError
from nri_resmgr.values.printable import printable
from nri_resmgr.values.shorten import shortened
from nri_resmgr.webhook.pods import MIRROR, Form, Pod, annotation_of

API_VERSION: Final = "admission.k8s.io/v1"
_KIND: Final = "AdmissionReview"

# A pod whose annotations are larger is refused by the API server, keys included: not
# for an annotation of ours.
_MOST_ANNOTATIONS: Final = 256 << 10  # bytes

_LONGEST_WARNING: Final = 200  # characters; the API server cuts them at 256
_LONGEST_REFUSAL: Final = 2000
_LONGEST_WHY: Final = 300

T = TypeVar("T")


class Result(enum.StrEnum):
    """What became of a review."""

    ANNOTATED = "annotated"
    CURRENT = "current"
    """The annotation is what it has to be."""
    NOT_CONCERNED = "not-concerned"
    """No pod, or one without a need for it."""
    UNREADABLE = "unreadable"
    TOO_LARGE = "too-large"
    VALID = "valid"
    WARNED = "warned"
    REFUSED = "refused"


class Answer(msgspec.Struct, frozen=True):
    """An answer to a review.

    Attributes:
        result: For the metrics.
        patch: A JSON patch; none for no change.
        warnings: Sentences that the user sees.
        refusal: Why the object is refused; empty where it is allowed.
    """

    result: Result
    patch: Sequence[Mapping[str, object]] = ()
    warnings: Sequence[str] = ()
    refusal: str = ""


@dataclass(eq=False)
class NoReview(InputError):
    """The body of a request is no review."""

    why: str

    def __str__(self) -> str:
        return f"expected an {_KIND} of {API_VERSION}: {self.why}"


class GroupResource(msgspec.Struct, frozen=True):
    """The resource of an object, such as ``pods``."""

    resource: str
    group: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of a request.

    Attributes:
        object: As it will be; JSON.
        old_object: As it is; likewise.
    """

    uid: str
    operation: str
    resource: GroupResource
    sub_resource: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: Request | None = None


_REVIEWS: Final = msgspec.json.Decoder(_Review)
_PODS: Final = msgspec.json.Decoder(Pod)

Judge: TypeAlias = Callable[[Request], Answer]
"""Judges a request."""


def answer_review(body: bytes, judge: Judge) -> tuple[Result, bytes]:
    """Answer a review: return what became of it, and the body of the answer.

    Raises:
        NoReview: The body is something else.
    """
    review = read_json(_REVIEWS, body)
    if isinstance(review, str):
        raise NoReview(review)
    if (review.api_version, review.kind) != (API_VERSION, _KIND):
        found = f"{review.kind} of {review.api_version}"
        raise NoReview(f"found {shortened(found, _LONGEST_WHY)}")
    if review.request is None:
        raise NoReview("request is missing")
    answer = judge(review.request)
    return answer.result, _encoded(review.request.uid, answer)


def mutate(request: Request, form: Form) -> Answer:
    """Annotate a pod that is created or changed; whatever else it is, it is allowed."""
    if not _is_changed_pod(request):
        return Answer(Result.NOT_CONCERNED)
    pod = read_json(_PODS, request.object)
    if isinstance(pod, str):
        return Answer(Result.UNREADABLE, warnings=(f"{_without(form)}: {pod}",))
    texts = pod.metadata.texts
    if MIRROR in texts or pod.metadata.deletion_timestamp is not None:
        return Answer(Result.NOT_CONCERNED)
    text = annotation_of(pod.spec, form)
    if texts.get(form.value) == text:
        return Answer(Result.CURRENT)
    if why := _too_large(texts, form.value, text):
        # What the author wrote there is not what the pod asks for.
        patch = (_removal(form.value),) if form.value in texts else ()
        return Answer(Result.TOO_LARGE, patch, (f"{_without(form)}: {why}",))
    return Answer(Result.ANNOTATED, tuple(_addition(pod, form.value, text)))


def read_json(
    decoder: msgspec.json.Decoder[T], content: bytes | msgspec.Raw
) -> T | str:
    """Decode JSON; return why that fails."""
    try:
        return decoder.decode(content)
    # Nested deeper than the interpreter's limit, or not UTF-8.
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        return shortened(str(error), _LONGEST_WHY)


def _is_changed_pod(request: Request) -> bool:
    found = (request.resource.group, request.resource.resource, request.sub_resource)
    return found == ("", "pods", "") and request.operation in ("CREATE", "UPDATE")


def _without(form: Form) -> str:
    return f"no annotation {form.value}"


def _too_large(texts: Mapping[str, str], key: str, text: str) -> str:
    """Return why the annotation cannot be written; empty if it can."""
    if len(text) > LONGEST_REQUESTS:
        return (
            f"it would have {len(text)} characters, at most {LONGEST_REQUESTS} are read"
        )
    all_of_them = {**texts, key: text}
    size = sum(_size(name) + _size(value) for name, value in all_of_them.items())
    if size > _MOST_ANNOTATIONS:
        return f"all annotations would have {size} bytes, more than a pod may have"
    return ""


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _addition(pod: Pod, key: str, text: str) -> list[dict[str, object]]:
    # To an object without annotations none can be added.
    missing = pod.metadata.annotations is None
    first: dict[str, object] = {
        "op": "add",
        "path": "/metadata/annotations",
        "value": {},
    }
    return [
        *([first] if missing else []),
        {"op": "add", "path": _path(key), "value": text},
    ]


def _removal(key: str) -> dict[str, object]:
    return {"op": "remove", "path": _path(key)}


def _path(key: str) -> str:
    return f"/metadata/annotations/{key.replace('~', '~0').replace('/', '~1')}"


def _encoded(uid: str, answer: Answer) -> bytes:
    response: dict[str, object] = {"uid": uid, "allowed": not answer.refusal}
    if answer.patch:
        patch = msgspec.json.encode(answer.patch)
        response |= {
            "patch": base64.b64encode(patch).decode(),
            "patchType": "JSONPatch",
        }
    if answer.warnings:
        warnings = [_shown(one, _LONGEST_WARNING) for one in answer.warnings]
        response["warnings"] = warnings
    if answer.refusal:
        response["status"] = {
            "code": 403,
            "message": _shown(answer.refusal, _LONGEST_REFUSAL),
            "reason": "Forbidden",
        }
    return msgspec.json.encode(
        {"apiVersion": API_VERSION, "kind": _KIND, "response": response}
    )


def _shown(text: str, most: int) -> str:
    # An escape is longer than its character.
    return shortened(printable(text), most)
