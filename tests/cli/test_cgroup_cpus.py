"""Configurations that name the CPUs of a cgroup, in commands with a tree of a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.values import CpuSet
from tests.cli.command import nri_resmgr

KINDS = (
    *("TopologyAwarePolicy", "BalloonsPolicy", "StaticPolicy", "StaticPlusPolicy"),
    *("PodpoolsPolicy", "DynamicPoolsPolicy"),
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    cgroup = tmp_path / "host/sys/fs/cgroup/user.slice"
    cgroup.mkdir(parents=True)
    (cgroup / "cpuset.cpus.effective").write_text("2-5\n")
    (tmp_path / "pods.yaml").write_text(
        "machine: 1s1n8c1t\nstory:\n  - {create: log, best-effort: 0}\n"
    )
    return tmp_path


def document(files: Path, kind: str, cpu: str) -> str:
    path = files / "my.yaml"
    path.write_text(
        f"apiVersion: config.nri/v1alpha1\nkind: {kind}\n"
        f"spec: {{availableResources: {{cpu: '{cpu}'}}, "
        "reservedResources: {cpu: 1}}\n"
    )
    return str(path)


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cpu", ["cgroup:user.slice", "/user.slice"])
def test_simulate_reads_them_below_the_hosts_root(
    files: Path, kind: str, cpu: str
) -> None:
    done = nri_resmgr(
        "simulate",
        *("--host-root", str(files / "host")),
        *("--config-file", document(files, kind, cpu)),
        str(files / "pods.yaml"),
    )

    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("default"))
    cpus = CpuSet.parse(row.split()[4])
    assert cpus
    assert cpus <= CpuSet.parse("2-5")


@pytest.mark.process
def test_a_missing_cgroup_is_named_with_its_file(files: Path) -> None:
    done = nri_resmgr(
        "simulate",
        *("--host-root", str(files / "host")),
        *("--config-file", document(files, "StaticPlusPolicy", "/away")),
        str(files / "pods.yaml"),
    )

    assert done.returncode == 2
    why = "/sys/fs/cgroup/away/cpuset.cpus.effective: no such file"
    assert f"$.spec.availableResources.cpu: no CPUs of cgroup /away: {why}" in (
        done.stderr
    )
