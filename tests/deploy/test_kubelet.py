"""The kubelet of the tests reads all of a manifest, or refuses it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.kubectl import COMPONENTS, MANIFESTS, rendered, with_component
from tests.deploy.kubelet import Kubelet, VolumeMissing, write_config_map
from tests.deploy.pod import container_of, pod_of
from tests.deploy.translated import NotTranslated, Probe
from tests.real_host._gen import cri_pb2 as pb

pytestmark = pytest.mark.process


def kubelet_on(folder: Path) -> Kubelet:
    """One of a node with all directories but those that it has to make."""
    node = folder / "node"
    for path in ("var/run/nri", "sys/fs/cgroup", "proc"):
        (node / path).mkdir(parents=True, exist_ok=True)
    return Kubelet("/kubepods", folder / "pods", lambda path: node / path.lstrip("/"))


def changed(change: Callable[[dict[str, Any]], object]) -> tuple[dict[str, Any], ...]:
    """Render the base, and change its pod."""
    objects = copy.deepcopy(rendered(MANIFESTS / "base"))
    change(pod_of(objects))
    return objects


def test_mounts_and_rights_are_those_of_the_manifest(tmp_path: Path) -> None:
    wanted = kubelet_on(tmp_path).wanted(rendered(MANIFESTS / "base"))
    config = wanted.container
    context = config.linux.security_context
    own = wanted.sandbox.log_directory

    assert {
        mount.container_path: (mount.host_path, mount.readonly)
        for mount in config.mounts
    } == {
        "/var/run/nri": ("/var/run/nri", True),
        "/etc/nri-resmgr": (f"{own}/config", True),
        "/var/lib/nri-resmgr": ("/var/lib/nri-resmgr", False),
        "/run/nri-resmgr": ("/run/nri-resmgr", False),
        "/host/sys": ("/sys", True),
        "/host/sys/fs/cgroup": ("/sys/fs/cgroup", False),
        "/host/proc": ("/proc", True),
        "/var/lib/kubelet/pods-api": ("/var/lib/kubelet/pods-api", True),
        "/var/lib/kubelet/pod-resources": ("/var/lib/kubelet/pod-resources", True),
    }
    assert (context.readonly_rootfs, context.no_new_privs, context.privileged) == (
        *(True, True, False),
    )
    assert list(context.capabilities.drop_capabilities) == ["ALL"]
    assert context.namespace_options.pid == pb.CONTAINER
    assert config.linux.resources.oom_score_adj == -997
    assert wanted.probes["readinessProbe"] == Probe("/readyz", 8892)
    assert "--health-endpoint=[127.0.0.1]:8892" in config.args
    assert [(one.key, one.value) for one in config.envs] == [("POD_IP", b"127.0.0.1")]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        pytest.param(
            lambda pod: pod.update(shareProcessNamespace=True),
            "pod: shareProcessNamespace",
            id="a field of the pod",
        ),
        pytest.param(
            lambda pod: container_of(pod).update(lifecycle={}),
            "container: lifecycle",
            id="a field of the container",
        ),
        pytest.param(
            lambda pod: container_of(pod)["securityContext"].update(
                procMount="Unmasked"
            ),
            "securityContext: procMount",
            id="a field of the security context",
        ),
        pytest.param(
            lambda pod: container_of(pod)["securityContext"].update(privileged=True),
            "securityContext: privileged: True, not False",
            id="a privileged container",
        ),
        pytest.param(
            lambda pod: container_of(pod)["env"].append({"name": "A", "value": "b"}),
            "env: valueFrom: None, not {'fieldRef': {'fieldPath': 'status.podIP'}}",
            id="another variable",
        ),
        pytest.param(
            lambda pod: container_of(pod)["volumeMounts"][0].update(subPath="one"),
            "volumeMount: subPath",
            id="a field of a mount",
        ),
        pytest.param(
            lambda pod: container_of(pod)["livenessProbe"].update(exec={}),
            "livenessProbe: exec",
            id="a probe of another kind",
        ),
        pytest.param(
            lambda pod: pod["volumes"].append({"name": "new", "emptyDir": {}}),
            "volume: {'name': 'new', 'emptyDir': {}}",
            id="a volume of another kind",
        ),
    ],
)
def test_unknown_fields_of_a_manifest_are_refused(
    change: Callable[[dict[str, Any]], object], where: str, tmp_path: Path
) -> None:
    with pytest.raises(NotTranslated) as refused:
        kubelet_on(tmp_path).wanted(changed(change))

    assert str(refused.value) == where


def test_a_directory_that_is_not_there_is_made_only_on_request(tmp_path: Path) -> None:
    kubelet = kubelet_on(tmp_path)
    kubelet.wanted(rendered(MANIFESTS / "base"))
    made = kubelet.seen("/var/lib/nri-resmgr").is_dir()
    kubelet.seen("/sys/fs/cgroup").rmdir()

    assert made
    with pytest.raises(VolumeMissing, match=r"^/sys/fs/cgroup is no Directory$"):
        kubelet.wanted(rendered(MANIFESTS / "base"))


@pytest.mark.parametrize(
    "component",
    [name for name in COMPONENTS if name not in {"selinux", "speed-select"}],
)
def test_the_kubelet_of_the_tests_reads_all_components(
    component: str, tmp_path: Path
) -> None:
    folder = tmp_path / "overlay"
    folder.mkdir()
    kubelet = kubelet_on(tmp_path)
    for path in (
        *("/sys/fs/resctrl", "/sys/devices/system/cpu", "/proc/irq", "/dev"),
        "/run/dbus",
    ):
        kubelet.seen(path).mkdir(parents=True)
    objects = with_component(folder, component)
    shown = container_of(pod_of(objects))
    config = kubelet.wanted(objects).container
    context = config.linux.security_context

    assert len(config.mounts) == len(shown["volumeMounts"])
    assert (
        list(context.capabilities.add_capabilities)
        == (shown["securityContext"]["capabilities"]["add"])
    )
    assert (context.namespace_options.pid == pb.NODE) == (
        pod_of(objects).get("hostPID", False)
    )


def test_files_of_a_config_map_change_at_once(tmp_path: Path) -> None:
    write_config_map(tmp_path, {"one": "a", "two": "a"})
    before = (tmp_path / "one").read_text(), (tmp_path / "two").read_text()
    write_config_map(tmp_path, {"one": "b", "two": "b"})

    assert before == ("a", "a")
    assert ((tmp_path / "one").read_text(), (tmp_path / "two").read_text()) == (
        *("b", "b"),
    )
