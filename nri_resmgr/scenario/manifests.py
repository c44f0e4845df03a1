"""Kubernetes manifests as workloads: pods, Deployments and the like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nri_resmgr.config import BadSetting
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.scenario.kinds import (
    KINDS,
    TemplatePlace,
    group_of,
    has_containers,
    is_of_kubernetes,
    is_without_pods,
    place_of,
)
from nri_resmgr.scenario.pod_names import OwnedPods, kept_apart
from nri_resmgr.scenario.pods import MOST_REPLICAS, amounts_of_pod, run_of
from nri_resmgr.scenario.read import read_scenario
from nri_resmgr.scenario.rows import ContainerRow, read_texts
from nri_resmgr.scenario.steps import LeftOut, RunPods, Scenario

_LIST: Final = "List"
_MOST_NAMES: Final = 5


def read_workload(text: str) -> Scenario:
    """Read a scenario, or the pods of Kubernetes manifests.

    Manifests are one or more documents. Kinds without pods, such as Service, are
    ignored, as are fields without effect on placement. Objects of other kinds, of
    which pods may come, are left out.

    Raises:
        BadSyntax: The text is not YAML.
        BadSetting: The first mistake, or no manifest has pods.
    """
    parts = _documents(text)
    if not any(isinstance(part, Mapping) and "apiVersion" in part for part in parts):
        if len(parts) > 1:
            raise BadSetting("$", "a scenario is one document, but there are several")
        document = parts[0] if parts else None
        return read_scenario(document)
    found = [one for n, part in enumerate(parts) for one in _objects(part, f"$[{n}]")]
    steps = tuple(kept_apart(one for one in found if isinstance(one, OwnedPods)))
    left_out = tuple(one for one in found if isinstance(one, LeftOut))
    if not steps:
        raise BadSetting("$", _without_pods(left_out))
    return Scenario(machine="", document="", steps=steps, left_out=left_out)


def _without_pods(left_out: Sequence[LeftOut]) -> str:
    text = f"no manifest has pods; known kinds: {', '.join((*KINDS, _LIST))}"
    if not left_out:
        return text
    names = ", ".join(map(str, left_out[:_MOST_NAMES]))
    more = len(left_out) - _MOST_NAMES
    return f"{text}; left out: {names}" + (f" and {more} more" if more > 0 else "")


def _documents(text: str) -> list[object]:
    parts: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith("---") and line[3:].strip() in ("", "|", ">"):
            parts.append([])
        else:
            parts[-1].append(line)
    # Each is parsed on its own: parse_yaml limits the size of one document.
    documents = (parse_yaml("".join(lines)) for lines in parts)
    return [document for document in documents if document is not None]


def _objects(
    part: object, path: str, api: str = "", kind: str = ""
) -> Iterator[OwnedPods | LeftOut]:
    """Yield the pods of an object; *api* and *kind* are those of the list it is in."""
    top = _open(part, path)
    api, kind = top.text("apiVersion", api), top.text("kind", kind)
    if kind.endswith(_LIST) and "items" in top.rows:
        # The items of a PodList, unlike those of a List, may lack their kind.
        of_items = kind.removesuffix(_LIST)
        for number, item in enumerate(_list(top, "items")):
            at = f"{top.at('items')}[{number}]"
            yield from _objects(item, at, api, of_items)
    elif place := place_of(group_of(api), kind):
        yield _pods_at(place, top, api, kind)
    elif why := _reason(group_of(api), kind, part):
        yield _left_out(top, api, kind, why)


def _pods_at(
    place: TemplatePlace, top: Table, api: str, kind: str
) -> OwnedPods | LeftOut:
    holder = top
    for key in place.holder:
        holder = holder.open_table(key)
    if place.reference and place.reference in holder.rows:
        why = f"its {place.reference} names another object"
        return _left_out(top, api, kind, why)
    pod = holder.open_table(place.template) if place.template else holder
    key = place.replicas
    replicas = holder.number(key, 0, MOST_REPLICAS, 1) if key else 1
    metadata = top.open_table("metadata")
    prefix = "" if metadata.text("name", "") else metadata.text("generateName", "")
    return OwnedPods(kind, _run(pod, top, replicas), is_generated=bool(prefix))


def _reason(group: str, kind: str, part: object) -> str:
    """Return why an object may have pods that are not read; empty if it has none."""
    if is_without_pods(group, kind):
        return ""
    if has_containers(part):
        return "it has containers, but its kind is not read"
    return "" if is_of_kubernetes(group) else "its kind is unknown"


def _left_out(top: Table, api: str, kind: str, why: str) -> LeftOut:
    metadata = top.open_table("metadata")
    name = metadata.text("name", "") or metadata.text("generateName", "")
    parts = (metadata.text("namespace", ""), name)
    return LeftOut(api, kind, "/".join(filter(None, parts)), why)


def _run(pod: Table, owner: Table, replicas: int) -> RunPods:
    metadata, named = pod.open_table("metadata"), owner.open_table("metadata")
    namespace = named.text("namespace", "") or metadata.text("namespace", "")
    about = ContainerRow(
        namespace=namespace or None,
        pod_labels=read_texts(metadata, "labels"),
        annotations=read_texts(metadata, "annotations"),
    )
    spec = pod.open_table("spec")
    containers = (_containers(spec, "initContainers"), _containers(spec, "containers"))
    own = amounts_of_pod(spec)
    name = named.text("name", "") or named.text("generateName", "")
    return run_of(name or named.name("name"), about, containers, replicas, own)


def _containers(spec: Table, key: str) -> tuple[Table, ...]:
    rows = _list(spec, key)
    return tuple(_open(one, f"{spec.at(key)}[{n}]") for n, one in enumerate(rows))


def _open(part: object, path: str) -> Table:
    keys: Iterable[str] = part if isinstance(part, Mapping) else ()
    return Table.read(part, *keys, path=path)


def _list(table: Table, key: str) -> list[object]:
    found = table.rows.get(key, [])
    if not isinstance(found, list):
        raise BadSetting(table.at(key), "expected a list")
    return found
