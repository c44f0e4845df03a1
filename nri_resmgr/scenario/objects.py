"""Kubernetes objects of manifests, each with the pods that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from nri_resmgr.config import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.scenario.kinds import (
    TemplatePlace,
    group_of,
    has_containers,
    is_by_shape,
    is_of_kubernetes,
    is_without_pods,
    place_of,
)
from nri_resmgr.scenario.pod_names import OwnedPods
from nri_resmgr.scenario.pods import MOST_REPLICAS, amounts_of_pod, run_of
from nri_resmgr.scenario.rows import ContainerRow, read_texts
from nri_resmgr.scenario.steps import ByShape, LeftOut, RunPods, Skipped
from nri_resmgr.scenario.templates import FoundTemplate, templates_in

Found: TypeAlias = OwnedPods | LeftOut | Skipped

LIST: Final = "List"
POD: Final = "Pod"

_NO_PODS: Final = "no pods come of them"
_ENDED: Final = "they have ended"
_ENDS: Final = ("Succeeded", "Failed")
_KUSTOMIZE: Final = "kustomize.config.k8s.io"
_FIRST_KUSTOMIZE: Final = "what it builds is not read; give `kubectl kustomize` to -"


def objects_in(
    part: object, path: str, api: str = "", kind: str = ""
) -> Iterator[Found]:
    """Yield what is found in an object; *api* and *kind* are those of its list.

    Raises:
        BadSetting: The first mistake in an object whose kind is known.
    """
    top = _open(part, path)
    if not api and "apiVersion" not in top.rows and "kind" not in top.rows:
        yield LeftOut("", "", _title(top), "it has no apiVersion and kind")
        return
    api, kind = top.text("apiVersion", api), top.text("kind", kind)
    if kind.endswith(LIST) and "items" in top.rows:
        # The items of a PodList, unlike those of a List, may lack their kind.
        of_items = kind.removesuffix(LIST)
        for number, item in enumerate(_list(top, "items")):
            at = f"{top.at('items')}[{number}]"
            yield from objects_in(item, at, api, of_items)
    elif place := place_of(group_of(api), kind):
        yield _pods_at(place, top, api, kind)
    else:
        yield from _of_other_kind(top, api, kind)


def _pods_at(place: TemplatePlace, top: Table, api: str, kind: str) -> Found:
    holder = top
    for key in place.holder:
        holder = holder.open_table(key)
    if place.reference and place.reference in holder.rows:
        why = f"its {place.reference} names another object"
        return LeftOut(api, kind, _title(top), why)
    if kind == POD and top.open_table("status").rows.get("phase") in _ENDS:
        return Skipped(kind, 1, _ENDED)
    pod = holder.open_table(place.template) if place.template else holder
    key = place.replicas
    replicas = holder.number(key, 0, MOST_REPLICAS, 1) if key else 1
    return _owned(top, kind, FoundTemplate(pod, "", replicas))


def _of_other_kind(top: Table, api: str, kind: str) -> Iterator[Found]:
    group = group_of(api)
    if is_without_pods(group, kind):
        yield Skipped(kind, 1, _NO_PODS)
        return
    if is_by_shape(group):
        try:
            found = _by_shape(top, api, kind)
        except BadSetting as mistake:  # the shape may have another meaning there
            yield LeftOut(api, kind, _title(top), f"its pods cannot be read: {mistake}")
            return
        if found:
            yield from found
            return
    yield _without_template(top, api, kind)


def _by_shape(top: Table, api: str, kind: str) -> tuple[OwnedPods, ...]:
    templates = templates_in(top)
    if not templates:
        return ()
    about = ByShape(api, kind, _title(top), {one.part: one.pods for one in templates})
    first, *others = (_owned(top, kind, one) for one in templates)
    return (replace(first, shape=about), *others)


def _without_template(top: Table, api: str, kind: str) -> Found:
    group = group_of(api)
    if group == _KUSTOMIZE:
        why = _FIRST_KUSTOMIZE
    elif has_containers(top.rows):
        missing = "no pod template" if is_by_shape(group) else "its kind is not read"
        why = f"it has containers, but {missing}"
    elif is_of_kubernetes(group):
        return Skipped(kind, 1, _NO_PODS)
    else:
        why = "its kind is unknown"
    return LeftOut(api, kind, _title(top), why)


def _title(top: Table) -> str:
    metadata = top.open_table("metadata")
    name = metadata.text("name", "") or metadata.text("generateName", "")
    return "/".join(filter(None, (metadata.text("namespace", ""), name)))


def _owned(top: Table, kind: str, found: FoundTemplate) -> OwnedPods:
    metadata = top.open_table("metadata")
    name, prefix = metadata.text("name", ""), metadata.text("generateName", "")
    name = name or prefix or metadata.name("name")
    of_part = f"{name.rstrip('-')}-{found.part}" if found.part else name
    return OwnedPods(
        kind,
        name,
        _run(found, metadata, of_part),
        is_generated=not metadata.text("name", ""),
        owners=tuple(_owners(metadata)),
        node=_node_of(top) if kind == POD else "",
        since=_since(top) if kind == POD else "",
    )


def _node_of(pod: Table) -> str:
    return str(pod.open_table("spec").rows.get("nodeName") or "")


def _since(pod: Table) -> str:
    started = pod.open_table("status").rows.get("startTime")
    created = pod.open_table("metadata").rows.get("creationTimestamp")
    # Without quotes it is no text in YAML.
    return str(started or created or "")


def _owners(metadata: Table) -> Iterator[tuple[str, str]]:
    for number, one in enumerate(_list(metadata, "ownerReferences")):
        owner = _open(one, f"{metadata.at('ownerReferences')}[{number}]")
        yield owner.text("kind"), owner.text("name")


def _run(found: FoundTemplate, owner: Table, name: str) -> RunPods:
    pod = found.template
    metadata = pod.open_table("metadata")
    namespace = owner.text("namespace", "") or metadata.text("namespace", "")
    about = ContainerRow(
        namespace=namespace or None,
        pod_labels=read_texts(metadata, "labels"),
        annotations=read_texts(metadata, "annotations"),
    )
    spec = pod.open_table("spec")
    containers = (_containers(spec, "initContainers"), _containers(spec, "containers"))
    return run_of(name, about, containers, found.pods, amounts_of_pod(spec))


def _containers(spec: Table, key: str) -> tuple[Table, ...]:
    rows = _list(spec, key)
    return tuple(_open(one, f"{spec.at(key)}[{n}]") for n, one in enumerate(rows))


def _open(part: object, path: str) -> Table:
    keys = part if isinstance(part, Mapping) else ()
    return Table.read(part, *keys, path=path)


def _list(table: Table, key: str) -> list[object]:
    found = table.rows.get(key, [])
    if not isinstance(found, list):
        raise BadSetting(table.at(key), "expected a list")
    return found
