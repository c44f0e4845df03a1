"""Interrupts and Speed Select of a host follow what is wanted of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from nri_resmgr.classes.cpu.cpu_class import CpuClass, PctPriority
from nri_resmgr.classes.irq.requests import BalloonCpus, IrqMode, IrqRule
from nri_resmgr.classes.isolation.requests import (
    IrqBalancing,
    Isolated,
    IsolationRequest,
)
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.host.irqbalance import MARK as IRQBALANCE_RECORD
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.values import CpuSet, KiloHertz
from tests.app.host_rig import NOTHING, Host, host, quiet, wish
from tests.daemon.host_nodes import DEFAULT, DISK, NIC
from tests.host.irqbalance_double import Balancer
from tests.host.isst_driver import IsstDriver
from tests.host.test_sst_knobs import MACHINE

pytestmark = pytest.mark.slow


IRQBALANCE = {
    "/proc/77/comm": "irqbalance",
    "/proc/77/environ": "IRQBALANCE_BANNED_CPULIST=0",
    "/proc/77/cmdline": "/usr/sbin/irqbalance",
}
SOON = 1e-9  # seconds between two repairs
MANAGED = CpuClassUse(
    classes={
        "high": CpuClass(name="high", pct_priority=PctPriority.HIGH),
        "low": CpuClass(
            name="low", pct_priority=PctPriority.LOW, max=KiloHertz(1_500_000)
        ),
    }
)
ASSOCIATED = CpuClassUse(classes={"second": CpuClass(name="second", sst_clos=2)})


def isolating(cpus: str) -> HostUse:
    """A balloon whose type says that its CPUs take no interrupts."""
    balloon = BalloonCpus(CpuSet.parse(cpus), IrqRule(mode=IrqMode.ISOLATE))
    return HostUse(balloons=(balloon,), available=CpuSet.parse("0-7"))


def silent(cpus: str) -> HostUse:
    """A container that wants no interrupts at all, as CRI-O's annotation says it."""
    wanted = IsolationRequest(irq=IrqBalancing.DISABLED)
    isolated = (Isolated("web", CpuSet.parse(cpus), wanted),)
    return HostUse(isolated=isolated, available=CpuSet.parse("0-7"))


@contextmanager
def balanced(**means: float) -> Iterator[tuple[Host, Balancer]]:
    """A host with an irqbalance; whoever started it keeps CPU 0 free."""
    with host(IRQBALANCE, **means) as some:
        path = some.root / "run/irqbalance/irqbalance77.sock"
        path.parent.mkdir(parents=True)
        balancer = Balancer(path)
        try:
            yield some, balancer
        finally:
            balancer.close()


async def test_irqbalance_is_sent_what_is_ours_and_what_it_may_do() -> None:
    use = quiet("3", wish("3", ("*eth0*",), ("*nvme*",)))
    with balanced(repairs=True) as (some, balancer):
        await some.follow(use)
        placed = {path: some.changed()[path] for path in (NIC, DISK)}
        sent = balancer.requests[-1]
        some.set(NIC, "5")
        await some.follow(use, looks=True)
        drift, mended = set(some.report.drifting), some.changed()[NIC]
        some.reconciler.close()

        assert placed == {NIC: "3", DISK: "1-2,4-7"}
        assert sent == "settings ban irqs 28 31"
        assert (drift, mended) == ({NIC}, "3")
        assert balancer.requests[-1] == "settings ban irqs NONE"
        assert some.changed() == {}


def replace_by_folder(file: Path) -> None:
    """Replace a file by a folder, which cannot be read as one."""
    file.unlink()
    file.mkdir()


async def test_a_restore_that_is_not_completed_is_logged() -> None:
    with balanced() as (some, _), capture_logs() as lines:
        await some.follow(quiet("3", wish("3", ("*eth0*",))))
        record = Path(some.state.path, IRQBALANCE_RECORD)
        replace_by_folder(record)
        some.reconciler.close()

        assert some.changed() == {}
    (line,) = [one for one in lines if one["log_level"] == "error"]
    assert (line["event"], line["why"]) == (
        "host.not-restored",
        f"{record} is no regular file; remove {record}",
    )


@pytest.mark.parametrize(
    ("cpus", "drifts"),
    [
        pytest.param("5", set(), id="where irqbalance may put it"),
        pytest.param("3", {DISK}, id="where no interrupt may be"),
    ],
)
async def test_irqbalance_may_choose_among_the_cpus_that_are_left(
    cpus: str, drifts: set[str]
) -> None:
    with balanced() as (some, balancer):
        await some.follow(isolating("3"))
        some.set(DISK, cpus)
        await some.follow(isolating("3"), looks=True)

        assert balancer.requests == ["settings cpus 0,3", "settings ban irqs NONE"]
        assert set(some.report.drifting) == drifts


async def test_what_was_taken_from_interrupts_comes_back_to_them() -> None:
    with host() as some:
        for use in (isolating("3"), isolating("4")):
            await some.follow(use, looks=True)
        balloon = some.changed()
        for use in (silent("3"), silent("4")):
            await some.follow(use, looks=True)
        isolated = some.changed()
        await some.follow(NOTHING, looks=True)

        others = {NIC: "0-3,5-7", DISK: "0-3,5-7", DEFAULT: "000000ef"}
        assert balloon == isolated == others
        assert some.changed() == {}


async def test_speed_select_follows_and_is_as_it_was_at_the_end() -> None:
    driver = IsstDriver(MACHINE)
    use = HostUse({"high": CpuSet.of(0, 4)})
    with host(open_device=lambda _: driver.opened()) as some:
        await some.follow(use, MANAGED, MACHINE)
        high = [str(punit.clos[0].cpus) for punit in driver.machine.speed_select]
        before = driver.writes
        await some.follow(
            use, MANAGED, msgspec.structs.replace(driver.machine), looks=True
        )
        again = driver.writes - before
        some.reconciler.close()

        assert high == ["0,4", ""]
        assert again == 0
        assert some.report.last.drifts == ()
        assert driver.machine.speed_select == MACHINE.speed_select


async def test_cores_that_leave_a_class_are_where_they_were_before_us() -> None:
    driver = IsstDriver(MACHINE)

    def second() -> list[str]:
        return [str(punit.clos[2].cpus) for punit in driver.machine.speed_select]

    with host(open_device=lambda _: driver.opened()) as some:
        await some.follow(HostUse({"second": CpuSet.of(0, 4)}), ASSOCIATED, MACHINE)
        before = second()
        # The next process finds the machine as the last one left it.
        then = msgspec.structs.replace(driver.machine)
        next_one = some.successor(open_device=lambda _: driver.opened())
        await next_one.follow(HostUse({"second": CpuSet.of(1, 5)}), ASSOCIATED, then)

        assert (before, second()) == (["0,4", ""], ["1,5", ""])
        next_one.reconciler.close()
        assert driver.machine.speed_select == MACHINE.speed_select
