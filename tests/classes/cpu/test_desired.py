"""What CPU classes want of host files, worked out by hand."""

from __future__ import annotations

import msgspec
import pytest

from nri_resmgr.classes.cpu.cpu_class import CpuClass, FrequencyWord, TurboDomain
from nri_resmgr.classes.cpu.cpufreq import SharedPolicy, shared_policies
from nri_resmgr.classes.cpu.desired import desired
from nri_resmgr.classes.cpu.facts import CpuKnobFacts
from nri_resmgr.values import KiloHertz
from tests.classes.cpu.machines import BARE, OLD, SERVER, cpus, policy, short

LOW, BASE, TURBO = FrequencyWord.MIN, FrequencyWord.BASE, FrequencyWord.TURBO
PARTS = msgspec.structs.replace(
    SERVER, policies=(policy("0-1"), policy("2-3")), idle=(), uncore=()
)


def kilohertz(number: int) -> KiloHertz:
    return KiloHertz(number)


def wanted(
    facts: CpuKnobFacts,
    *pairs: tuple[CpuClass, str],
    domain: TurboDomain = TurboDomain.PACKAGE,
) -> dict[str, str]:
    classes = {one.name: one for one, _ in pairs}
    members = {one.name: cpus(text) for one, text in pairs}
    files = desired(classes, members, facts, domain)
    return {short(path): text for path, text in files.items()}


def named(name: str, **requests: object) -> CpuClass:
    return CpuClass(name=name, **requests)  # type: ignore[arg-type] # of many kinds


@pytest.mark.parametrize(
    ("requests", "files"),
    [
        pytest.param({}, {}, id="a class that says nothing changes nothing"),
        pytest.param(
            {"min": LOW, "max": TURBO},
            {"p1/min_freq": "800000", "p1/max_freq": "3800000"},
            id="words are the CPU's own frequencies",
        ),
        pytest.param({"max": BASE}, {"p1/max_freq": "2000000"}, id="a maximum alone"),
        pytest.param(
            {"min": kilohertz(500_000), "max": kilohertz(9_000_000)},
            {"p1/min_freq": "800000", "p1/max_freq": "3800000"},
            id="numbers are cut to the limits of the hardware",
        ),
        pytest.param(
            {"min": TURBO, "max": BASE},
            {"p1/min_freq": "2000000", "p1/max_freq": "2000000"},
            id="a minimum is cut to the maximum",
        ),
        pytest.param(
            {"governor": "performance", "epp": 0},
            {"p1/governor": "performance", "p1/epp": "performance"},
            id="the governor comes first, and 0 is the preference's word",
        ),
        pytest.param(
            {"governor": "performance", "epp": "power"},
            {"p1/governor": "performance", "p1/epp": "performance"},
            id="beside performance the kernel takes no other preference",
        ),
        pytest.param(
            {"governor": "powersave", "epp": 100},
            {"p1/governor": "powersave", "p1/epp": "100"},
            id="a number between stays a number",
        ),
        pytest.param(
            {"governor": "performance"},
            {"p1/governor": "performance", "p1/epp": "performance"},
            id="what the kernel sets with performance is known to be set",
        ),
        pytest.param({"epp": 255}, {"p1/epp": "power"}, id="255 has a word, too"),
        pytest.param({"epp": 256}, {}, id="no preference is above 255"),
        pytest.param(
            {"governor": "schedutil", "epp": "fast"},
            {},
            id="unknown words are left out",
        ),
        pytest.param(
            {"disabled_cstates": ("C6",)},
            {"cpu1/s0/disable": "0", "cpu1/s1/disable": "0", "cpu1/s2/disable": "1"},
            id="the named idle states are disabled, all others enabled",
        ),
        pytest.param(
            {"disabled_cstates": ()},
            {"cpu1/s0/disable": "0", "cpu1/s1/disable": "0", "cpu1/s2/disable": "0"},
            id="an empty list enables all idle states",
        ),
        pytest.param(
            {"uncore_min": kilohertz(1_000_000), "uncore_max": TURBO},
            {"u00/min_freq_khz": "1000000", "u00/max_freq_khz": "2400000"},
            id="turbo of a die is its highest frequency at boot",
        ),
        pytest.param(
            {"uncore_max": BASE}, {"u00/max_freq_khz": "2000000"}, id="base of its CPUs"
        ),
        pytest.param(
            {"uncore_max": kilohertz(1)},
            {"u00/max_freq_khz": "800000"},
            id="a die is never slower than at boot",
        ),
    ],
)
def test_a_class_alone_on_its_cpu(
    requests: dict[str, object], files: dict[str, str]
) -> None:
    found = wanted(SERVER, (named("a", **requests), "1"))

    assert list(found.items()) == list(files.items())


FAST = named("fast", max=TURBO, turbo_priority=2)
MEDIUM = named("medium", max=TURBO, turbo_priority=1)
PLAIN = named("plain", max=TURBO)


@pytest.mark.parametrize(
    ("pairs", "domain", "maxima"),
    [
        pytest.param(
            ((FAST, "0"), (PLAIN, "1")),
            TurboDomain.PACKAGE,
            ["3800000", "2000000"],
            id="less priority has the base frequency",
        ),
        pytest.param(
            ((FAST, "0"), (MEDIUM, "2")),
            TurboDomain.PACKAGE,
            ["3800000", "3800000"],
            id="packages have winners of their own",
        ),
        pytest.param(
            ((FAST, "0"), (MEDIUM, "2")),
            TurboDomain.SYSTEM,
            ["3800000", "2000000"],
            id="the system has one",
        ),
        pytest.param(
            ((FAST, ""), (MEDIUM, "0"), (PLAIN, "2")),
            TurboDomain.SYSTEM,
            ["3800000", "2000000"],
            id="a class without CPUs does not count",
        ),
        pytest.param(
            ((PLAIN, "0"), (named("other", max=TURBO), "1")),
            TurboDomain.PACKAGE,
            ["3800000", "3800000"],
            id="without priorities no class loses",
        ),
    ],
)
def test_turbo_is_for_the_highest_priority_in_use(
    pairs: tuple[tuple[CpuClass, str], ...], domain: TurboDomain, maxima: list[str]
) -> None:
    assert list(wanted(SERVER, *pairs, domain=domain).values()) == maxima


def test_without_a_known_base_frequency_turbo_is_kept() -> None:
    facts = msgspec.structs.replace(
        SERVER, policies=(policy("0"), policy("1", base=None))
    )

    found = wanted(facts, (FAST, "0"), (PLAIN, "1"))
    assert found == {"p0/max_freq": "3800000", "p1/max_freq": "3800000"}


QUIET = named(
    "quiet",
    min=kilohertz(900_000),
    max=kilohertz(1_200_000),
    governor="powersave",
    epp="power",
)


@pytest.mark.parametrize(
    ("other", "files"),
    [
        pytest.param(
            named(
                "loud",
                min=kilohertz(1_000_000),
                max=BASE,
                governor="performance",
                epp="performance",
            ),
            {
                "p0/governor": "performance",
                "p0/epp": "performance",
                "p0/min_freq": "1000000",
                "p0/max_freq": "2000000",
            },
            id="of everything the more demanding request",
        ),
        pytest.param(
            named("silent"),
            {"p0/min_freq": "900000"},
            id="a class without a limit is not limited by another",
        ),
        pytest.param(
            named("eager", governor="performance"),
            {
                "p0/governor": "performance",
                "p0/epp": "performance",
                "p0/min_freq": "900000",
            },
            id="nothing asks more than performance",
        ),
        pytest.param(
            named("balanced", governor="powersave", epp=128, max=LOW),
            {
                "p0/governor": "powersave",
                "p0/epp": "128",
                "p0/min_freq": "900000",
                "p0/max_freq": "1200000",
            },
            id="a number is compared with a word",
        ),
    ],
)
def test_two_classes_on_one_policy(other: CpuClass, files: dict[str, str]) -> None:
    found = wanted(PARTS, (QUIET, "0"), (other, "1"))

    assert list(found.items()) == list(files.items())


def test_cpus_without_a_class_count_as_a_class_without_settings() -> None:
    assert wanted(PARTS, (QUIET, "0")) == {"p0/min_freq": "900000"}
    assert wanted(PARTS, (QUIET, "0-1")) == {
        "p0/governor": "powersave",
        "p0/epp": "power",
        "p0/min_freq": "900000",
        "p0/max_freq": "1200000",
    }


def test_the_largest_uncore_frequencies_of_a_die_win() -> None:
    slow = named("slow", uncore_max=kilohertz(1_000_000))
    fast = named("fast", uncore_min=kilohertz(1_500_000))

    assert wanted(SERVER, (slow, "0,2"), (fast, "1"), (named("none"), "3")) == {
        "u00/min_freq_khz": "1500000",
        "u00/max_freq_khz": "1500000",
        "u01/max_freq_khz": "1000000",
    }


def test_an_unknown_class_leaves_its_cpus_alone() -> None:
    assert desired({}, {"lost": cpus("0-7")}, SERVER) == {}


def test_a_driver_without_preferences_gets_none() -> None:
    one = named("a", governor="schedutil", epp=0, max=TURBO)

    assert wanted(OLD, (one, "0-1")) == {
        "p0/governor": "schedutil",
        "p0/max_freq": "3800000",
    }


def test_a_machine_without_drivers_has_nothing_to_write() -> None:
    one = named("a", governor="performance", epp=0, disabled_cstates=("C6",), max=LOW)

    assert wanted(BARE, (msgspec.structs.replace(one, uncore_max=LOW), "0-1")) == {}


def test_policies_shared_by_differing_classes_are_reported() -> None:
    classes = {
        "quiet": QUIET,
        "same": msgspec.structs.replace(QUIET, name="same", disabled_cstates=("C6",)),
        "loud": named("loud", governor="performance"),
        "proud": msgspec.structs.replace(QUIET, name="proud", turbo_priority=1),
        "fast": FAST,
        "medium": MEDIUM,
    }

    def shared(**members: str) -> tuple[SharedPolicy, ...]:
        sets = {name: cpus(text) for name, text in members.items()}
        return shared_policies(classes, sets, PARTS)

    folder = PARTS.policies[0].folder
    assert shared(quiet="0", same="1", loud="2-3") == ()
    assert shared(quiet="0", proud="1") == ()
    assert shared(fast="0", medium="1") == (
        SharedPolicy(folder, cpus("0-1"), ("fast", "medium")),
    )
    assert shared(quiet="0", loud="1-3") == (
        SharedPolicy(folder, cpus("0-1"), ("loud", "quiet")),
    )
    assert shared(loud="0,2-3") == (SharedPolicy(folder, cpus("0-1"), ("", "loud")),)
