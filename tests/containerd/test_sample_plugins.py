"""Plugins with annotations of containerd/nri and nri-plugins, on a real containerd."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.testing import SessionReplayer
from tests.real_host.connected import connected
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options
from tests.real_host.cri import CallFailed
from tests.real_host.namespaces import new_namespace
from tests.real_host.patience import wait_until
from tests.real_host.pod_network import install_pod_network
from tests.real_host.pods import Container, PodSpec
from tests.real_host.resources import MIB, Resources
from tests.test_runtime.logged_session import Witness

pytestmark = pytest.mark.containerd

CDI_SPEC: Final = {
    "cdiVersion": "0.6.0",
    "kind": "example.com/gpu",
    "devices": [{"name": "0", "containerEdits": {"env": ["GPU=zero"]}}],
}

IS_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers").exists()

# NRI 0.7, of which containerd's first release has 0.8.
CDI_RELEASE: Final = (2, 0)

# Says that the host guards cgroups, whatever is true here.
DELEGATED: Final = "31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"


# Requests of a container and of the end of a pod.
CREATION: Final = ("Create", "PostCreate", "Start", "PostStart")
END: Final = ("StopPodSandbox", "RemoveContainer", "RemovePodSandbox")


def start(daemon: Containerd, annotations: Mapping[str, str]) -> Container:
    resources = Resources.best_effort()
    spec = PodSpec("web", qos=resources.qos, annotations=annotations)
    return daemon.run_pod(spec).start("app", resources)


def limits_of(container: Container) -> dict[str, list[str]]:
    """Return soft and hard limits of the first process by their names."""
    text = Path("/proc", str(container.cgroup.processes()[0]), "limits").read_text()
    rows = [re.split(r"  +", line) for line in text.splitlines()]
    return {row[0]: row[1:3] for row in rows}


def options_of_cgroups(container: Container) -> set[str]:
    """Return the first option of the mounts of cgroups: one, or one for each v1 one."""
    rows = container.exec("cat", "/proc/self/mountinfo").splitlines()
    return {row.split()[5].split(",")[0] for row in rows if " - cgroup" in row}


def test_ulimits_are_those_of_the_annotation(
    containerd: Containerd, tmp_path: Path
) -> None:
    text = "[{type: nofile, soft: 1000, hard: 2000}, {type: core, hard: 4096}]"
    wrong = "[{type: files}]"
    key = "ulimits.noderesource.dev/container.app"
    with connected(containerd, "ulimit-adjuster", tmp_path / "log"):
        limits = limits_of(start(containerd, {key: text}))
        refused = rf"annotation {key}: \$\[0\].type: 'files' is none of"
        with pytest.raises(CallFailed, match=refused):
            start(containerd, {key: wrong})

    assert limits["Max open files"] == ["1000", "2000"]
    assert limits["Max core file size"] == ["0", "4096"]


def test_devices_and_mounts_are_those_of_the_annotations(
    containerd: Containerd, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "note").write_text("from the host")
    annotations = {
        "devices.noderesource.dev/container.app": (
            "[{path: /dev/void, type: c, major: 1, minor: 3, file_mode: 0640, gid: 7}]"
        ),
        "mounts.noderesource.dev": f"""
          - source: {tmp_path / "models"}
            destination: /models
            type: bind
            options: [bind, ro]
        """,
    }
    with connected(containerd, "device-injector", tmp_path / "log"):
        container = start(containerd, annotations)
        with pytest.raises(CallFailed, match="destination: missing"):
            start(containerd, {"mounts.noderesource.dev": "[{source: /a}]"})

    listed = container.exec("ls", "-ln", "/dev/void").split()
    assert (listed[0], listed[2:6]) == ("crw-r-----", ["0", "7", "1,", "3"])
    assert container.exec("cat", "/dev/void") == ""
    assert container.exec("cat", "/models/note") == "from the host"


@pytest.fixture
def cdi(containerd: Containerd) -> Iterator[None]:
    """Have containerd know a CDI device."""
    path = containerd.layout.folder / "cdi" / "example.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(CDI_SPEC))
    yield
    path.unlink()


@pytest.mark.usefixtures("cdi")
def test_cdi_devices_are_injected_where_the_runtime_can(
    containerd: Containerd, tmp_path: Path
) -> None:
    annotations = {"cdi-devices.noderesource.dev/pod": "[example.com/gpu=0]"}
    log = tmp_path / "log"
    with connected(containerd, "device-injector", log):
        environment = start(containerd, annotations).exec("env").splitlines()

    can = containerd.release >= CDI_RELEASE
    assert ("GPU=zero" in environment) == can
    assert ("adjustment.too-new" in log.read_text()) == (not can)


def test_hooks_run(containerd: Containerd, tmp_path: Path) -> None:
    program, state = tmp_path / "note-state", tmp_path / "state"
    program.write_text(f"#!/bin/sh\ncat > {state}\n")
    program.chmod(0o755)
    hook = {
        "version": "1.0.0",
        "hook": {"path": str(program)},
        "when": {"annotations": {"^example.com/noted$": "^true$"}},
        "stages": ["createRuntime"],
    }
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "note.json").write_text(json.dumps(hook))
    config = tmp_path / "config.yaml"
    config.write_text(f"directories: [{tmp_path / 'hooks'}]")
    flags = ("--config", str(config))
    with connected(containerd, "hook-injector", tmp_path / "log", *flags):
        start(containerd, {"example.com/noted": "false"})
        assert not state.exists()
        container = start(containerd, {"example.com/noted": "true"})

    assert json.loads(state.read_text())["id"] == container.id


def test_cgroups_are_writable_where_the_host_guards_them(
    containerd: Containerd, tmp_path: Path
) -> None:
    (tmp_path / "delegated").write_text(DELEGATED)
    (tmp_path / "other").write_text(DELEGATED.replace(",nsdelegate", ""))
    annotations = {"cgroups.noderesource.dev/writable": "true"}
    found = {}
    for name in ("delegated", "other"):
        config = tmp_path / "config.yaml"
        config.write_text(f"hostMountFile: {tmp_path / name}")
        flags = ("--config", str(config))
        with connected(containerd, "writable-cgroups", tmp_path / "log", *flags):
            found[name] = options_of_cgroups(start(containerd, annotations))

    assert found == {"delegated": {"rw"}, "other": {"ro"}}


def test_groups_are_left_out_with_a_line_in_the_log_by_old_runtimes(
    containerd: Containerd, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with connected(containerd, "rdt", log):
        start(containerd, {})
        assert "adjustment.too-new" not in log.read_text()
        start(containerd, {"closid.rdt.noderesource.dev/container.app": "gold"})
        wait_until(
            lambda: "adjustment.too-new" in log.read_text(), "the line of the plugin"
        )

    (line,) = [one for one in log.read_text().splitlines() if "too-new" in one]
    assert "needs=0.11.0" in line


def test_changes_of_other_plugins_are_logged(
    containerd: Containerd, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with (
        connected(containerd, "ulimit-adjuster", tmp_path / "other"),
        connected(containerd, "differ", log, sessions=2),
    ):
        start(containerd, {})
        text = "[{type: nofile, soft: 1000, hard: 2000}]"
        start(containerd, {"ulimits.noderesource.dev/container.app": text})

    lines = [line for line in log.read_text().splitlines() if "request.changed" in line]
    limit = {"type": "RLIMIT_NOFILE", "hard": 2000, "soft": 1000}
    assert len(lines) == 1
    assert f"after={[limit]} before=[] between='00 and 99'" in lines[0]
    assert "container=default/web/app field=rlimits method=CreateContainer" in lines[0]


def test_pods_are_logged(containerd: Containerd, tmp_path: Path) -> None:
    log = tmp_path / "log"
    containerd.run_pod(PodSpec("early"))
    with connected(containerd, "network-logger", log):
        pod = containerd.run_pod(PodSpec("late"))
        pod.remove()

    events = [line.partition("] ")[2].split() for line in log.read_text().splitlines()]
    # Pods of these tests have the host's network.
    assert [
        (words[0], words[-1]) for words in events if "network=<host-network>" in words
    ] == [
        ("pod.runs", "pod=default/early"),
        ("pod.started", "pod=default/late"),
        ("pod.stopped", "pod=default/late"),
        ("pod.removed", "pod=default/late"),
    ]


async def test_what_the_logger_records_is_replayed(
    containerd: Containerd, tmp_path: Path
) -> None:
    file = tmp_path / "session.jsonl"
    early = containerd.run_pod(PodSpec("early"))
    early.start("app", Resources.guaranteed(0.1))
    flags = ("--format", "json", "--log-file", str(file), "--log-level", "info")
    with connected(containerd, "logger", tmp_path / "log", *flags):
        start(containerd, {"a/b": "c"})
        early.remove()
    witness = Witness()

    answers = await SessionReplayer(tmp_path, tmp_path)(file, witness)

    assert [(one.request, one.pod and one.pod.name) for one in answers] == [
        ("Synchronize", None),
        ("RunPodSandbox", "web"),
        *((f"{name}Container", "web") for name in CREATION),
        *((name, "early") for name in ("StopContainer", *END)),
    ]
    (_, pods, containers), (_, pod), (_, _, container), *_ = witness.seen
    assert [one.name for one in (*pods, *containers)] == ["early", "app"]
    assert (pod.annotations["a/b"], container.name) == ("c", "app")
    assert container.linux.cgroups_path


def test_a_network_device_is_in_the_pod_until_it_stops(
    new_containerd: Callable[[Options], Containerd], tmp_path: Path
) -> None:
    daemon = new_containerd(Options())
    install_pod_network(daemon.layout)
    daemon.start()
    asks = {"netdevices.noderesource.dev": "[{name: fast, new_name: eth1}]"}
    with new_namespace() as host:
        host.add("fast")
        before = host.devices()
        flags = (daemon, "network-device-injector", tmp_path / "log")
        with connected(*flags, within=host.enter):
            pod = daemon.run_pod(PodSpec("web", own_network=True, annotations=asks))
            container = pod.start("app", Resources.guaranteed(0.1))
            inside = container.exec("ls", "/sys/class/net").split()
            during = host.devices()
            pod.remove()
            after = host.devices()
            with pytest.raises(CallFailed, match="default/on-host: has the host's"):
                daemon.run_pod(PodSpec("on-host", annotations=asks))

    assert (inside, set(during)) == (["eth1", "lo"], set(before) - {"fast"})
    # containerd 1.7 ends the network before it reports that the pod stops, and with it
    # the kernel deletes a virtual device.
    assert after.keys() == (before.keys() if daemon.release >= (2, 0) else set())


@pytest.mark.parametrize(
    ("name", "annotations", "sentence"),
    [
        pytest.param(
            "memory-policy",
            {"policy.memory-policy.nri.io": "{mode: MPOL_LOCAL}"},
            "default/web/app asks for a memory policy, which NRI 0.",
            id="a policy, which its NRI does not know",
        ),
        pytest.param(
            "memory-qos",
            {"class.memory-qos.nri.io": "bronze"},
            "default/web/app asks for memory QoS class 'bronze'; none is defined",
            id="a class",
        ),
        pytest.param(
            "sgx-epc",
            {"epc-limit.nri.io": "much"},
            "'much' is no limit",
            id="a limit",
        ),
    ],
)
def test_what_a_plugin_refuses_is_not_created(
    containerd: Containerd,
    tmp_path: Path,
    name: str,
    annotations: dict[str, str],
    sentence: str,
) -> None:
    with connected(containerd, name, tmp_path / "log"):
        start(containerd, {})
        with pytest.raises(CallFailed, match=sentence):
            start(containerd, annotations)


def test_memory_qos_is_in_the_cgroup_and_follows_a_resize(
    containerd: Containerd, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("classes: [{name: bronze, swapLimitRatio: 0.25}]")
    spec = PodSpec("web", annotations={"class.memory-qos.nri.io/app": "bronze"})
    flags = ("--config", str(config))
    with connected(containerd, "memory-qos", tmp_path / "log", *flags):
        pod = containerd.run_pod(spec)
        if not IS_V2:
            with pytest.raises(CallFailed, match="which cgroup v1 does not have"):
                pod.start("app", Resources.guaranteed(0.1))
            return
        container = pod.start("app", Resources.guaranteed(0.1, 64 * MIB))
        found = [container.cgroup.read("memory.high")]
        container.update(Resources.guaranteed(0.1, 128 * MIB))
        found.append(container.cgroup.read("memory.high"))

    assert found == [str(48 * MIB), str(96 * MIB)]
