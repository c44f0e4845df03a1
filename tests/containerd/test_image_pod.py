"""The image, run as the pod of our DaemonSet, on a real containerd."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from nri_resmgr.cli.new_plugin.command import make
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet
from tests.deploy.built_image import built_image
from tests.deploy.kubectl import MANIFESTS, rendered, with_component
from tests.deploy.kubelet import write_config_map
from tests.deploy.node import DaemonPod, Node
from tests.deploy.pod import HOST_ROOT, container_of, host_mounts, pod_of
from tests.deploy.readme import table_below
from tests.real_host.binaries import NRI_0_10, Binaries
from tests.real_host.cgroups import Cgroup
from tests.real_host.documents import STATIC
from tests.real_host.patience import wait_until
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import Resources

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

MACHINE = read_machine(HostTree("/"))
ALL = MACHINE.online - MACHINE.isolated
OK = 200

PLUGINS = sorted(
    path.name for path in (Path(__file__).parents[2] / "plugins").iterdir()
)


@pytest.fixture(scope="module")
def node(
    programs: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    with Node(programs, tmp_path_factory.mktemp("node")) as node:
        node.take_image(built_image().archive)
        yield node
        node.containerd.remove_pods()


def base(document: str = "") -> tuple[dict[str, Any], ...]:
    """Render the base; with a document, as an overlay of the user's would."""
    objects = rendered(MANIFESTS / "base")
    if not document:
        return objects
    return tuple(
        one | {"data": {"config.yaml": document}} if one["kind"] == "ConfigMap" else one
        for one in objects
    )


def run(node: Node, objects: tuple[dict[str, Any], ...]) -> DaemonPod:
    """Run the pod until it is ready, as its probes say."""
    pod = node.run(objects)
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        wait_for(pod, name)
    return pod


def wait_for(pod: DaemonPod, name: str) -> None:
    probe = pod.wanted.probes[name]
    wait_until(lambda: pod.ask(probe) == OK, f"the {name} of the pod", 20)


def start(node: Node, name: str, resources: Resources) -> Container:
    pod = node.containerd.run_pod(PodSpec(name, qos=resources.qos))
    return pod.start(name, resources)


def cpus_of(container: Container) -> CpuSet:
    return CpuSet.parse(container.cpus())


def reported(pod: DaemonPod) -> dict[str, str]:
    """Return the CPUs of each container, from `status` inside the daemon's pod."""
    answer = json.loads(pod.exec("nri-resmgr", "status", "-o", "json"))
    return {one["name"]: one["cpus"] for one in answer["containers"]}


def ways_of_updates(pod: DaemonPod) -> tuple[str, int]:
    """Return how containers are updated, and how many by the runtime nevertheless."""
    answer = json.loads(pod.exec("nri-resmgr", "status", "-o", "json"))["applyUpdates"]
    return answer["by"], answer["byRuntime"]


def files_below(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def in_force(pod: DaemonPod, paths: Iterable[str]) -> dict[str, str]:
    """Return how the daemon finds paths of the host, as the kernel has it."""
    table = Path(f"/proc/{pod.process()}/mountinfo").read_text().splitlines()
    # The last one at a place is what is seen (proc_pid_mountinfo(5), fields 5 and 6).
    options = {row.split()[4]: row.split()[5].split(",")[0] for row in table}
    found = {
        path: options.get(f"{HOST_ROOT}{path}") or options.get(path) for path in paths
    }
    words = {"ro": "read-only", "rw": "writable", None: "not mounted"}
    return {path: words[how] for path, how in found.items()}


def status_of(pod: DaemonPod) -> dict[str, str]:
    lines = Path(f"/proc/{pod.process()}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines)


def container_cgroups(node: Node) -> set[str]:
    """Cgroups that are left below pods'; the pods' own are a kubelet's to remove."""
    tops = Cgroup(node.containerd.cgroup_root).folders()
    return {one.name for top in tops for one in top.glob("**/pod*/*") if one.is_dir()}


def test_the_pod_serves_with_no_rights_and_follows_its_config_map(node: Node) -> None:
    reported_by_readme = table_below("Directory of the node")
    directories = {path.strip("`"): how for path, how, _ in reported_by_readme}
    pod = run(node, base())
    container = start(node, "reported", Resources.best_effort())
    inside = container.exec("cat", "/.nri-resource-policy/resources.sh")
    cpus, mounts = container.cpus(), in_force(pod, directories)
    status = status_of(pod)
    volume = Path(pod.wanted.sandbox.log_directory, "config")
    write_config_map(volume, {"config.yaml": STATIC})
    wait_until(lambda: "kind=StaticPolicy" in pod.log(), "the new document", 20)
    pod.remove()
    container.remove()

    assert f'SHARED_CPUS="{cpus}"' in inside.splitlines()
    assert mounts == directories
    # Root without capabilities, which gets none by any program, below a filter.
    names = ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
    assert [status[name] for name in names] == [
        "0\t0\t0\t0",
        *("0000000000000000", "0000000000000000", "1", "2"),
    ]


def test_components_give_the_pod_the_documented_rights(
    node: Node, tmp_path: Path
) -> None:
    names = ("cgroups", "cpufreq", "cstates", "interrupts", "scheduling")
    objects = with_component(tmp_path, *names)
    directories = host_mounts(pod_of(objects))
    pod = run(node, objects)
    mounts, status = in_force(pod, directories), status_of(pod)
    seen = pod.exec(
        "python3", "-c", f"print(open('/proc/{pod.process()}/comm').read())"
    )
    pod.remove()

    assert mounts == directories
    # capabilities(7), linux/capability.h: CAP_SYS_ADMIN and CAP_SYS_NICE.
    assert int(status["CapEff"], 16) == 1 << 21 | 1 << 23
    # With the host's process ids it has the number that it has here.
    assert seen.strip() == "nri-resmgr"


def plugin_pod(*words: str) -> tuple[dict[str, Any], ...]:
    """Return the DaemonSet with another plugin in its pod, as the README says."""
    objects = deepcopy(base())
    container_of(pod_of(objects))["args"] = ["plugin", *words]
    return objects


def test_a_plugin_in_the_image_is_told_of_containers(node: Node) -> None:
    pod = node.run(plugin_pod("logger"))
    wait_until(lambda: "reply: Synchronize" in pod.log(), "its registration", 20)
    container = start(node, "logged", Resources.best_effort())
    wait_until(lambda: "name: logged" in pod.log(), "what it prints", 20)
    container.remove()
    pod.remove()


@pytest.mark.parametrize("name", PLUGINS)
def test_the_image_runs_every_plugin(node: Node, name: str) -> None:
    said = "session.synchronized"
    if name == "logger":
        said = "reply: Synchronize"  # it has no log but this
    elif name == "validator" and node.containerd.release < NRI_0_10:
        said = "knows none of the events this plugin handles"
    pod = node.run(plugin_pod(name))
    wait_until(lambda: said in pod.log(), "it to serve", 20)
    pod.remove()


def built_of(folder: Path, name: str, store: Path) -> Path:
    """Build the image of a new plugin on ours; return its archive."""
    archive = store / "plugin.oci.tar"
    buildah = ("buildah", "--log-level", "error", "--storage-driver", "vfs")
    places = ("--root", str(store / "storage"), "--runroot", str(store / "run"))
    base = f"BASE=oci-archive:{built_image().archive}"
    build = ("build", "--quiet", "--build-arg", base, "--tag", name, str(folder))
    push = ("push", "--quiet", name, f"oci-archive:{archive}:{name}")
    for words in (build, push):
        subprocess.run((*buildah, *places, *words), check=True, capture_output=True)
    return archive


def test_a_new_plugin_runs_in_an_image_of_its_own(node: Node, tmp_path: Path) -> None:
    folder, name = tmp_path / "gpu-env", "docker.io/library/gpu-env:1"
    make("gpu-env", "10", folder)
    node.take_image(built_of(folder, name, tmp_path))
    objects = deepcopy(base())
    container_of(pod_of(objects)).update(image=name, command=[], args=[])
    pod = node.run(objects)
    wait_until(lambda: "session.synchronized" in pod.log(), "its registration", 20)
    container = start(node, "greeted", Resources.best_effort())
    greeting = container.exec("sh", "-c", "echo $GREETING")
    container.remove()
    pod.remove()

    assert greeting.strip().startswith("hello ")


def test_an_upgrade_moves_nothing_and_an_uninstall_leaves_two_directories(
    node: Node,
) -> None:
    many = len(ALL) // 2  # CPUs for one container alone
    first = run(node, base(STATIC))
    exclusive = start(node, "exclusive", Resources.guaranteed(many))
    shared = start(node, "shared", Resources.best_effort())
    own, grants = cpus_of(exclusive), reported(first)
    first.remove()
    between = cpus_of(exclusive), cpus_of(shared)
    second = run(node, base(STATIC))
    after = cpus_of(exclusive), cpus_of(shared)

    assert (len(own), grants["exclusive"]) == (many, str(own))
    assert between == after == (own, ALL - own)
    assert reported(second) == grants
    assert "state.restored" in second.log()
    assert ways_of_updates(second) == ("cgroup", 0)
    second.remove()
    assert (cpus_of(exclusive), cpus_of(shared)) == between
    node.containerd.remove_pods()
    # As the README says, no journal is left: everything is restored.
    assert files_below(node.host / "var/lib") == {
        "nri-resmgr/lock",
        "nri-resmgr/policy.checkpoint",
    }
    # Of those that ran without it to the end, the next daemon removes them.
    assert files_below(node.host / "run/nri-resmgr") == {
        f"containers/{one.id}/resources.{kind}"
        for one in (exclusive, shared)
        for kind in ("sh", "json")
    }
    assert container_cgroups(node) == set()
