"""What holds for the files of any classes on any machine, counted CPU by CPU."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, TurboDomain
from nri_resmgr.classes.cpu.desired import desired
from nri_resmgr.classes.cpu.facts import (
    CPU_ROOT,
    CpufreqPolicy,
    CpuKnobFacts,
    UncoreDomain,
)
from nri_resmgr.values import CpuSet
from tests.classes.cpu.draws import CLASSES, COUNT, MEMBERS, machines
from tests.examples import examples

Classes = Mapping[str, CpuClass]
Members = Mapping[str, CpuSet]
given_all = given(CLASSES, MEMBERS, machines())


def home(cpu: int, classes: Classes, members: Members) -> CpuClass | None:
    return next((classes[n] for n, its in members.items() if cpu in its), None)


def number(files: Mapping[str, str], path: str) -> int | None:
    return int(files[path]) if path in files else None


def meant(
    one: CpuClass, policy: CpufreqPolicy, others: list[CpuClass], *, maximum: bool
) -> int | None:
    """Work out what one class alone would have on a policy; None for nothing."""
    request = one.max if maximum else one.min
    loses = any(other.turbo_priority > one.turbo_priority for other in others)
    if request is FrequencyWord.TURBO and loses:
        request = FrequencyWord.BASE if policy.base else request
    if isinstance(request, FrequencyWord):
        request = {"min": policy.min, "base": policy.base, "turbo": policy.max}[request]
    if request is None:
        return None
    cut: int = sorted((policy.min or 0, request, policy.max or request))[1]
    if maximum:
        return cut
    top = meant(one, policy, others, maximum=True)
    return cut if top is None else min(cut, top)


@given(CLASSES, MEMBERS, machines(), st.sampled_from(TurboDomain))
def test_every_policy_satisfies_its_most_demanding_cpu(
    classes: Classes, members: Members, facts: CpuKnobFacts, domain: TurboDomain
) -> None:
    files = desired(classes, members, facts, domain)

    for policy in facts.policies:
        homes = [home(cpu, classes, members) for cpu in policy.cpus]
        lows, highs = [], []
        for one in homes:
            rivals = [
                other
                for cpu in range(COUNT)
                if domain is TurboDomain.SYSTEM or _are_near(cpu, policy.cpus, facts)
                if (other := home(cpu, classes, members))
            ]
            lows.append(meant(one, policy, rivals, maximum=False) if one else None)
            highs.append(meant(one, policy, rivals, maximum=True) if one else None)
        low = max((low for low in lows if low is not None), default=None)
        high = None if None in highs else max(high for high in highs if high)
        assert number(files, f"{policy.folder}/scaling_min_freq") == low
        assert number(files, f"{policy.folder}/scaling_max_freq") == high


def _are_near(cpu: int, cpus: CpuSet, facts: CpuKnobFacts) -> bool:
    return any(cpu in package and package & cpus for package in facts.packages)


@given_all
@examples(0.3)
def test_no_minimum_is_above_its_maximum(
    classes: Classes, members: Members, facts: CpuKnobFacts
) -> None:
    files = desired(classes, members, facts)

    pairs = {"scaling_min_freq": "scaling_max_freq", "min_freq_khz": "max_freq_khz"}
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        top = number(files, f"{folder}/{pairs.get(name)}")
        assert top is None or int(text) <= top


@given_all
def test_the_kernel_would_accept_every_value(
    classes: Classes, members: Members, facts: CpuKnobFacts
) -> None:
    files = desired(classes, members, facts)

    for policy in facts.policies:
        governor = files.get(f"{policy.folder}/scaling_governor", policy.governors[0])
        epp = files.get(f"{policy.folder}/energy_performance_preference", "0")
        is_number = epp.isdecimal() and int(epp) < 256
        assert governor in policy.governors
        assert epp in policy.epps or is_number
        if f"{policy.folder}/scaling_governor" in files and governor == "performance":
            assert epp in ("0", "performance")


@given_all
@examples(0.3)
def test_an_idle_state_is_disabled_for_the_cpus_whose_class_names_it(
    classes: Classes, members: Members, facts: CpuKnobFacts
) -> None:
    files = desired(classes, members, facts)

    expected = {}
    for cpu in range(COUNT):
        one = home(cpu, classes, members)
        names = next(same.names for same in facts.idle if cpu in same.cpus)
        if one is not None and one.disabled_cstates is not None:
            for place, name in enumerate(names):
                path = f"{CPU_ROOT}/cpu{cpu}/cpuidle/state{place}/disable"
                expected[path] = "1" if name in one.disabled_cstates else "0"
    assert {path: t for path, t in files.items() if "cpuidle" in path} == expected


@given_all
@examples(0.3)
def test_the_order_of_members_does_not_matter(
    classes: Classes, members: Members, facts: CpuKnobFacts
) -> None:
    backwards = {name: members[name] for name in reversed(tuple(members))}

    one, other = (desired(classes, its, facts) for its in (members, backwards))
    assert list(one.items()) == list(other.items())


@given_all
@examples(0.3)
def test_files_of_cpus_without_a_class_are_left_alone(
    classes: Classes, members: Members, facts: CpuKnobFacts
) -> None:
    files = desired(classes, members, facts)

    taken = CpuSet.union(members.values())
    idle = [policy for policy in facts.policies if not policy.cpus & taken]
    assert not [path for path in files for one in idle if one.folder + "/" in path]


@given_all
def test_a_die_is_as_fast_as_its_most_demanding_cpu(
    classes: Classes, members: Members, facts: CpuKnobFacts
) -> None:
    files = desired(classes, members, facts)

    for domain in facts.uncore:
        bases = [p.base for p in facts.policies if p.base and p.cpus & domain.cpus]
        words = {"min": domain.min, "base": max(bases, default=None)}
        words["turbo"] = domain.max
        lows, highs = [0], [0]
        for cpu in domain.cpus:
            one = home(cpu, classes, members) or CpuClass(name="")
            low, high = (
                cut_to(
                    domain,
                    words[request] if isinstance(request, FrequencyWord) else request,
                )
                for request in (one.uncore_min, one.uncore_max)
            )
            lows.append(min(low, high or low))
            highs.append(high)
        top = max(*lows, *highs) if max(highs) else 0
        assert (number(files, f"{domain.folder}/min_freq_khz") or 0) == max(lows)
        assert (number(files, f"{domain.folder}/max_freq_khz") or 0) == top


def cut_to(domain: UncoreDomain, request: int | None) -> int:
    """Cut a request to the limits of a domain; 0 for none."""
    return (
        sorted((domain.min or 0, request, domain.max or request))[1] if request else 0
    )
