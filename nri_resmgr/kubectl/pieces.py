"""The files of a support bundle: where each comes from, without secrets.

Of objects of the cluster only the parts that are listed here are kept, and Secrets are
never read. What comes from the daemon has no environment, arguments, annotations or
labels of pods (docs/control.md). All of it passes `redact` even so.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn

from nri_resmgr.kubectl.client import Kubectl
from nri_resmgr.kubectl.daemons import ChosenPod, Daemon
from nri_resmgr.kubectl.documents import documents_in
from nri_resmgr.kubectl.errors import KubectlFailed, PluginError
from nri_resmgr.kubectl.redact import redact_archive, redact_data, redact_text

_GROUPS: Final = ("config.nri", "criresmgr.intel.com")
_REPORT: Final = "noderesourcemanagers.config.nri"

_OF_METADATA: Final = (
    *("name", "namespace", "labels", "generation", "creationTimestamp"),
    "deletionTimestamp",
)
# Not a Node's list of images, which shows what the cluster runs.
_OF_STATUS_OF_NODE: Final = ("capacity", "allocatable", "conditions", "nodeInfo")

# Lines of a log, the newest; 2 MB.
_LINES: Final = "--tail=10000"


@dataclass(frozen=True)
class Piece:
    """A file of the bundle.

    Attributes:
        name: Its path in the bundle.
        contents: Makes it; raises `PluginError` where it cannot be had.
    """

    name: str
    contents: Callable[[], bytes]


def pieces_of_cluster(
    kubectl: Kubectl, namespace: str, daemons: Iterable[Daemon]
) -> Iterator[Piece]:
    """Yield what is not of one node: versions, and the configuration.

    Args:
        kubectl: Asks the cluster.
        namespace: Of the daemons.
        daemons: Those whose ConfigMaps are wanted.
    """
    where = ("--namespace", namespace)
    yield Piece("cluster/version.json", partial(_json, kubectl, "version"))
    yield Piece("cluster/documents.json", partial(_documents, kubectl, *where))
    names = {name for daemon in daemons for name in _config_maps(daemon.spec)}
    for name in sorted(names):
        words = ("configmap", name, *where)
        yield Piece(f"cluster/configmap-{name}.json", partial(_object, kubectl, *words))


def pieces_of_node(kubectl: Kubectl, daemon: Daemon) -> Iterator[Piece]:
    """Yield what a node and its daemon have."""
    status, log = _in(daemon, "status"), _in(daemon, "log")
    state = _in(daemon, "status", "--output=json")
    events = _in(daemon, "events", "--output=json")
    pod = ("pod", daemon.pod, "--namespace", daemon.namespace)
    found: dict[str, Callable[[], bytes]] = {
        "status.txt": partial(_text, kubectl, *status),
        "state.json": partial(_answer, kubectl, *state),
        "events.jsonl": partial(_answer, kubectl, *events),
        "log-levels.txt": partial(_text, kubectl, *log),
        "topology.tgz": partial(_topology, kubectl, daemon),
        "node.json": partial(_node, kubectl, daemon.node),
        "report.json": partial(_object, kubectl, _REPORT, daemon.node),
        "pod.json": partial(_object, kubectl, *pod),
    }
    for container in daemon.spec["containers"]:
        name = container["name"]
        words = ("logs", *pod[1:], f"--container={name}", _LINES)
        found[f"logs/{name}.log"] = partial(_text, kubectl, *words)
        if daemon.restarts.get(name):
            before = partial(_text, kubectl, *words, "--previous")
            found[f"logs/{name}-before.log"] = before
    for name, contents in found.items():
        yield Piece(f"nodes/{daemon.node}/{name}", contents)


def piece_of_error(node: str, error: PluginError) -> Piece:
    """Return what stands in place of a node that cannot be queried."""

    def contents() -> NoReturn:
        raise error

    return Piece(f"nodes/{node}", contents)


def pieces_of_pod(kubectl: Kubectl, daemon: Daemon, pod: ChosenPod) -> Iterator[Piece]:
    """Yield what the daemon knows of the pod that the user has named."""
    words = ("explain", f"{pod.namespace}/{pod.name}")
    folder = f"nodes/{daemon.node}"
    text, data = _in(daemon, *words), _in(daemon, *words, "--output=json")
    yield Piece(f"{folder}/explain.txt", partial(_text, kubectl, *text))
    yield Piece(f"{folder}/explain.json", partial(_answer, kubectl, *data))


def _in(daemon: Daemon, *words: str) -> tuple[str, ...]:
    return daemon.exec_words(*words, *daemon.flags("--control-socket"))


def _text(kubectl: Kubectl, *words: str) -> bytes:
    return redact_text(kubectl.output(*words).decode(errors="replace")).encode()


def _answer(kubectl: Kubectl, *words: str) -> bytes:
    """Return JSON documents, a line each."""
    text = kubectl.output(*words).decode(errors="replace")
    try:
        found = [redact_data(one) for one in documents_in(text)]
    except (ValueError, RecursionError):
        raise KubectlFailed("the answer is not JSON") from None
    return "".join(f"{json.dumps(one)}\n" for one in found).encode()


def _json(kubectl: Kubectl, *words: str) -> bytes:
    return _answer(kubectl, *words, "--output=json")


def _object(kubectl: Kubectl, *words: str) -> bytes:
    return _written(_essential(kubectl.get(*words)))


def _node(kubectl: Kubectl, name: str) -> bytes:
    node = _essential(kubectl.get("node", name))
    status = node.get("status", {})
    kept = {key: status[key] for key in _OF_STATUS_OF_NODE if key in status}
    return _written(node | {"status": kept})


def _documents(kubectl: Kubectl, *where: str) -> bytes:
    """Return the objects of our kinds in a namespace, if the cluster has them."""
    kinds = [
        kind
        for group in _GROUPS
        for kind in kubectl.output(
            *("api-resources", f"--api-group={group}", "--namespaced", "--output=name")
        )
        .decode()
        .split()
    ]
    items = kubectl.get(",".join(kinds), *where)["items"] if kinds else ()
    return _written([_essential(one) for one in items])


def _topology(kubectl: Kubectl, daemon: Daemon) -> bytes:
    """Return an archive of ``nri-resmgr topology dump``."""
    words = ("topology", *daemon.flags("--host-root", "--memory-kinds"), "dump", "-")
    archive = kubectl.output(*daemon.exec_words(*words))
    try:
        return redact_archive(archive)
    except (OSError, EOFError, tarfile.TarError):
        raise KubectlFailed("the dump of the topology has arrived damaged") from None


def _config_maps(spec: Mapping[str, Any]) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        if name := volume.get("configMap", {}).get("name", ""):
            yield name


def _essential(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without what a bug report does not need.

    Annotations are among that: one of them repeats the whole object as it was applied.
    """
    metadata = found.get("metadata", {})
    kept = {key: metadata[key] for key in _OF_METADATA if key in metadata}
    others = {
        key: found[key]
        for key in ("apiVersion", "kind", "spec", "status", "data")
        if key in found
    }
    return others | {"metadata": kept}


def _written(data: Any) -> bytes:
    try:
        return f"{json.dumps(redact_data(data), indent=2)}\n".encode()
    except RecursionError:
        raise KubectlFailed("the object is nested too deep") from None
