"""The daemon's pod on the node of a pod, on a named node, or on each node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nri_resmgr.kubectl.client import NAME, Kubectl
from nri_resmgr.kubectl.errors import (
    DaemonNotRunning,
    KubectlFailed,
    NoDaemonPod,
    NoNode,
    NoPod,
    NotFound,
    NotScheduled,
    PluginError,
    SeveralDaemonPods,
)

_DNS_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL: Final = f"--selector=app.kubernetes.io/name={NAME}"
"""Both the kustomizations and the chart label pods of the daemon with it."""


@dataclass(frozen=True)
class ChosenPod:
    """A pod that the user has named, and its node."""

    namespace: str
    name: str
    node: str


@dataclass(frozen=True)
class Daemon:
    """A pod of the daemon.

    Attributes:
        namespace: Where it is.
        pod: Its name.
        node: Its node.
        spec: Of the pod, as JSON has it.
        restarts: How often its containers have restarted, by their names.
    """

    namespace: str
    pod: str
    node: str
    spec: Mapping[str, Any]
    restarts: Mapping[str, int]

    def flags(self, *names: str) -> tuple[str, ...]:
        """Return flags of the daemon that its clients need as well.

        Args:
            names: Such as ``--host-root``.
        """
        arguments = _container_of(self.spec).get("args") or []
        found = ((name, _value_of(name, arguments)) for name in names)
        return tuple(f"{name}={value}" for name, value in found if value)

    def exec_words(self, *words: str, terminal: bool = False) -> tuple[str, ...]:
        """Return the words of a kubectl that runs ``nri-resmgr`` with *words* there."""
        tty = ("--stdin", "--tty") if terminal else ()
        where = ("--namespace", self.namespace, self.pod, "--container", NAME)
        return ("exec", *tty, *where, "--", NAME, *words)


def pod_named(kubectl: Kubectl, name: str, namespace: str) -> ChosenPod:
    """Find a pod by its whole name.

    Args:
        kubectl: Asks the cluster.
        name: The pod's.
        namespace: Empty for that of the user's context.

    Raises:
        NoPod: There is none.
        NotScheduled: It has no node.
        KubectlFailed: The user may not read it, or the cluster does not answer.
    """
    where = ("--namespace", namespace) if namespace else ()
    try:
        found = kubectl.get("pod", name, *where)
    except NotFound as error:
        raise NoPod(error.why) from None
    metadata = found["metadata"]
    node = found["spec"].get("nodeName", "")
    if not node:
        raise NotScheduled(f"{metadata['namespace']}/{metadata['name']}")
    return ChosenPod(metadata["namespace"], metadata["name"], node)


def daemon_on(
    kubectl: Kubectl, node: str, namespace: str, *, must_run: bool = True
) -> Daemon:
    """Find the daemon of a node.

    Args:
        kubectl: Asks the cluster.
        node: Its name.
        namespace: Of the daemon's pods.
        must_run: Whether one that does not run is an error.

    Raises:
        NoNode: The cluster has no such node.
        NoDaemonPod: The node has no pod of the daemon.
        SeveralDaemonPods: It has more than one.
        DaemonNotRunning: Its container does not run.
        KubectlFailed: The user may not list pods, or the cluster does not answer.
    """
    on_node = f"--field-selector=spec.nodeName={node}"
    pods = _pods(kubectl, namespace, on_node)
    if not pods:
        _check_node(kubectl, node)
        raise NoDaemonPod(node, namespace)
    return _daemon_of(pods, node, namespace, must_run=must_run)


def all_daemons(
    kubectl: Kubectl, namespace: str, *, must_run: bool = True
) -> Mapping[str, Daemon | PluginError]:
    """Find the daemon of each node, or why it cannot be used, by the node's name.

    Args:
        kubectl: Asks the cluster.
        namespace: Of the daemons' pods.
        must_run: Whether one that does not run is an error.

    Raises:
        NoDaemonPod: No node has a pod of the daemon.
        KubectlFailed: The user may not list pods, or the cluster does not answer.
    """
    by_node: dict[str, list[Any]] = {}
    for pod in _pods(kubectl, namespace):
        if node := pod["spec"].get("nodeName", ""):
            by_node.setdefault(node, []).append(pod)
    if not by_node:
        raise NoDaemonPod("", namespace)
    found: dict[str, Daemon | PluginError] = {}
    for node in sorted(by_node):
        try:
            pods = by_node[node]
            found[node] = _daemon_of(pods, node, namespace, must_run=must_run)
        except PluginError as error:
            found[node] = error
    return found


def _daemon_of(
    pods: Sequence[Any], node: str, namespace: str, *, must_run: bool
) -> Daemon:
    # During an update of the DaemonSet the old one is there for a while.
    running = [pod for pod in pods if not _why_not_running(pod)]
    names = sorted(pod["metadata"]["name"] for pod in running)
    if len(running) > 1:
        raise SeveralDaemonPods(node, namespace, tuple(names))
    pod = running[0] if running else pods[-1]
    name = pod["metadata"]["name"]
    if must_run and not running:
        raise DaemonNotRunning(node, namespace, name, _why_not_running(pod))
    statuses = pod.get("status", {}).get("containerStatuses", ())
    restarts = {one["name"]: one.get("restartCount", 0) for one in statuses}
    return Daemon(namespace, name, node, pod["spec"], restarts)


def _pods(kubectl: Kubectl, namespace: str, *flags: str) -> list[Any]:
    found = kubectl.get("pods", "--namespace", namespace, _LABEL, *flags)
    # Every pod is checked for the container: labels are free for anyone's use.
    return [pod for pod in found["items"] if _container_of(pod["spec"])]


def _why_not_running(pod: Any) -> str:
    """Return why nothing can be run in the daemon's container; empty if it runs."""
    if "deletionTimestamp" in pod["metadata"]:
        return "its pod is being deleted"
    status = pod.get("status", {})
    for one in status.get("containerStatuses", ()):
        if one["name"] == NAME:
            state = one.get("state", {})
            if "running" in state:
                return ""
            ended = state.get("waiting") or state.get("terminated") or {}
            return str(ended.get("reason") or "its container has not started")
    return f"its pod is {status.get('phase', 'Pending')}"


def _check_node(kubectl: Kubectl, node: str) -> None:
    """Raise `NoNode` if the user may know that there is none."""
    try:
        kubectl.get("node", node)
    except NotFound:
        raise NoNode(node) from None
    except KubectlFailed:
        return  # to read nodes is a right of its own, and not needed otherwise


def _container_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Iterator[Mapping[str, Any]] = iter(spec["containers"])
    return next((one for one in found if one["name"] == NAME), {})


def _value_of(name: str, arguments: Sequence[str]) -> str:
    """Return the last value of a flag; empty without any.

    >>> _value_of("--host-root", ["run", "--host-root=/host"])
    '/host'
    """
    value = ""
    for at, word in enumerate(arguments):
        flag, equals, text = word.partition("=")
        if flag == name:
            value = text if equals else "".join(arguments[at + 1 : at + 2])
    return value


def is_name(text: str) -> bool:
    """Return whether *text* may be the name of a pod, a container or a node.

    Source: Kubernetes, "Object Names and IDs": a subdomain of DNS.
    """
    return _DNS_NAME.fullmatch(text) is not None
