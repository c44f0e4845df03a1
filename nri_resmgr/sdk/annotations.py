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
    narrowest,
)
from nri_resmgr.values.errors import InputError

__all__ = ["Annotation", "BadAnnotation", "annotation_of", "read_annotation"]

log = Logger(__name__)

_T = TypeVar("_T")

_NO_CONTAINER: Final = "for no container, expected /pod or /container.NAME at its end"


def annotation_of(pod: Pod, container: Container, key: str) -> Annotation | None:
    """Return the annotation of a pod that applies to one of its containers.

    That is ``KEY/container.NAME``, else ``KEY/pod``, else ``KEY``. Keys with another
    scope, such as a misspelled one, apply to none; a warning is logged.
    """
    for one in pod.annotations:
        if one.startswith(f"{key}/") and not _is_scope(one.removeprefix(f"{key}/")):
            title = f"{pod.namespace}/{pod.name}"
            log.warning("annotation.ignored", pod=title, key=one, why=_NO_CONTAINER)
    return narrowest(pod.annotations, key, container.name)


def read_annotation(
    pod: Pod, container: Container, key: str, kind: type[_T]
) -> _T | None:
    """Return the value of `annotation_of` as a typed value; None without one.

    Args:
        pod: Has the annotations.
        container: The container that they are read for.
        key: The key without a scope.
        kind: The type of the value, as for a field of `Settings`. For ``str`` it is the
            text as it is; otherwise the text is a YAML document.

    Raises:
        BadAnnotation: The value does not fit; as the result of a handler it fails the
            request with a sentence for the author of the pod.
    """
    found = annotation_of(pod, container, key)
    if found is None:
        return None
    try:
        is_text = issubclass(kind, str)
    except TypeError:  # such as tuple[str, ...]
        is_text = False
    try:
        document = found.value if is_text else parse_yaml(found.value, references=False)
        return convert(document, kind)
    except InputError as error:
        raise BadAnnotation(
            f"{pod.namespace}/{pod.name}",
            container.name,
            found.key,
            found.value,
            str(error),
        ) from None


def _is_scope(text: str) -> bool:
    return text == POD_SCOPE or (
        len(text) > len(CONTAINER_SCOPE) and text.startswith(CONTAINER_SCOPE)
    )
