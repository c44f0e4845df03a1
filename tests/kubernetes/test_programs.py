"""A folder of other programs, such as those of another release, takes their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.programs import Programs, kubelet, programs
from tests.real_host.debian import PackageUnavailable


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the environment names; still empty."""
    folder = tmp_path / "assets"
    folder.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


def _word(pid: int) -> Path:
    """Return the first word of a process' command."""
    return Path(Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0])


def test_its_programs_are_run(
    kubernetes: Programs, assets: Path, tmp_path: Path
) -> None:
    for path in (kubernetes.api_server, kubernetes.etcd, kubernetes.kubectl):
        (assets / path.name).symlink_to(path)
    (tmp_path / "cluster").mkdir()
    own = ControlPlane(programs(), tmp_path / "cluster")
    try:
        own.create()
        running = {name: _word(pid) for name, pid in own.pids.items()}
        listed = own.kubectl("get", "namespaces", "--output=name")
    finally:
        own.close()

    assert running == {name: assets / name for name in ("etcd", "kube-apiserver")}
    assert programs().kubectl == assets / "kubectl"
    assert own.release == kubernetes.release
    assert "namespace/kube-system" in listed.split()


def test_a_missing_program_is_named(assets: Path) -> None:
    for name in ("kube-apiserver", "kubectl"):
        (assets / name).touch()

    with pytest.raises(PackageUnavailable, match=f"{assets} .* has no etcd$"):
        programs()


def test_a_program_that_does_not_run_is_named(assets: Path) -> None:
    for name in ("kube-apiserver", "etcd", "kubectl"):
        (assets / name).write_text("#!/bin/sh\necho of another machine >&2; exit 1\n")
        (assets / name).chmod(0o755)

    reason = f"{assets}/kube-apiserver does not run here: of another machine"
    with pytest.raises(PackageUnavailable, match=reason):
        programs()


def test_only_tests_of_the_kubelet_need_one(kubernetes: Programs, assets: Path) -> None:
    for path in (kubernetes.api_server, kubernetes.etcd, kubernetes.kubectl):
        (assets / path.name).symlink_to(path)

    with pytest.raises(PackageUnavailable, match=f"{assets} .* has no kubelet"):
        kubelet()
    (assets / "kubelet").touch()

    assert kubelet() == assets / "kubelet"
    assert programs().release == kubernetes.release
