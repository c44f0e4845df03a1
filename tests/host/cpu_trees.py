"""Written-out sysfs of machines with several frequency drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec

CPU = "/sys/devices/system/cpu"

#  package 0: cores {0,4} {1,5}     package 1: cores {2,6} {3,7}
MACHINE = parse_spec("2s2c2t")

_CSTATES = ("POLL", "C1", "C1E", "C6")


def write(root: Path, files: Mapping[str, str], machine: Machine = MACHINE) -> None:
    """Write the files of a machine, and *files* of its drivers, below *root*."""
    write_tree(
        msgspec.structs.replace(bare(machine), files={**bare(machine).files, **files}),
        root,
    )


def bare(machine: Machine) -> RecordedTree:
    """Return a machine's files without those of a frequency driver."""
    tree = sysfs_files(machine)
    kept = {path: t for path, t in tree.files.items() if "/cpufreq/" not in path}
    return msgspec.structs.replace(tree, files=kept)


def intel_pstate() -> dict[str, str]:
    """Active mode with hardware-managed states: a policy per CPU, and preferences."""
    words = "default performance balance_performance balance_power power"
    files = {f"{CPU}/intel_pstate/no_turbo": "0"}
    for cpu in range(8):
        files |= _policy(
            cpu,
            str(cpu),
            base_frequency="2000000",
            scaling_driver="intel_pstate",
            scaling_available_governors="performance powersave",
            energy_performance_available_preferences=words,
            energy_performance_preference="balance_performance",
        )
    return files | idle(range(8)) | uncore()


def acpi_cpufreq() -> dict[str, str]:
    """Frequencies of pairs of CPUs, boost off, and no base frequency but firmware's."""
    files = {f"{CPU}/cpufreq/boost": "0", f"{CPU}/cpu1/acpi_cppc/nominal_freq": "2100"}
    for cpu, pair in ((0, "0 4"), (1, "1 5"), (2, "2 6"), (3, "3 7")):
        files |= _policy(
            cpu,
            pair,
            scaling_driver="acpi-cpufreq",
            scaling_available_governors="conservative ondemand performance schedutil",
            scaling_governor="schedutil",
        )
    return files | idle((0, 1, 2, 3)) | idle((4, 5, 6, 7), ("POLL", "C2"))


def amd_pstate() -> dict[str, str]:
    """Active mode of AMD: preferences, and firmware's word for the base frequency."""
    files = {f"{CPU}/cpufreq/boost": "1"}
    words = "default performance balance_performance balance_power power"
    for cpu in range(8):
        files[f"{CPU}/cpu{cpu}/acpi_cppc/nominal_freq"] = "2450" if cpu else "0"
        files |= _policy(
            cpu,
            str(cpu),
            scaling_driver="amd-pstate-epp",
            scaling_available_governors="performance powersave",
            energy_performance_available_preferences=words,
            energy_performance_preference="balance_power",
        )
    return files


def idle(cpus: Iterable[int], names: tuple[str, ...] = _CSTATES) -> dict[str, str]:
    """Idle states of CPUs."""
    files: dict[str, str] = {}
    for cpu in cpus:
        for number, name in enumerate(names):
            folder = f"{CPU}/cpu{cpu}/cpuidle/state{number}"
            files |= {f"{folder}/name": name, f"{folder}/disable": "0"}
    return files


def uncore(*folders: str) -> dict[str, str]:
    """Uncore domains; those of TPMI name their package in a file."""
    files: dict[str, str] = {}
    for name in folders or ("package_00_die_00", "package_01_die_00"):
        folder = f"{CPU}/intel_uncore_frequency/{name}"
        files |= {
            f"{folder}/initial_min_freq_khz": "800000",
            f"{folder}/initial_max_freq_khz": "2400000",
            f"{folder}/min_freq_khz": "800000",
            f"{folder}/max_freq_khz": "2400000",
        }
    return files


def tpmi_domain(name: str, package: int, domain: int) -> dict[str, str]:
    """What an uncore folder of TPMI says of where it is."""
    folder = f"{CPU}/intel_uncore_frequency/{name}"
    numbers = {"package_id": package, "domain_id": domain, "fabric_cluster_id": 0}
    return {f"{folder}/{file}": str(number) for file, number in numbers.items()}


def _policy(leader: int, cpus: str, **files: str) -> dict[str, str]:
    usual = {
        "affected_cpus": cpus,
        "related_cpus": cpus,
        "cpuinfo_min_freq": "800000",
        "cpuinfo_max_freq": "3800000",
        "scaling_min_freq": "800000",
        "scaling_max_freq": "3800000",
        "scaling_governor": "powersave",
    }
    folder = f"{CPU}/cpufreq/policy{leader}"
    return {f"{folder}/{name}": text for name, text in (usual | files).items()}
