"""Which containers somebody means who names them in part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.control.http_request import RequestRefused

_SHOWN: Final = 5  # pods in the sentence that asks for more


class Named(msgspec.Struct, frozen=True):
    """A container that somebody may ask for.

    Attributes:
        namespace: Of the pod.
        pod: The pod's name.
        container: Its name; empty for a refusal of a whole pod.
        id: The runtime's id; empty where it was refused.
        pod_id: The pod sandbox's id, where we know it.
        pod_uid: Kubernetes' id, where we know it.
    """

    namespace: str
    pod: str
    container: str
    id: str = ""
    pod_id: str = ""
    pod_uid: str = ""

    @classmethod
    def of_title(cls, title: str, container_id: str = "") -> Named:
        """Read ``namespace/pod/container`` or ``namespace/pod``."""
        namespace, _, rest = title.partition("/")
        pod, _, container = rest.partition("/")
        return cls(namespace, pod, container, container_id)

    @property
    def pod_title(self) -> str:
        """``namespace/pod``."""
        return f"{self.namespace}/{self.pod}"


Test: TypeAlias = Callable[[Named], bool]


def find(pod: str, container: str, known: Sequence[Named]) -> tuple[Named, ...]:
    """Find who is meant: by whole names, else by ids, else by parts of names.

    Args:
        pod: ``namespace/pod``, or the pod alone; a part of it will do, as will the
            beginning of an id of pod or container.
        container: Its name or a part of it; empty for all of the pod.
        known: Who there is.

    Returns:
        All of one pod; none where nobody fits.

    Raises:
        RequestRefused: More than one pod, or container, fits as well.
    """
    namespace, _, name = pod.rpartition("/")
    found = _first_that_fits(known, _tests_of_pod(namespace, name))
    pods = sorted({one.pod_title for one in found})
    if len(pods) > 1:
        raise RequestRefused(409, _ambiguous(pod, pods))
    if not container:
        return found
    found = _first_that_fits(
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


def _tests_of_pod(namespace: str, name: str) -> tuple[Test, ...]:
    def by_id(one: Named) -> bool:
        ids = (one.id, one.pod_id, one.pod_uid)
        return not namespace and any(each.startswith(name) for each in ids if each)

    return (
        lambda one: one.pod == name and namespace in ("", one.namespace),
        by_id,
        lambda one: name in one.pod and namespace in one.namespace,
    )


def _first_that_fits(
    known: Sequence[Named], tests: Iterable[Test]
) -> tuple[Named, ...]:
    for test in tests:
        if found := tuple(filter(test, known)):
            return found
    return ()


def _ambiguous(asked: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{asked!r} may be any of {shown}{more}; say more of the name"
