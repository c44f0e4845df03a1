"""``kubectl nri-resmgr`` finds daemons by a real API server, and queries real ones."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import pytest
import yaml

from nri_resmgr.cli.workload import Workload
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import QosClass
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.test_control import at_work
from tests.deploy.kubectl import MANIFESTS, of_kind, rendered
from tests.kubectl.built import ROOT, built, run
from tests.kubernetes.accounts import Account
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.exec_double import write_double
from tests.kubernetes.kubectl import Kubectl
from tests.pictures.seen import seen

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

RUNNING: Final = {"running": {"startedAt": "2026-11-30T00:00:00Z"}}
CRASHING: Final = {"waiting": {"reason": "CrashLoopBackOff"}}
SHOP: Final = Workload("shop", QosClass.GUARANTEED, 1000)
MAY_FIND: Final = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
MAY_EXEC: Final = {
    "apiGroups": [""],
    "resources": ["pods/exec"],
    "verbs": ["create"],
}
PASSWORD: Final = "hunter2hunter2"  # noqa: S105 - planted, to be found nowhere


@attrs.define(eq=False)
class Cluster:
    """Pods of the daemon in the test's namespace, and the user's side."""

    control_plane: ControlPlane
    kubectl: Kubectl
    folder: Path
    program: Path
    kubeconfig: Path
    daemons: dict[str, str] = attrs.field(factory=dict)

    @property
    def namespace(self) -> str:
        """That of all pods here."""
        return self.kubectl.namespace

    def node(self, name: str) -> str:
        """Make a Node; return its name, which no other test has."""
        full = f"{name}-{self.namespace}"
        self.kubectl.apply(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": full}}
        )
        return full

    def daemon_pod(
        self,
        name: str,
        node: str,
        state: Mapping[str, Any] = RUNNING,
        folder: Path | None = None,
    ) -> None:
        """Make a pod as the DaemonSet of the manifests would.

        Args:
            name: The pod's.
            node: Its node.
            state: Of the container.
            folder: Of a daemon that runs; without one, nothing can be run in the pod.
        """
        template = of_kind(rendered(MANIFESTS / "base"), "DaemonSet")["spec"][
            "template"
        ]
        spec = template["spec"] | {"nodeName": node}
        # Nothing in the test's namespace makes one.
        del spec["priorityClassName"]
        metadata = template["metadata"] | {"name": name}
        self.kubectl.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        status = {
            "name": "nri-resmgr",
            "state": state,
            "ready": False,
            "restartCount": 3,
            "image": "nri-resmgr",
            "imageID": "",
        }
        self._set_status(name, {"phase": "Running", "containerStatuses": [status]})
        if folder is not None:
            self.daemons[f"{self.namespace}/{name}"] = str(folder)
        self._write_daemons()

    def pod(self, name: str, node: str = "") -> None:
        """Make a pod of a user."""
        spec: dict[str, Any] = {"containers": [{"name": name, "image": "x"}]}
        if node:
            spec["nodeName"] = node
        metadata = {"name": name}
        self.kubectl.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )

    def run(
        self, *words: str, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the plugin as a user does, with all pods in one namespace."""
        self._write_daemons()
        env = self._environment(kubeconfig or self.kubeconfig)
        return run(self.program, *words, env=env, cwd=self.folder)

    def run_by_kubectl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, with the plugin and its Python alone on PATH.

        There the plugin finds the double, as it calls kubectl by its name.
        """
        self._write_daemons()
        folder = self.folder / "installed"
        if not folder.exists():
            folder.mkdir()
            shutil.copy(self.program, folder)
            (folder / "python3").symlink_to(sys.executable)
        path = f"{folder}:{self.folder / 'bin'}"
        return subprocess.run(
            [self.kubectl.program, *words],
            env=self._environment(self.kubeconfig) | {"PATH": path},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    def run_on_terminal(self, *words: str) -> tuple[int, str]:
        """Run the plugin on a terminal; return its status, and what is shown there."""
        ours, its = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-I", "-S", self.program, *words],
            env=self._environment(self.kubeconfig),
            stdin=its,
            stdout=its,
            stderr=its,
        ) as started:
            os.close(its)
            shown = b""
            with contextlib.suppress(OSError):  # once nothing has it open any more
                while read := os.read(ours, 65536):
                    shown += read
            os.close(ours)
        return started.returncode, shown.decode()

    def exec_words(self) -> list[str]:
        """Return the words of the last exec that was played."""
        [folder] = self.daemons.values()
        found: list[str] = json.loads(Path(folder, "exec").read_text())
        return found

    def _environment(self, kubeconfig: Path) -> dict[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "KUBECONFIG": str(kubeconfig),
            "NRI_RESMGR_DAEMON_NAMESPACE": self.namespace,
            "HOME": str(self.folder),
        }

    def _set_status(self, name: str, status: Mapping[str, Any]) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/status"
        answer = self.control_plane.ask(
            "PATCH", path, {"status": status}, kind="application/merge-patch+json"
        )
        assert answer.status == 200, answer.body

    def _write_daemons(self) -> None:
        (self.folder / "daemons.json").write_text(json.dumps(self.daemons))


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as one file."""
    return built(tmp_path_factory.mktemp("plugin"))


@pytest.fixture
def cluster(
    control_plane: ControlPlane, kubectl: Kubectl, tmp_path: Path, program: Path
) -> Cluster:
    """No pods yet."""
    folder = tmp_path / "user"
    double = folder / "bin" / "kubectl"
    write_double(double, kubectl.program, folder / "daemons.json")
    return Cluster(control_plane, kubectl, folder, program, control_plane.kubeconfig)


async def place(running: RunningDaemon, namespace: str) -> None:
    """Run a pod whose namespace is that of the test."""
    pod = msgspec.structs.replace(SHOP.pod, namespace=namespace)
    await running.runtime.run_pod(pod)
    await running.runtime.create_container(pod.id, SHOP.container)


@asynccontextmanager
async def shop_on(node: str, cluster: Cluster, folder: Path) -> AsyncIterator[None]:
    """Run the daemon of a node, with a container of the test's namespace."""
    async with at_work(folder) as running:
        await place(running, cluster.namespace)
        cluster.daemon_pod("nri-resmgr-a", node, folder=folder)
        yield


async def test_every_command_finds_the_daemon_of_a_pod_or_node(
    cluster: Cluster, tmp_path: Path
) -> None:
    node = cluster.node("one")
    ours = cluster.namespace
    async with shop_on(node, cluster, tmp_path):
        cluster.daemon_pod("nri-resmgr-b", cluster.node("two"), CRASHING)
        cluster.pod("shop", node)

        def ask(words: str) -> subprocess.CompletedProcess[str]:
            return cluster.run(*words.split())

        status = await asyncio.to_thread(ask, f"status shop -n {ours}")
        state = await asyncio.to_thread(ask, f"status --node {node} -o json")
        whole = await asyncio.to_thread(ask, f"explain shop -n {ours}")
        one = await asyncio.to_thread(ask, f"explain shop/shop -n {ours} -o json")
        by_id = await asyncio.to_thread(ask, f"explain ctr-shop --node {node}")
        top = await asyncio.to_thread(ask, f"top shop -n {ours} --once")
        events = await asyncio.to_thread(ask, f"events --node {node} --since 2")
        helped = await asyncio.to_thread(ask, f"status --node {node} -- --help")
        wrong = await asyncio.to_thread(ask, f"explain shop/other -n {ours}")

    done = (status, state, whole, one, by_id, top, events, helped)
    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * 8
    assert "policy         TopologyAwarePolicy" in status.stdout.splitlines()
    assert json.loads(state.stdout)["session"]["state"] == "synchronized"
    assert f"{ours}/shop/shop" in whole.stdout
    assert json.loads(one.stdout)["kind"] == "Explanation"
    assert by_id.stdout == whole.stdout
    assert "node 1" in top.stdout
    assert "container.refused" in events.stdout
    assert helped.stdout.startswith("usage: nri-resmgr status")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("nri-resmgr: ")
    assert wrong.stderr.count("\n") == 1


async def test_kubectl_finds_the_plugin_on_path(
    cluster: Cluster, tmp_path: Path
) -> None:
    node, ours = cluster.node("one"), cluster.namespace
    async with shop_on(node, cluster, tmp_path):
        cluster.pod("shop", node)

        def ask(words: str) -> subprocess.CompletedProcess[str]:
            return cluster.run_by_kubectl(*words.split())

        listed = await asyncio.to_thread(ask, "plugin list")
        explained = await asyncio.to_thread(ask, f"nri-resmgr explain shop -n {ours}")
        wrong = await asyncio.to_thread(ask, "nri-resmgr status --node nowhere")

    program = cluster.folder / "installed" / cluster.program.name
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [one for one in listed.stdout.splitlines() if "/" in one] == [str(program)]
    assert (explained.returncode, explained.stderr) == (0, "")
    assert f"{ours}/shop/shop" in explained.stdout
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "nri-resmgr: the cluster has no node nowhere\n"


async def test_a_pod_or_a_node_is_drawn_in_a_file_of_the_user(
    cluster: Cluster, tmp_path: Path
) -> None:
    node, ours = cluster.node("one"), cluster.namespace
    async with shop_on(node, cluster, tmp_path):
        cluster.pod("shop", node)

        def draw(words: str) -> subprocess.CompletedProcess[str]:
            return cluster.run("picture", *words.split())

        of_pod = await asyncio.to_thread(draw, f"shop -n {ours}")
        of_node = await asyncio.to_thread(draw, f"--node {node} --file node.svg")
        nowhere = await asyncio.to_thread(draw, f"--node {node} --file no/x.svg")

    drawn = {"nri-resmgr-shop.svg": of_pod, "node.svg": of_node}
    for name, done in drawn.items():
        shown = seen((cluster.folder / name).read_text())
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{name}\n", "")
        assert shown.colour_of(f"{ours}/shop/shop")
    assert (nowhere.returncode, nowhere.stdout) == (1, "")
    assert nowhere.stderr == (
        "nri-resmgr: cannot write no/x.svg: no such file or directory\n"
    )


async def test_without_a_pod_a_namespace_limits_what_status_shows(
    cluster: Cluster, tmp_path: Path
) -> None:
    node, ours = cluster.node("one"), cluster.namespace
    async with shop_on(node, cluster, tmp_path):
        words = ("status", "--node", node, "-n")
        shown = await asyncio.to_thread(cluster.run, *words, ours)
        other = await asyncio.to_thread(cluster.run, *words, "none")
        on_all = await asyncio.to_thread(cluster.run, "status", "--all", "-n", ours)

    container = f"{ours}/shop/shop"
    assert [container in one.stdout for one in (shown, other, on_all)] == (
        [True, False, True]
    )
    assert "no containers in namespace none\n" in other.stdout


async def test_on_a_terminal_the_command_there_has_a_terminal_as_well(
    cluster: Cluster, tmp_path: Path
) -> None:
    node = cluster.node("one")
    async with shop_on(node, cluster, tmp_path):
        words = ("status", "--node", node)
        status, shown = await asyncio.to_thread(cluster.run_on_terminal, *words)
        on_terminal = cluster.exec_words()
        piped = await asyncio.to_thread(cluster.run, *words)

    assert (status, piped.returncode) == (0, 0)
    assert "TopologyAwarePolicy" in shown
    assert {"--stdin", "--tty"} <= set(on_terminal)
    assert not {"--stdin", "--tty"} & set(cluster.exec_words())


async def test_all_nodes_are_queried_and_those_without_daemon_are_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    names = [cluster.node("one"), cluster.node("two"), cluster.node("three")]
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    async with at_work(first) as running, at_work(second):
        await place(running, cluster.namespace)
        cluster.daemon_pod("nri-resmgr-a", names[0], folder=first)
        cluster.daemon_pod("nri-resmgr-b", names[1], folder=second)
        cluster.daemon_pod("nri-resmgr-c", names[2], CRASHING)

        def ask(words: str) -> subprocess.CompletedProcess[str]:
            return cluster.run(*words.split())

        text = await asyncio.to_thread(ask, "status --all")
        data = await asyncio.to_thread(ask, "status --all -o json")
        top = await asyncio.to_thread(ask, "top --all")
        found = await asyncio.to_thread(ask, "explain ctr-shop --all -o json")
        nowhere = await asyncio.to_thread(ask, "explain ctr-none --all")

    missing = f"nri-resmgr: node {names[2]}: the daemon on node {names[2]} does not run"
    for done in (text, data, top):
        assert done.returncode == 1
        assert done.stderr.startswith(f"{missing} (CrashLoopBackOff); ")
        assert done.stderr.count("\n") == 1
    assert [one for one in names if f"node {one}\n" in text.stdout] == names[:2]
    listed = json.loads(data.stdout)
    items = listed.pop("items")
    assert listed == {"apiVersion": "kubectl.nri-resmgr/v1", "kind": "NodeAnswerList"}
    assert [one["node"] for one in items] == sorted(names[:2])
    assert {one["answer"]["kind"] for one in items} == {"State"}
    # Each frame has the memory of the nodes.
    assert len(re.findall(r"^node 1 +\[", top.stdout, re.MULTILINE)) == len(items)
    # One node has it, so that the others are no failure.
    assert (found.returncode, found.stderr) == (0, "")
    assert [one["node"] for one in json.loads(found.stdout)["items"]] == [names[0]]
    assert nowhere.returncode in (1, 2)
    assert nowhere.stderr.count("\n") == 3


async def test_all_nodes_are_drawn_in_files_of_a_folder(
    cluster: Cluster, tmp_path: Path
) -> None:
    ours, crashing, other = map(cluster.node, ("one", "two", "three"))
    folder = tmp_path / "other"
    folder.mkdir()
    async with at_work(folder), shop_on(ours, cluster, tmp_path):
        cluster.daemon_pod("nri-resmgr-b", other, folder=folder)
        cluster.daemon_pod("nri-resmgr-c", crashing, CRASHING)

        def draw(words: str) -> subprocess.CompletedProcess[str]:
            return cluster.run("picture", "--all", *words.split())

        done = await asyncio.to_thread(draw, "--file now/drawn")
        no_folder = await asyncio.to_thread(draw, "--file daemons.json")

    files = {node: f"now/drawn/nri-resmgr-{node}.svg" for node in (ours, other)}
    assert done.stdout.splitlines() == [files[node] for node in sorted(files)]
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"nri-resmgr: node {crashing}: the daemon on node ")
    drawn = {one.name for one in (cluster.folder / "now" / "drawn").iterdir()}
    assert drawn == {Path(one).name for one in files.values()}
    texts = {node: (cluster.folder / one).read_text() for node, one in files.items()}
    shop = f"{cluster.namespace}/shop/shop"
    assert seen(texts[ours]).colour_of(shop)
    assert shop not in texts[other]
    assert "default/web/web" in texts[other]
    assert (no_folder.returncode, no_folder.stdout) == (1, "")
    assert no_folder.stderr == "nri-resmgr: cannot write daemons.json: file exists\n"


def test_each_mistake_is_one_sentence(cluster: Cluster) -> None:
    ours = cluster.namespace
    bare, crashing = cluster.node("bare"), cluster.node("crashing")
    double, leaving = cluster.node("double"), cluster.node("leaving")
    cluster.daemon_pod("nri-resmgr-crashing", crashing, CRASHING)
    cluster.daemon_pod("nri-resmgr-a", double)
    cluster.daemon_pod("nri-resmgr-b", double)
    cluster.daemon_pod("nri-resmgr-leaving", leaving)
    # No kubelet ends it.
    cluster.kubectl("delete", "pod", "nri-resmgr-leaving", "--wait=false")
    cluster.pod("shop", bare)
    cluster.pod("waiting")

    elsewhere = (
        "; --daemon-namespace names another one, and a daemon that is a service or "
        "launched by the runtime is asked on its node, by nri-resmgr status"
    )
    describe = f"kubectl describe pod -n {ours}"
    waits = f"the daemon on node {crashing} does not run (CrashLoopBackOff)"
    deleted = f"the daemon on node {leaving} does not run (its pod is being deleted)"
    several = f"several pods of nri-resmgr run on node {double}: nri-resmgr-a, "
    advice = (
        "only one may place containers there, so wait for the end of an update, or "
        "remove a DaemonSet in namespace"
    )
    expected = {
        "status --node nowhere": (2, "the cluster has no node nowhere"),
        f"status shop -n {ours}": (
            1,
            f"no pod of nri-resmgr on node {bare} in namespace {ours}{elsewhere}",
        ),
        f"explain none -n {ours}": (
            2,
            'pods "none" not found; -n NAMESPACE names the pod\'s namespace',
        ),
        f"explain waiting -n {ours}": (
            2,
            f"pod {ours}/waiting has no node yet: the scheduler has not placed it",
        ),
        f"top --once --node {crashing}": (
            1,
            f"{waits}; {describe} nri-resmgr-crashing shows more",
        ),
        f"events --node {leaving}": (
            1,
            f"{deleted}; {describe} nri-resmgr-leaving shows more",
        ),
        f"status --node {double}": (
            1,
            f"{several}nri-resmgr-b; {advice} {ours}",
        ),
        f"status --all --daemon-namespace {ours}-other": (
            1,
            f"no pod of nri-resmgr in namespace {ours}-other{elsewhere}",
        ),
        "events --all --follow": (
            2,
            "events --follow needs one node: a POD or --node NODE",
        ),
    }
    for words, (status, sentence) in expected.items():
        done = cluster.run(*words.split())

        assert (done.returncode, done.stdout) == (status, ""), words
        assert done.stderr == f"nri-resmgr: {sentence}\n"


def test_a_user_without_a_right_reads_which_one(
    cluster: Cluster, account: Account, tmp_path: Path
) -> None:
    node = cluster.node("one")
    # Nothing plays this one: the real API server answers.
    cluster.daemon_pod("nri-resmgr-a", node)
    cluster.pod("shop", node)
    kubeconfig = account.kubeconfig(tmp_path / "user.yaml")
    words = ("status", "shop", "-n", cluster.namespace)

    may_nothing = cluster.run(*words, kubeconfig=kubeconfig)
    account.allow(MAY_FIND)
    may_find = cluster.run(*words, kubeconfig=kubeconfig)
    on_all = cluster.run("status", "--all", kubeconfig=kubeconfig)
    account.allow(MAY_FIND, MAY_EXEC)
    may_all = cluster.run(*words, kubeconfig=kubeconfig)

    for done in (may_nothing, may_find, on_all, may_all):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("nri-resmgr: ")
        assert done.stderr.count("\n") == 1
    grant = "; an administrator of the cluster can grant this right\n"
    assert 'cannot get resource "pods"' in may_nothing.stderr
    assert 'cannot create resource "pods/exec"' in may_find.stderr
    assert 'cannot create resource "pods/exec"' in on_all.stderr
    for done in (may_nothing, may_find, on_all):
        assert done.stderr.endswith(grant)
    # There is no kubelet: the API server has not reached the node.
    assert "cannot" not in may_all.stderr


def test_a_node_that_the_user_may_not_read_is_no_obstacle(
    cluster: Cluster, account: Account, tmp_path: Path
) -> None:
    account.allow(MAY_FIND)
    kubeconfig = account.kubeconfig(tmp_path / "user.yaml")

    done = cluster.run("status", "--node", "nowhere", kubeconfig=kubeconfig)

    assert done.returncode == 1
    assert done.stderr.startswith("nri-resmgr: no pod of nri-resmgr on node nowhere ")


def test_without_kubectl_or_cluster_it_says_so(cluster: Cluster) -> None:
    alone = run(cluster.program, "status", "--all", env={"PATH": "/nowhere"})
    nowhere = cluster.run("status", "--all", kubeconfig=Path("/nowhere"))

    assert (alone.returncode, nowhere.returncode) == (1, 1)
    assert alone.stderr == (
        "nri-resmgr: cannot run kubectl: no such file or directory; it has to be on "
        "PATH\n"
    )
    assert nowhere.stderr.startswith("nri-resmgr: ")
    assert nowhere.stderr.count("\n") == 1


def rules_in_docs(kind: str) -> list[Any]:
    """Return the rules of the role that the page suggests."""
    page = (ROOT / "docs" / "kubectl.md").read_text()
    _, _, block = page.partition("```yaml\n")
    documents = yaml.safe_load_all(block.partition("```")[0])
    [rules] = [one["rules"] for one in documents if one["kind"] == kind]
    return list(rules)


async def test_a_bundle_has_all_of_a_node_and_no_secret(
    cluster: Cluster, account: Account, tmp_path: Path, our_kinds: None
) -> None:
    # With the rights that the page names, and no others.
    account.allow(*rules_in_docs("Role"))
    account.allow(*rules_in_docs("ClusterRole"), cluster=True)
    kubeconfig = account.kubeconfig(tmp_path / "user.yaml")
    node, ours = cluster.node("one"), cluster.namespace
    metadata = {"name": "nri-resmgr"}
    config = f"kind: TopologyAwarePolicy\npassword: {PASSWORD}\n"
    cluster.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"config.yaml": config, "token": PASSWORD},
        },
        {
            "apiVersion": "config.nri/v1alpha1",
            "kind": "StaticPolicy",
            "metadata": {"name": "default"},
            "spec": {"reservedResources": {"cpu": "cpuset:3"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "theirs"},
            "stringData": {"password": PASSWORD},
        },
    )
    async with shop_on(node, cluster, tmp_path):
        cluster.pod("shop", node)
        with (tmp_path / "log").open("a") as log:
            log.write(f"2026-11-30 sent to https://me:{PASSWORD}@example.com\n")
        words = ("gather", "shop", "-n", ours, "--file", "bundle.tar.gz")
        done = await asyncio.to_thread(cluster.run, *words, kubeconfig=kubeconfig)
        again = await asyncio.to_thread(cluster.run, *words, kubeconfig=kubeconfig)
        machine = read_machine(HostTree(tmp_path / "host"))

    assert done.returncode == 0, done.stderr
    path = cluster.folder / "bundle.tar.gz"
    assert path.stat().st_mode & 0o777 == 0o600
    files = contents_of(path)
    about = json.loads(files["about.json"])
    head = {"apiVersion": "kubectl.nri-resmgr/v1", "kind": "SupportBundle"}
    assert about.items() >= head.items()
    # The cluster has no report of this node, as no agent runs.
    assert set(about["missing"]) == {f"nodes/{node}/report.json"}
    assert f'"{node}" not found' in done.stderr
    assert done.stderr.count("\n") == 1
    assert set(about["files"]) == set(files) - {"about.json"}
    of_node = {
        name.removeprefix(f"nodes/{node}/")
        for name in files
        if name.startswith("nodes")
    }
    assert of_node == {
        *("status.txt", "state.json", "events.jsonl", "log-levels.txt"),
        *("topology.tgz", "node.json", "pod.json", "explain.txt", "explain.json"),
        *("logs/nri-resmgr.log", "logs/nri-resmgr-before.log"),
    }
    assert not [name for name, data in files.items() if PASSWORD.encode() in data]
    assert b"https://REDACTED@example.com" in files[f"nodes/{node}/logs/nri-resmgr.log"]
    config_map = json.loads(files["cluster/configmap-nri-resmgr.json"])
    assert config_map["data"] == {
        "config.yaml": "kind: TopologyAwarePolicy\npassword: REDACTED\n",
        "token": "REDACTED",
    }
    [document] = json.loads(files["cluster/documents.json"])
    assert document["spec"] == {"reservedResources": {"cpu": "cpuset:3"}}
    # What the daemon says has no secrets to begin with.
    assert "REDACTED" not in files[f"nodes/{node}/state.json"].decode()
    dump = tmp_path / "topology.tgz"
    dump.write_bytes(files[f"nodes/{node}/topology.tgz"])
    assert load_dump(dump) == machine
    assert again.returncode == 1
    assert again.stderr == "nri-resmgr: cannot write bundle.tar.gz: file exists\n"


def test_a_bundle_of_a_daemon_that_does_not_run_says_what_is_missing(
    cluster: Cluster,
) -> None:
    one, two = cluster.node("one"), cluster.node("two")
    cluster.daemon_pod("nri-resmgr-a", one, CRASHING)
    cluster.daemon_pod("nri-resmgr-b", two)
    cluster.daemon_pod("nri-resmgr-c", two)

    done = cluster.run("gather", "--all", "--file", "bundle.tgz")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bundle.tgz: ")
    files = contents_of(cluster.folder / "bundle.tgz")
    about = json.loads(files["about.json"])
    pod = json.loads(files[f"nodes/{one}/pod.json"])
    [status] = pod["status"]["containerStatuses"]
    assert status["state"] == CRASHING
    assert f"nodes/{one}/state.json" in about["missing"]
    assert about["missing"][f"nodes/{two}"].startswith("several pods of nri-resmgr ")
    assert len(done.stderr.splitlines()) == len(about["missing"])


def contents_of(path: Path) -> dict[str, bytes]:
    """Return the files of a bundle, by their names below its folder."""
    found = {}
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) or io.BytesIO()
            folder, _, name = member.name.partition("/")
            assert folder == "bundle"
            found[name] = file.read()
    return found
