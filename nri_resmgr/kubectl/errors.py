"""Reasons why a command cannot be done: a sentence each, which says what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FAILED: Final = 1
BAD_INPUT: Final = 2


class PluginError(Exception):
    """Root of the errors that end a command, or the query of one node.

    Attributes:
        status: The exit status.
    """

    status: int = FAILED


class BadChoice(PluginError):
    """What the user named is not in the cluster."""

    status = BAD_INPUT


@dataclass(eq=False)
class NoKubectl(PluginError):
    """There is no kubectl."""

    why: str

    def __str__(self) -> str:
        return f"cannot run kubectl: {self.why}; it has to be on PATH"


@dataclass(eq=False)
class KubectlFailed(PluginError):
    """kubectl, or the API server, refuses or fails."""

    why: str

    def __str__(self) -> str:
        return self.why or "kubectl failed without a reason"


@dataclass(eq=False)
class NotFound(KubectlFailed):
    """The API server has no such object."""


@dataclass(eq=False)
class Forbidden(KubectlFailed):
    """The user lacks a right."""

    def __str__(self) -> str:
        return f"{self.why}; an administrator of the cluster can grant this right"


@dataclass(eq=False)
class BadName(BadChoice):
    """An argument cannot be a name."""

    text: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.text!r}: expected {self.wanted}"


@dataclass(eq=False)
class NeedsOneNode(BadChoice):
    """A command that ends only with the user's word cannot query all nodes."""

    words: str

    def __str__(self) -> str:
        return f"{self.words} needs one node: a POD or --node NODE"


@dataclass(eq=False)
class NoPod(BadChoice):
    """No pod has the name."""

    why: str

    def __str__(self) -> str:
        return f"{self.why}; -n NAMESPACE names the pod's namespace"


@dataclass(eq=False)
class NotScheduled(BadChoice):
    """The pod has no node."""

    pod: str

    def __str__(self) -> str:
        return f"pod {self.pod} has no node yet: the scheduler has not placed it"


@dataclass(eq=False)
class NoNode(BadChoice):
    """The cluster has no such node."""

    node: str

    def __str__(self) -> str:
        return f"the cluster has no node {self.node}"


@dataclass(eq=False)
class NoDaemonPod(PluginError):
    """No pod of the daemon is on the node, or on any node.

    Attributes:
        node: Its name; empty for all nodes.
        namespace: Where pods of the daemon were looked for.
    """

    node: str
    namespace: str

    def __str__(self) -> str:
        where = f"on node {self.node} " if self.node else ""
        return (
            f"no pod of nri-resmgr {where}in namespace {self.namespace}; "
            "--daemon-namespace names another one, and a daemon that is a service or "
            "launched by the runtime is asked on its node, by nri-resmgr status"
        )


@dataclass(eq=False)
class SeveralDaemonPods(PluginError):
    """More than one pod of the daemon runs on the node."""

    node: str
    namespace: str
    pods: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"several pods of nri-resmgr run on node {self.node}: "
            f"{', '.join(self.pods)}; only one may place containers there, so wait for "
            f"the end of an update, or remove a DaemonSet in namespace {self.namespace}"
        )


@dataclass(eq=False)
class DaemonNotRunning(PluginError):
    """The daemon's container does not run."""

    node: str
    namespace: str
    pod: str
    why: str

    def __str__(self) -> str:
        return (
            f"the daemon on node {self.node} does not run ({self.why}); "
            f"kubectl describe pod -n {self.namespace} {self.pod} shows more"
        )


@dataclass(eq=False)
class AnswerRefused(PluginError):
    """The client in the daemon's container has failed.

    Attributes:
        why: What it printed on standard error.
        status: Its exit status.
    """

    why: str
    status: int

    def __str__(self) -> str:
        return self.why


@dataclass(eq=False)
class CannotWrite(PluginError):
    """The bundle cannot be written."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why}"
