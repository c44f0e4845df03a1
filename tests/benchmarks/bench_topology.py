"""How long it takes to know the machine; part of the daemon's start."""

from __future__ import annotations

from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology.synthetic import parse_spec

SPEC = "2s2n32c2t l3=8"  # 256 CPUs, with cpufreq
ROUNDS = 30


def test_a_model_of_256_cpus_read_from_sysfs(
    benchmark: BenchmarkFixture, tmp_path: Path
) -> None:
    write_tree(sysfs_files(parse_spec(SPEC)), tmp_path)
    benchmark.extra_info["aim"] = "≤ 100000"

    benchmark.pedantic(read_machine, (HostTree(tmp_path),), rounds=ROUNDS)


def test_a_model_of_256_cpus_loaded_from_a_dump(
    benchmark: BenchmarkFixture, tmp_path: Path
) -> None:
    write_tree(sysfs_files(parse_spec(SPEC)), tmp_path / "root")
    dump = tmp_path / "machine.tgz"
    write_dump(HostTree(tmp_path / "root"), dump)
    benchmark.extra_info["aim"] = "≤ 20000"

    benchmark.pedantic(load_dump, (dump,), rounds=ROUNDS)
