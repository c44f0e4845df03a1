"""What Speed Select cannot do of what CPU classes say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.facts import SST_DEVICE, CpuKnobFacts
from nri_resmgr.classes.cpu.problems import Problem
from nri_resmgr.classes.cpu.sst import CLOSES
from nri_resmgr.topology.speed_select import Feature, Punit


def sst_problems(one: CpuClass, facts: CpuKnobFacts) -> Iterator[Problem]:
    """Yield what cannot be done about priorities and classes of service."""
    is_managed = one.pct_priority is not None
    if not is_managed and one.sst_clos is None:
        return
    key = "pctPriority" if is_managed else "sstClosID"

    def problem(why: str, *, is_error: bool) -> Problem:
        return Problem(
            cpu_class=one.name, key=key, file=SST_DEVICE, why=why, is_error=is_error
        )

    if not facts.punits:
        missing = "no driver of Intel Speed Select; load isst_if_common and its kin"
        silent = "the driver of Intel Speed Select tells nothing, or not to us"
        why = silent if facts.has_speed_select else missing
        yield problem(why, is_error=True)
        return
    if one.sst_clos is not None and one.sst_clos >= CLOSES:
        why = f"{one.sst_clos} is no class of service, they are 0 to {CLOSES - 1}"
        yield problem(why, is_error=True)
    faults = _faults(facts.punits, is_managed=is_managed)
    for feature, bad, is_final in faults:
        if bad:
            names = " ".join(f"{punit.package}/{punit.id}" for punit in bad)
            is_error = is_final and len(bad) == len(facts.punits)
            yield problem(f"{feature} on punit {names}", is_error=is_error)


def _faults(
    punits: Sequence[Punit], *, is_managed: bool
) -> Iterator[tuple[str, list[Punit], bool]]:
    """Yield what is wrong, with which punits, and whether that is for good."""
    unsupported = [p for p in punits if p.power is Feature.UNSUPPORTED]
    yield "core power (SST-CP) is not supported", unsupported, True
    if is_managed:
        without = [p for p in punits if p.turbo is Feature.UNSUPPORTED]
        yield "turbo frequency (SST-TF) is not supported", without, True
        return
    off = [p for p in punits if p.power is Feature.OFF]
    yield "core power (SST-CP) is off, so classes of service do nothing", off, False
    off = [p for p in punits if p.turbo is Feature.OFF]
    yield "turbo frequency (SST-TF) is off, so no core has more turbo", off, False
