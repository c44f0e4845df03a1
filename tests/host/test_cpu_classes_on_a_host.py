"""CPU classes that come and go on a host, and what is left of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord
from nri_resmgr.classes.cpu.desired import desired
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.host.knobs.cpu import read_cpu_knobs
from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.values import CpuSet, KiloHertz
from tests.classes.cpu.draws import CLASSES, MEMBERS
from tests.examples import examples
from tests.host.cpu_kernel import CpuKernel
from tests.host.cpu_trees import (
    CPU,
    MACHINE,
    acpi_cpufreq,
    amd_pstate,
    intel_pstate,
    write,
)
from tests.host.knobs_on_disk import knobs_on_disk

cpus = CpuSet.parse
DRIVERS = [
    (files, read_cpu_knobs(RecordedTree(files), MACHINE))
    for files in (intel_pstate(), acpi_cpufreq(), amd_pstate())
]
FAST = CpuClass(
    name="fast",
    min=FrequencyWord.BASE,
    max=FrequencyWord.TURBO,
    governor="performance",
    epp="performance",
    uncore_min=KiloHertz(2_000_000),
    disabled_cstates=("C6",),
)
SLOW = CpuClass(name="slow", max=KiloHertz(1_200_000), epp=255, governor="powersave")
BOTH = {"fast": FAST, "slow": SLOW}


def contents(root: Path) -> dict[str, str]:
    files = [path for path in (root / CPU[1:]).rglob("*") if path.is_file()]
    return {f"/{path.relative_to(root)}": path.read_text().strip() for path in files}


def test_a_class_is_in_the_files_of_its_cpus_and_of_no_others(tmp_path: Path) -> None:
    root = tmp_path / "host"
    write(root, intel_pstate())
    tree, before = HostTree(root), contents(root)
    facts = read_cpu_knobs(tree, read_machine(tree))
    state = StateDir.open(str(tmp_path / "state"))
    knobs = knobs_on_disk(root, state)

    knobs.apply(desired(BOTH, {"fast": cpus("1"), "slow": cpus("2")}, facts))
    changed = {path: t for path, t in contents(root).items() if before[path] != t}
    assert changed == {
        f"{CPU}/cpufreq/policy1/scaling_governor": "performance",
        f"{CPU}/cpufreq/policy1/energy_performance_preference": "performance",
        f"{CPU}/cpufreq/policy1/scaling_min_freq": "2000000",
        f"{CPU}/cpu1/cpuidle/state3/disable": "1",
        f"{CPU}/intel_uncore_frequency/package_00_die_00/min_freq_khz": "2000000",
        f"{CPU}/cpufreq/policy2/energy_performance_preference": "power",
        f"{CPU}/cpufreq/policy2/scaling_max_freq": "1200000",
    }

    # It ends without a word; the next one claims less.
    successor = knobs_on_disk(root, state)
    successor.apply(desired(BOTH, {"slow": cpus("2")}, facts))
    left = {path: t for path, t in contents(root).items() if before[path] != t}
    assert left == {path: t for path, t in changed.items() if "policy2" in path}
    successor.restore_all()
    assert contents(root) == before


def test_a_preference_comes_back_once_the_governor_lets_it(tmp_path: Path) -> None:
    before, facts = DRIVERS[0]
    kernel = CpuKernel(before)
    state = StateDir.open(str(tmp_path / "state"))
    knobs = Knobs(kernel, KnobJournal(state, "boot"))
    # The governor of the second class is not the one of before.
    classes = {
        "fast": CpuClass(name="fast", governor="performance"),
        "slow": CpuClass(name="slow", governor="powersave", max=KiloHertz(900_000)),
    }

    for name in ("fast", "slow", "fast"):
        files = desired(classes, {name: cpus("1")}, facts)
        assert knobs.apply(files).failed == ()
        assert {path: kernel.files[path] for path in files} == files
    assert knobs.restore_all().failed == ()
    assert kernel.files == before


def test_a_preference_is_written_again_when_its_governor_goes(tmp_path: Path) -> None:
    before, facts = DRIVERS[0]
    kernel = CpuKernel(before)
    state = StateDir.open(str(tmp_path / "state"))
    knobs = Knobs(kernel, KnobJournal(state, "boot"))
    classes = {
        "eager": CpuClass(name="eager", epp="performance"),
        "fast": CpuClass(name="fast", governor="performance"),
    }

    for name in ("fast", "eager"):
        files = desired(classes, {name: cpus("1")}, facts)
        knobs.apply(files)
        assert {path: kernel.files[path] for path in files} == files
    assert knobs.restore_all().failed == ()
    assert kernel.files == before


@given(
    driver=st.sampled_from(DRIVERS),
    classes=CLASSES,
    moments=st.lists(MEMBERS, min_size=1, max_size=4),
)
@examples(0.3)
def test_any_changes_are_accepted_by_drivers_and_restored(
    tmp_path_factory: pytest.TempPathFactory,
    driver: tuple[Mapping[str, str], CpuKnobFacts],
    classes: Mapping[str, CpuClass],
    moments: list[Mapping[str, CpuSet]],
) -> None:
    before, facts = driver
    kernel = CpuKernel(before)
    state = StateDir.open(str(tmp_path_factory.mktemp("state")))
    knobs = Knobs(kernel, KnobJournal(state, "boot"))

    for members in moments:
        files = desired(classes, members, facts)
        report = knobs.apply(files)
        assert not [one for one in report.failed if not _is_known(one.path, files)]
        if not report.failed:
            assert {path: kernel.files[path] for path in files} == files
    assert knobs.restore_all().failed == ()
    assert kernel.files == before


def _is_known(path: str, files: Mapping[str, str]) -> bool:
    """Return whether a preference is refused because of the host's own governor.

    `check` reports it: the class says nothing of governors.
    """
    folder, _, name = path.rpartition("/")
    return (
        name == "energy_performance_preference"
        and f"{folder}/scaling_governor" not in files
    )
