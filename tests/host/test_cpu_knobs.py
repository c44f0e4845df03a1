"""What drivers report of frequencies, idle states and uncore, by written files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nri_resmgr.classes.cpu.facts import (
    CpufreqPolicy,
    CpuKnobFacts,
    IdleStates,
    UncoreDomain,
)
from nri_resmgr.host.knobs.cpu import read_cpu_knobs
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import BadHostFile, HostTree
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from tests.host.cpu_trees import (
    CPU,
    MACHINE,
    acpi_cpufreq,
    amd_pstate,
    idle,
    intel_pstate,
    tpmi_domain,
    uncore,
    write,
)

cpus = CpuSet.parse
LOW, HIGH = KiloHertz(800_000), KiloHertz(3_800_000)
EPPS = ("default", "performance", "balance_performance", "balance_power", "power")
UNCORE = f"{CPU}/intel_uncore_frequency"
PLACES = CpuKnobFacts(
    packages=(cpus("0-1,4-5"), cpus("2-3,6-7")),
    cores=(cpus("0,4"), cpus("1,5"), cpus("2,6"), cpus("3,7")),
)


def read(root: Path) -> CpuKnobFacts:
    tree = HostTree(root)
    return read_cpu_knobs(tree, read_machine(tree))


def domain(name: str, text: str) -> UncoreDomain:
    return UncoreDomain(f"{UNCORE}/{name}", cpus(text), LOW, KiloHertz(2_400_000))


def test_a_server_with_intel_pstate(tmp_path: Path) -> None:
    write(tmp_path, intel_pstate())

    assert read(tmp_path) == msgspec.structs.replace(
        PLACES,
        policies=tuple(
            CpufreqPolicy(
                folder=f"{CPU}/cpufreq/policy{cpu}",
                cpus=CpuSet.of(cpu),
                driver="intel_pstate",
                min=LOW,
                max=HIGH,
                base=KiloHertz(2_000_000),
                governors=("performance", "powersave"),
                governor="powersave",
                epps=EPPS,
            )
            for cpu in range(8)
        ),
        idle=(IdleStates(cpus("0-7"), ("POLL", "C1", "C1E", "C6")),),
        uncore=(
            domain("package_00_die_00", "0-1,4-5"),
            domain("package_01_die_00", "2-3,6-7"),
        ),
    )


def test_acpi_cpufreq_shares_frequencies_and_reports_little(tmp_path: Path) -> None:
    write(tmp_path, acpi_cpufreq())

    pairs = {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7"}
    assert read(tmp_path) == msgspec.structs.replace(
        PLACES,
        policies=tuple(
            CpufreqPolicy(
                folder=f"{CPU}/cpufreq/policy{leader}",
                cpus=cpus(pair),
                driver="acpi-cpufreq",
                min=LOW,
                max=HIGH,
                base=KiloHertz(2_100_000) if leader == 1 else None,
                governors=("conservative", "ondemand", "performance", "schedutil"),
                governor="schedutil",
            )
            for leader, pair in pairs.items()
        ),
        idle=(
            IdleStates(cpus("0-3"), ("POLL", "C1", "C1E", "C6")),
            IdleStates(cpus("4-7"), ("POLL", "C2")),
        ),
        is_turbo_off=True,
    )


def test_amd_pstate_has_its_base_frequency_from_firmware(tmp_path: Path) -> None:
    write(tmp_path, amd_pstate())
    found = read(tmp_path)

    bases = [policy.base for policy in found.policies]
    assert bases == [None] + [KiloHertz(2_450_000)] * 7
    assert {policy.epps for policy in found.policies} == {EPPS}
    assert (found.idle, found.is_turbo_off) == ((), False)


def test_a_virtual_machine_has_nothing_to_set(tmp_path: Path) -> None:
    write(tmp_path, {})

    assert read(tmp_path) == PLACES


def test_turbo_that_intel_pstate_has_off(tmp_path: Path) -> None:
    write(tmp_path, intel_pstate() | {f"{CPU}/intel_pstate/no_turbo": "1"})

    assert read(tmp_path).is_turbo_off


def test_offline_cpus_have_no_knobs(tmp_path: Path) -> None:
    files = intel_pstate() | {f"{CPU}/cpufreq/policy7/affected_cpus": ""}
    files[f"{CPU}/cpufreq/policy8/affected_cpus"] = "8"  # it came a moment ago
    write(tmp_path, files | idle((8,)))
    found = read(tmp_path)

    assert [policy.cpus.first for policy in found.policies] == list(range(7))
    assert CpuSet.union(same.cpus for same in found.idle) == cpus("0-7")


def test_many_policies_and_states_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    states = tuple(f"C{number}" for number in range(12))
    machine = parse_spec("12c")
    files = idle(range(12), states)
    for cpu in range(12):
        files[f"{CPU}/cpufreq/policy{cpu}/affected_cpus"] = str(cpu)
    write(tmp_path, files, machine)
    found = read(tmp_path)

    assert [policy.cpus.first for policy in found.policies] == list(range(12))
    assert found.idle == (IdleStates(cpus("0-11"), states),)


def test_nothing_is_taken_for_a_state_behind_a_gap(tmp_path: Path) -> None:
    files = idle((0,), ("POLL", "C1", "C6"))
    del files[f"{CPU}/cpu0/cpuidle/state1/name"]
    del files[f"{CPU}/cpu0/cpuidle/state1/disable"]
    write(tmp_path, files)

    assert read(tmp_path).idle == (IdleStates(cpus("0"), ("POLL",)),)


def test_clusters_are_set_where_dies_are_not(tmp_path: Path) -> None:
    names = ("uncore00", "uncore01", "uncore02", "package_01_die_00")
    files = uncore(*names)
    for name, package, number in (
        ("uncore00", 0, 0),
        ("uncore01", 0, 1),
        ("uncore02", 1, 0),
    ):
        files |= tpmi_domain(name, package, number)
    write(tmp_path, files)

    assert read(tmp_path).uncore == (
        domain("package_01_die_00", "2-3,6-7"),
        domain("uncore00", "0-1,4-5"),
        domain("uncore01", "0-1,4-5"),
    )


def test_a_die_that_has_no_cpus_stands_for_its_package(tmp_path: Path) -> None:
    write(tmp_path, uncore("package_00_die_03"))

    assert read(tmp_path).uncore == (domain("package_00_die_03", "0-1,4-5"),)


@pytest.mark.parametrize(
    "path",
    [
        f"{CPU}/cpufreq/policy0/affected_cpus",
        f"{CPU}/cpufreq/policy0/base_frequency",
        f"{UNCORE}/package_00_die_00/initial_max_freq_khz",
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, path: str) -> None:
    write(tmp_path, intel_pstate())
    tree = HostTree(tmp_path)
    machine = msgspec.structs.replace(read_machine(tree), uncore=())
    (tmp_path / path[1:]).write_text("?")

    with pytest.raises(BadHostFile) as found:
        read_cpu_knobs(tree, machine)
    assert str(found.value).startswith(f"{tmp_path}{path}: ")


def test_speed_select_is_the_machines(tmp_path: Path) -> None:
    write(tmp_path, {})
    machine = msgspec.structs.replace(MACHINE, has_speed_select=True)

    found = read_cpu_knobs(HostTree(tmp_path), machine)
    assert (found.has_speed_select, found.punits) == (True, ())
