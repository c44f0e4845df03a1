"""Finds containers by names, parts of names, or the beginning of an id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.control.http_request import RequestRefused

_SHOWN: Final = 5  # names in the message about several matches


class NamedContainer(msgspec.Struct, frozen=True):
    """A container that can be queried.

    Attributes:
        container: Its name; empty for a refusal of a whole pod.
        id: The runtime's id; empty if it was refused.
        pod_id: The pod sandbox's id, if known.
        pod_uid: Kubernetes' id of the pod, if known.
    """

    namespace: str
    pod: str
    container: str
    id: str = ""
    pod_id: str = ""
    pod_uid: str = ""

    @classmethod
    def of_title(cls, title: str, container_id: str = "") -> NamedContainer:
        """Parse ``namespace/pod/container`` or ``namespace/pod``."""
        namespace, _, rest = title.partition("/")
        pod, _, container = rest.partition("/")
        return cls(namespace, pod, container, container_id)

    @property
    def pod_title(self) -> str:
        """``namespace/pod``."""
        return f"{self.namespace}/{self.pod}"


Matcher: TypeAlias = Callable[[NamedContainer], bool]


def find(
    pod: str, container: str, known: Sequence[NamedContainer]
) -> tuple[NamedContainer, ...]:
    """Match containers: by whole names, else by ids, else by parts of names.

    Args:
        pod: ``namespace/pod`` or the pod alone, whole or in part, or the beginning of
            an id of a pod or container.
        container: Its name or a part of it; empty for all of the pod.
        known: The containers to search.

    Returns:
        Containers of one pod; empty for no match.

    Raises:
        RequestRefused: More than one pod, or container, matches.
    """
    namespace, _, name = pod.rpartition("/")
    found = _first_matches(known, _pod_matchers(namespace, name))
    pods = sorted({one.pod_title for one in found})
    if len(pods) > 1:
        raise RequestRefused(409, _ambiguous(pod, pods))
    if not container:
        return found
    found = _first_matches(
        found,
        (
            lambda one: one.container == container,
            lambda one: container in one.container,
        ),
    )
    names = sorted({one.container for one in found})
    if len(names) > 1:
        raise RequestRefused(409, _ambiguous(container, names))
    return found


def _pod_matchers(namespace: str, name: str) -> tuple[Matcher, ...]:
    def by_id(one: NamedContainer) -> bool:
        ids = (one.id, one.pod_id, one.pod_uid)
        return not namespace and any(each.startswith(name) for each in ids if each)

    return (
        lambda one: one.pod == name and namespace in ("", one.namespace),
        by_id,
        lambda one: name in one.pod and namespace in one.namespace,
    )


def _first_matches(
    known: Sequence[NamedContainer], matchers: Iterable[Matcher]
) -> tuple[NamedContainer, ...]:
    for matcher in matchers:
        if found := tuple(filter(matcher, known)):
            return found
    return ()


def _ambiguous(asked: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{asked!r} matches {shown}{more}; give a longer name"
