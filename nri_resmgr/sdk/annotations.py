"""Annotations of pods, as a plugin reads them for one container."""

from __future__ import annotations

from typing import Final, TypeVar

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.log import Logger
from nri_resmgr.sdk.conversion import convert
from nri_resmgr.stub.model import Container, Pod
from nri_resmgr.values.annotations import (
    CONTAINER_SCOPE,
    POD_SCOPE,
    Annotation,
    BadAnnotation,
    by_scope,
)
from nri_resmgr.values.errors import InputError
from nri_resmgr.values.shorten import shortened

__all__ = ["Annotation", "BadAnnotation", "annotation_of", "read_annotation"]

log = Logger(__name__)

_T = TypeVar("_T")

_SHOWN: Final = 80  # characters of a value
_NO_CONTAINER: Final = "for no container, expected /pod or /container.NAME at its end"


def annotation_of(
    pod: Pod, container: Container, key: str | tuple[str, ...]
) -> Annotation | None:
    """Return the annotation of a pod that applies to one of its containers.

    That is ``KEY/container.NAME``, else ``KEY/pod``, else ``KEY``. Keys with another
    scope, such as a misspelled one, apply to none; a warning is logged.

    Args:
        pod: Has the annotations.
        container: The container that they are read for.
        key: The key without a scope; or several, of which in the same scope the first
            one counts.
    """
    keys = (key,) if isinstance(key, str) else key
    for one in pod.annotations:
        head, slash, scope = one.rpartition("/")
        if slash and head in keys and not _is_scope(scope):
            log.warning(
                "annotation.ignored",
                pod=f"{pod.namespace}/{pod.name}",
                container=container.name,
                key=one,
                value=shortened(pod.annotations[one], _SHOWN),
                why=_NO_CONTAINER,
            )
    found = by_scope(pod.annotations, keys, container.name)
    return found[0][0] if found else None


def read_annotation(
    pod: Pod, container: Container, key: str | tuple[str, ...], kind: type[_T]
) -> _T | None:
    """Return the value of `annotation_of` as a typed value; None without one.

    Args:
        pod: Has the annotations.
        container: The container that they are read for.
        key: As of `annotation_of`.
        kind: The type of the value, as for a field of `Settings`. For ``str`` it is the
            text as it is; otherwise the text is a YAML document, and an empty one is
            no value, which cancels that of a wider scope.

    Raises:
        BadAnnotation: The value does not fit; as the result of a handler it fails the
            request with a sentence for the author of the pod.
    """
    found = annotation_of(pod, container, key)
    if found is None:
        return None
    try:
        document = _parsed(found.value, kind)
        return None if document is None else convert(document, kind)
    except InputError as error:
        raise BadAnnotation(
            f"{pod.namespace}/{pod.name}",
            container.name,
            found.key,
            found.value,
            str(error),
        ) from None


def _parsed(text: str, kind: type[object]) -> object:
    # Others, such as tuple[str, ...], are no classes.
    if isinstance(kind, type) and issubclass(kind, str):
        return text
    return parse_yaml(text, references=False) if text.strip() else None


def _is_scope(text: str) -> bool:
    return text == POD_SCOPE or (
        len(text) > len(CONTAINER_SCOPE) and text.startswith(CONTAINER_SCOPE)
    )
