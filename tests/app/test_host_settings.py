"""A host follows what is wanted of it, and a failure to do so is logged."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.host.knobs.journal import NAME as JOURNAL
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, KiloHertz
from tests.app.host_rig import NOTHING, host, quiet, wish
from tests.daemon.host_nodes import DISK, INTERRUPTS, NIC, POLICIES
from tests.host.cpu_trees import CPU

pytestmark = pytest.mark.slow


PREFERENCE = f"{POLICIES}/policy3/energy_performance_preference"
MAXIMUM = f"{POLICIES}/policy3/scaling_max_freq"
SET = {PREFERENCE: "power", MAXIMUM: "1200000"}
LESS = parse_spec("2s2c2t offline=3")


async def test_without_a_state_directory_the_host_is_left_as_it_is() -> None:
    with host(state=None) as some, capture_logs() as lines:
        await some.follow(quiet("3"))
        await some.follow(quiet("3-4"))
        some.reconciler.close()

        assert some.changed() == {}
        assert some.report.why_not.startswith("no state directory: ")
        assert [one["event"] for one in lines] == ["host.not-applied"]

        await some.follow(NOTHING)
        assert some.report.why_not == ""


async def test_a_dry_run_logs_the_number_of_files_it_would_change() -> None:
    with host(dry_run=True, state=None) as some, capture_logs() as lines:
        await some.follow(quiet("3", wish("3", ("*eth0*",))))
        await some.follow(quiet("3", wish("3", ("*eth0*",))), looks=True)

        assert some.changed() == {}
        assert some.report.why_not == ""
    assert [one for one in lines if one["log_level"] == "info"] == [
        {"event": "host.would-change", "files": 3, "punits": 0, "log_level": "info"}
    ]


async def test_a_failed_write_is_logged_once_and_retried() -> None:
    with host() as some, capture_logs() as lines:
        (some.root / PREFERENCE[1:]).unlink()
        await some.follow(quiet("3"))
        await some.follow(quiet("2-3"), looks=True)
        failures, failing = some.report.failures, set(some.report.failing)
        assert some.report.drift == 0
        some.set(PREFERENCE, "balance_performance")
        await some.follow(quiet("3"))

        assert (failures, failing) == (2, {PREFERENCE})
        assert some.changed() == SET
        assert some.report.failing == {}
    assert [one["why"] for one in lines if one["event"] == "host.not-written"] == [
        f"cannot write 'power' to {PREFERENCE}: no such file"
    ]


async def test_a_failure_of_many_cpus_is_one_line() -> None:
    with host() as some, capture_logs() as lines:
        for cpu in range(8):
            name = f"policy{cpu}/energy_performance_preference"
            (some.root / POLICIES[1:] / name).unlink()
        await some.follow(quiet("0-7"))

        assert some.report.failures == 8
    logged = [one for one in lines if one["event"] == "host.not-written"]
    assert [one["more"] for one in logged] == [7]


async def test_repairs_are_abandoned_after_five_attempts() -> None:
    with host(repairs=True) as some, capture_logs() as lines:
        await some.follow(quiet("3"))
        for attempt in range(6):
            some.set(MAXIMUM, "900000")
            await some.follow(quiet("3"), looks=True)
            is_mended = some.changed() == SET
            assert is_mended is (attempt < 5)
        assert some.report.abandoned == {MAXIMUM}
        some.set(MAXIMUM, "1200000")
        await some.follow(quiet("3"), looks=True)
        assert some.report.abandoned == set()
        await some.follow(NOTHING)
        assert some.changed() == {}

    events = [one["event"] for one in lines]
    assert (events.count("host.drifted"), events.count("host.abandoned")) == (1, 1)


async def test_without_repairs_drift_is_only_reported() -> None:
    with host() as some, capture_logs() as lines:
        await some.follow(quiet("3"))
        some.set(MAXIMUM, "900000")
        for _ in range(3):
            await some.follow(quiet("3"), looks=True)

        assert some.changed() == SET | {MAXIMUM: "900000"}
        assert some.report.drift == 1
        assert some.report.last.seen[MAXIMUM] == "900000"
    (line,) = [one for one in lines if one["event"] == "host.drifted"]
    assert line["why"].startswith(f"{MAXIMUM} has '900000' instead of '1200000': ")


async def test_a_setting_with_a_new_value_has_not_drifted() -> None:
    with host(repairs=True) as some:
        await some.follow(quiet("3"))
        some.set(MAXIMUM, "900000")
        await some.follow(quiet("2"), looks=True)

        assert some.report.drift == 0
        assert not some.changed().keys() & SET.keys()


async def test_an_interrupt_that_comes_later_is_placed_at_the_next_look() -> None:
    later = "/proc/irq/32/smp_affinity_list"
    with host() as some, capture_logs() as lines:
        use = quiet("3", wish("3", ("*eth0*",), ("*",)))
        await some.follow(use)
        placed = {NIC: "3", DISK: "0-2,4-7"}
        assert some.changed() == SET | placed
        row = " 32:  0  0  PCI-MSI 2-edge      eth0-rx-1\n"
        some.set("/proc/interrupts", INTERRUPTS + row)
        some.set(later, "0-7")
        await some.follow(use, looks=True)

        assert {NIC: "3", DISK: "0-2,4-7", later: "3"}.items() <= some.changed().items()
        await some.follow(NOTHING)
        assert some.changed().keys() == {"/proc/interrupts", later}
        assert some.changed()[later] == "0-7"
    changed = [one for one in lines if one["event"] == "interrupts.changed"]
    assert [one["interrupts"] for one in changed] == [["32 PCI-MSI 2-edge eth0-rx-1"]]


async def test_settings_left_by_a_crash_are_restored_by_the_next_process() -> None:
    with host() as some:
        await some.follow(quiet("3"))
        await some.successor().follow(NOTHING)

        assert some.changed() == {}
        assert some.state.read(JOURNAL) is None


async def test_an_invalid_journal_is_set_aside_and_reported() -> None:
    with host() as some, capture_logs() as lines:
        some.state.write(JOURNAL, "nonsense")
        await some.follow(quiet("3"))

        assert some.changed() == SET
        some.reconciler.close()
        assert some.changed() == {}
    (line,) = [one for one in lines if one["event"] == "host.journal-set-aside"]
    assert line["moved_to"].endswith(f"{JOURNAL}.bad-1")


async def test_nothing_is_written_after_the_end() -> None:
    with host() as some:
        await some.follow(quiet("3"))
        some.reconciler.close()
        await some.follow(quiet("2-4"))

        assert some.changed() == {}


async def test_classes_that_share_a_frequency_are_reported() -> None:
    files = {f"{POLICIES}/policy3/affected_cpus": "3 7"}
    files |= {f"{POLICIES}/policy7/affected_cpus": ""}
    fast = CpuClass(name="fast", max=KiloHertz(3_000_000))
    quiet_ = CpuClass(name="quiet", max=KiloHertz(1_200_000))
    classes = CpuClassUse(classes={"fast": fast, "quiet": quiet_})
    use = HostUse({"fast": CpuSet.of(3), "quiet": CpuSet.of(7)})
    with host(files) as some, capture_logs() as lines:
        await some.follow(use, classes)
        await some.follow(use, classes, looks=True)

        assert some.changed() == {MAXIMUM: "3000000"}
    shared = [one for one in lines if one["event"] == "host.shared-frequency"]
    assert [(one["path"], one["classes"]) for one in shared] == [
        (f"{CPU}/cpufreq/policy3", ["fast", "quiet"])
    ]


async def test_without_verification_only_interrupts_are_looked_at() -> None:
    use = quiet("3", wish("3", ("*eth0*",)))
    with host(verify_interval=0.0, repairs=True) as some, capture_logs() as lines:
        await some.follow(use)
        some.set(MAXIMUM, "900000")
        row = " 32:  0  0  PCI-MSI 2-edge      eth0-rx-1\n"
        some.set("/proc/interrupts", INTERRUPTS + row)
        some.set("/proc/irq/32/smp_affinity_list", "0-7")
        await some.follow(use, looks=True)

        assert some.changed()[MAXIMUM] == "900000"
        assert some.changed()["/proc/irq/32/smp_affinity_list"] == "3"
        assert some.report.drift == 0
    assert "host.drifted" not in {one["event"] for one in lines}


async def test_a_cpu_that_goes_takes_its_class_along_and_comes_back_to_it() -> None:
    folder = f"{POLICIES}/policy3"
    with host() as some:
        await some.follow(quiet("2-3"))
        aside = some.root / "aside"
        (some.root / folder[1:]).rename(aside)
        await some.follow(quiet("2"), machine=LESS)
        assert some.report.failing == {}
        aside.rename(some.root / folder[1:])
        some.set(MAXIMUM, "3800000")
        some.set(PREFERENCE, "balance_performance")
        await some.follow(quiet("2-3"))

        assert SET.items() <= some.changed().items()
        some.reconciler.close()
        assert some.changed() == {}


async def test_a_cpu_that_comes_is_in_its_class() -> None:
    with host() as some:
        await some.follow(quiet("2"), machine=LESS)
        await some.follow(quiet("2-3"))

        assert SET.items() <= some.changed().items()
