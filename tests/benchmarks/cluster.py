"""A cluster of one API server, with what our manifests install, for benchmarks."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs

from tests.benchmarks.process import cpu_seconds, resident
from tests.kubernetes.accounts import Account, make_account
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.programs import programs

NAMESPACE: Final = "kube-system"
KIND: Final = "StaticPolicy"
PLURAL: Final = "staticpolicies"

_DEPLOY: Final = Path(__file__).parents[2] / "deploy"
_ACCOUNT: Final = "nri-resmgr"


@attrs.frozen
class Arrival:
    """A request that arrived at the API server.

    Attributes:
        at: When, seconds since the epoch.
        verb: Kubernetes': ``get``, ``list``, ``watch``, ``patch``, ...
        what: The resource, with its subresource.
    """

    at: float
    verb: str
    what: str


@attrs.frozen
class Usage:
    """What the servers have used so far.

    Attributes:
        api_server: Seconds of a CPU.
        etcd: The same.
        resident: Memory of the API server, MiB.
        conflicts: Writes that the API server has answered with a conflict, since its
            start.
    """

    api_server: float
    etcd: float
    resident: float
    conflicts: int


@attrs.frozen(eq=False)
class Cluster:
    """The API server, and the account of all agents.

    Attributes:
        control_plane: The API server and its etcd.
        account: With the rights of our manifests.
    """

    control_plane: ControlPlane
    account: Account

    def make_node(self, name: str) -> None:
        """Make a Node, as a kubelet does."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        answer = self.control_plane.ask("POST", "/api/v1/nodes", node)
        assert answer.status == 201, answer.body

    def apply(self, path: Path) -> None:
        """Run ``kubectl apply -f``, in the namespace of the configurations."""
        self.control_plane.kubectl.within(NAMESPACE)("apply", "-f", path)

    def node_statuses(self) -> Mapping[str, Any]:
        """Return the status of each node by its name."""
        path = "/apis/config.nri/v1alpha1/noderesourcemanagers"
        found = self.control_plane.ask("GET", path).body["items"]
        return {one["metadata"]["name"]: one.get("status", {}) for one in found}

    def usage(self) -> Usage:
        """Return what the servers have used so far."""
        pids = self.control_plane.pids
        server = pids["kube-apiserver"]
        return Usage(
            cpu_seconds(server),
            cpu_seconds(pids["etcd"]),
            resident(server),
            self._sum("apiserver_request_total", lambda it: 'code="409"' in it),
        )

    def open_watches(self) -> int:
        """Return the number of watches of our kinds that are open now.

        A watch of a Node by its name is not counted by Kubernetes 1.20.
        """
        return self._sum("apiserver_longrunning", _is_own_watch)

    def _sum(self, metric: str, is_meant: Callable[[str], bool]) -> int:
        found = self.control_plane.ask("GET", "/metrics").body
        rows = [
            line.rpartition(" ")
            for line in str(found).splitlines()
            if line.startswith(metric)
        ]
        return sum(int(count) for labels, _, count in rows if is_meant(labels))

    def arrivals(self, begin: int = 0) -> Iterator[Arrival]:
        """Return what the agents have asked for.

        Args:
            begin: The bytes of the log to leave out.
        """
        with self.control_plane.audit_log.open("rb") as log:
            log.seek(begin)
            for line in log:
                if line.endswith(b"\n"):
                    yield _arrival(json.loads(line))

    def log_size(self) -> int:
        """Return the bytes that the log has now, as `arrivals` takes them."""
        log = self.control_plane.audit_log
        return log.stat().st_size if log.exists() else 0


def document(cpus: object, name: str = "default") -> str:
    """Return a configuration that leaves some CPUs to containers."""
    document = {
        "apiVersion": "config.nri/v1alpha1",
        "kind": KIND,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"availableResources": {"cpu": f"cpuset:{cpus}"}},
    }
    return json.dumps(document)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run an API server, with our CRDs, and an account with the rights of an agent."""
    with tempfile.TemporaryDirectory(prefix="nri-cluster-") as folder:
        control_plane = ControlPlane(programs(), Path(folder))
        try:
            control_plane.create()
            yield _installed(control_plane)
        finally:
            control_plane.close()


def _installed(control_plane: ControlPlane) -> Cluster:
    kubectl = control_plane.kubectl.within(NAMESPACE)
    control_plane.kubectl("apply", "--server-side", "-k", _DEPLOY / "crds")
    established = ("--for=condition=Established", "--timeout=120s")
    control_plane.kubectl("wait", *established, "crd", "--all")
    account = make_account(control_plane, NAMESPACE, _ACCOUNT)
    kubectl("apply", "-f", _DEPLOY / "kubernetes/cluster/rbac.yaml")
    return Cluster(control_plane, account)


def _is_own_watch(labels: str) -> bool:
    kinds = (f'resource="{PLURAL}"', 'resource="adjustments"')
    return 'verb="WATCH"' in labels and any(one in labels for one in kinds)


def _arrival(line: Mapping[str, Any]) -> Arrival:
    ref = line.get("objectRef", {})
    names = (ref.get("resource", line["requestURI"]), ref.get("subresource", ""))
    at = datetime.fromisoformat(line["requestReceivedTimestamp"])
    return Arrival(at.timestamp(), line["verb"], "/".join(filter(None, names)))
