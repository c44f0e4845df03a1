"""One node from end to end: `kubectl`, a kubelet, containerd, the agent, the daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.runtimes.containerd import MAIN
from nri_resmgr.values import CpuSet
from tests.daemon.test_control import socket_in
from tests.deploy.built_image import built_image
from tests.deploy.helm import Release
from tests.deploy.kubectl import of_kind
from tests.deploy.node import Node as RuntimeNode
from tests.kubernetes.accounts import Account
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import Kubectl
from tests.kubernetes.kubelet import Kubelet
from tests.kubernetes.nodes import CRDS, Node, policy, until
from tests.kubernetes.programs import kubelet as kubelet_program
from tests.kubernetes.roles import RULES, RULES_OF_NAMESPACE
from tests.real_host.absent import give_up
from tests.real_host.binaries import binaries, offered_versions
from tests.real_host.cgroups import Cgroup
from tests.real_host.debian import PackageUnavailable
from tests.real_host.image import WORK
from tests.real_host.plugin_process import PluginProcess
from tests.runtimes.containerd_files import STOCK_1_7

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(900, func_only=True)]

MACHINE: Final = read_machine(HostTree("/"))
ALL: Final = MACHINE.online - MACHINE.isolated
PATIENCE: Final = 240.0  # seconds; a pod takes two on an idle machine
EXCLUSIVE_CPUS: Final = "resource-policy.nri.io/exclusive-cpus"
LEVELS: Final = {
    "Guaranteed": "",
    "Burstable": "/burstable",
    "BestEffort": "/besteffort",
}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeNode]:
    """A containerd of the release that Debian's kubelet can speak to."""
    if len(ALL) < 2:
        give_up("one CPU cannot be reserved and granted at a time")
    try:
        found = binaries(offered_versions()[0])
    except PackageUnavailable as reason:
        give_up(f"containerd: {reason}")
    with RuntimeNode(found, tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture(scope="module")
def kubelet(
    shared_control_plane: ControlPlane,
    runtime: RuntimeNode,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kubelet]:
    """The kubelet of the only node that is more than an object."""
    try:
        program = kubelet_program()
    except PackageUnavailable as reason:
        give_up(f"kubelet: {reason}")
    release = runtime.containerd.release
    if shared_control_plane.release < (1, 26) and release >= (2, 0):
        give_up(f"the kubelet speaks CRI v1alpha2, and containerd {release} does not")
    folder = tmp_path_factory.mktemp("kubelet")
    made = Kubelet(
        program, shared_control_plane, runtime, f"node-{folder.name}", folder
    )
    with made:
        yield made


@attrs.frozen(eq=False)
class Pods:
    """Pods of the node, made by ``kubectl apply`` and seen in the kernel."""

    kubectl: Kubectl
    node: str
    cgroup_root: str

    def apply(self, name: str, cpus: int = 0, units: int = 0, **more: Any) -> None:
        """Apply a pod that sleeps: Guaranteed with whole *cpus*, or BestEffort."""
        amounts = {"cpu": str(cpus), "memory": "32Mi"} if cpus else {}
        if units:
            amounts[EXCLUSIVE_CPUS] = str(units)
        spec = {
            # There is no scheduler, and no controller that makes tokens.
            "nodeName": self.node,
            "automountServiceAccountToken": False,
            "dnsPolicy": "Default",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "main",
                    "image": WORK,
                    "imagePullPolicy": "Never",
                    "resources": {"limits": amounts},
                }
            ],
            **more,
        }
        metadata = {"name": name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.kubectl.apply(pod)

    def status(self, name: str) -> Any:
        """What the kubelet says of its only container."""
        found = self.kubectl.get("pod", name)["status"]
        (container,) = found.get("containerStatuses") or [{}]
        return container

    def is_running(self, name: str) -> bool:
        return "running" in self.status(name).get("state", {})

    def waiting(self, name: str) -> str:
        """Why the kubelet has not started it."""
        reason = self.status(name).get("state", {}).get("waiting", {})
        return f"{reason.get('reason')}: {reason.get('message')}"

    def delete(self, name: str) -> None:
        """Delete a pod, which stops at once; to forget it takes a minute."""
        self.kubectl("delete", "pod", name, "--wait=false")

    def cpus(self, name: str) -> CpuSet:
        """CPUs that the kernel lets a container's first process use."""
        pod = self.kubectl.get("pod", name)
        level, uid = LEVELS[pod["status"]["qosClass"]], pod["metadata"]["uid"]
        identity = self.status(name)["containerID"].removeprefix("containerd://")
        cgroup = Cgroup(f"{self.cgroup_root}{level}/pod{uid}/{identity}")
        status = Path(f"/proc/{cgroup.processes()[0]}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        return CpuSet.parse(fields["Cpus_allowed_list"])


@pytest.fixture
def pods(kubectl: Kubectl, kubelet: Kubelet, runtime: RuntimeNode) -> Iterator[Pods]:
    yield Pods(kubectl, kubelet.name, runtime.containerd.cgroup_root)
    kubectl("delete", "pods", "--all", "--wait=false")


@pytest.fixture
async def node(
    kubelet: Kubelet, runtime: RuntimeNode, account: Account, tmp_path: Path
) -> AsyncIterator[Node]:
    """The node with our daemon and our agent."""
    kubectl = account.control_plane.kubectl
    kubectl("apply", "--server-side", "-k", CRDS)
    established = ("--for=condition=Established", "--timeout=120s")
    kubectl("wait", *established, "crd", "--all")
    account.allow(*RULES, cluster=True)
    account.allow(*RULES_OF_NAMESPACE)
    (tmp_path / "spool").mkdir()
    daemon = PluginProcess.resource_policy(
        *(runtime.containerd.layout.nri_socket, tmp_path / "daemon.log"),
        *("--spool", str(tmp_path / "spool"), "--state-dir", str(tmp_path / "state")),
        *("--control-socket", str(socket_in(tmp_path))),
        *("--kubelet-dir", str(kubelet.root)),
    )
    within = kubectl.within(account.namespace)
    made = Node(kubelet.name, tmp_path, account, within)
    with daemon:
        async with made.agent():
            yield made


async def test_pods_of_a_kubelet_follow_the_cluster_s_objects(
    node: Node, pods: Pods
) -> None:
    first = CpuSet.of(min(ALL))
    node.kubectl.apply(policy("default", f"cpuset:{first}"))
    await until(lambda: node.condition("Ready")[0] == "True", PATIENCE)

    # A Guaranteed pod has CPUs of its own, and others have them no more.
    pods.apply("shared")
    await until(lambda: pods.is_running("shared"), PATIENCE)
    assert pods.cpus("shared") == ALL
    pods.apply("own", cpus=1)
    await until(lambda: pods.is_running("own"), PATIENCE)
    own = pods.cpus("own")
    assert (len(own), own & first) == (1, CpuSet())
    assert pods.cpus("shared") == ALL - own

    # Another object that counts for this node: what runs follows in the kernel.
    node.kubectl.apply(policy(f"node.{node.name}", f"cpuset:{own}"))
    await until(lambda: not pods.cpus("own") & own, PATIENCE)
    moved = pods.cpus("own")
    await until(lambda: pods.cpus("shared") == ALL - moved, PATIENCE)
    assert len(moved) == 1
    await until(lambda: node.source() == f"node.{node.name}", PATIENCE)
    _, line = node.kubectl("get", "nrm", node.name).splitlines()
    assert line.split()[1:5] == ["StaticPolicy", f"node.{node.name}", "True", "True"]

    # The kubelet has room for one more pod, but not beside the reserved CPU.
    pods.apply("huge", cpus=len(ALL) - 1)
    await until(lambda: "ResourcesRefused" in describe(pods, "huge"), PATIENCE)
    sentence = f"asks for {len(ALL) - 1} exclusive CPU"
    assert sentence in describe(pods, "huge")
    await until(lambda: sentence in pods.waiting("huge"), PATIENCE)
    pods.delete("huge")
    assert (pods.cpus("own"), pods.cpus("shared")) == (moved, ALL - moved)

    # What is given back is shared again.
    pods.delete("own")
    await until(lambda: pods.cpus("shared") == ALL, PATIENCE)
    assert pods.status("shared")["restartCount"] == 0


async def test_the_kubelet_counts_what_the_policy_grants(
    node: Node, pods: Pods, kubelet: Kubelet
) -> None:
    """An extended resource by our device plugin."""
    document = policy(
        "default", f"cpuset:{CpuSet.of(min(ALL))}", publish={"exclusiveCPUs": True}
    )
    node.kubectl.apply(document)
    most = str(len(ALL) - 1)

    def allocatable() -> str:
        status = node.kubectl.get("node", kubelet.name)["status"]
        return str(status["allocatable"].get(EXCLUSIVE_CPUS))

    await until(lambda: allocatable() == most, PATIENCE)
    pods.apply("counted", cpus=1, units=1)
    await until(lambda: pods.is_running("counted"), PATIENCE)
    assert len(pods.cpus("counted")) == 1
    assert pods.cpus("counted") != CpuSet.of(min(ALL))
    # The scheduler takes what the pod has requested away, not the node.
    (shown,) = (one for one in node.state()["containers"] if one["pod"] == "counted")
    assert shown["request"]["extended"] == {EXCLUSIVE_CPUS: 1}
    assert allocatable() == most

    # One more than there is: the kubelet refuses the pod, and no policy is asked.
    pods.apply("more", cpus=1, units=len(ALL) - 1)
    await until(
        lambda: (
            EXCLUSIVE_CPUS in pods.kubectl("get", "pod", "more", "-o", "json")
            and pods.kubectl.get("pod", "more")["status"].get("phase") == "Failed"
        ),
        PATIENCE,
    )
    pods.delete("more")
    pods.delete("counted")


def describe(pods: Pods, name: str) -> str:
    """The events of a pod, as a user finds them."""
    return pods.kubectl("describe", "pod", name).partition("\nEvents:")[2]


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host's root, whose runtime has NRI switched off."""
    root = tmp_path / "host"
    (root / "proc").mkdir(parents=True)
    for name, text in ((MAIN, STOCK_1_7), ("/run/containerd/containerd.sock", "")):
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return root


def prepared_by_chart(host: Path) -> dict[str, Any]:
    """The chart's init container, for a pod on another host's root."""
    objects = Release().render(enableRuntime={"enabled": True})
    spec = of_kind(objects, "DaemonSet")["spec"]["template"]["spec"]
    (container,) = (
        one for one in spec["initContainers"] if one["name"] == "enable-runtime"
    )
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    volumes = [one for one in spec["volumes"] if one["name"] in mounted]
    for volume in volumes:
        volume["hostPath"]["path"] = f"{host}{volume['hostPath']['path']}"
    return {"initContainers": [container], "volumes": volumes}


@pytest.fixture
def image(runtime: RuntimeNode) -> None:
    """Our image on the node; to build it takes minutes once."""
    runtime.take_image(built_image().archive)


@pytest.mark.usefixtures("image")
async def test_the_chart_s_init_container_switches_nri_on(
    pods: Pods, host: Path
) -> None:
    main = host / MAIN.lstrip("/")

    pods.apply("prepared", **prepared_by_chart(host))
    await until(lambda: pods.is_running("prepared"), PATIENCE)

    assert main.read_text() == STOCK_1_7.replace("disable = true", "disable = false")
    kept = main.with_name(f"{main.name}.before-nri-resmgr")
    assert kept.read_text() == STOCK_1_7

    # A file that must not be edited is named where users look, and is left alone.
    generated = f"# DO NOT EDIT\n{STOCK_1_7}"
    kept.unlink()
    main.write_text(generated)
    pods.apply("refused", **prepared_by_chart(host))
    sentence = f"{MAIN} says 'DO NOT EDIT'"
    await until(
        lambda: sentence in pods.kubectl("describe", "pod", "refused"), PATIENCE
    )
    assert not pods.is_running("refused")
    assert main.read_text() == generated
