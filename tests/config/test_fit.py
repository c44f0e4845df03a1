from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.configuration.fitting import left_out
from nri_resmgr.config import BadSetting, StaticPolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.policies.static import KIND
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet

AVAILABLE = "$.spec.availableResources.cpu"
RESERVED = "$.spec.reservedResources.cpu"


def config_of(available: str | None, reserved: str | None) -> StaticPolicyConfig:
    rows = {"availableResources": available, "reservedResources": reserved}
    spec = {name: {"cpu": text} for name, text in rows.items() if text is not None}
    config = parse_config(
        f"apiVersion: config.nri/v1alpha1\nkind: StaticPolicy\nspec: {spec}"
    )
    assert isinstance(config, StaticPolicyConfig)
    return config


@pytest.mark.parametrize(
    ("machine", "available", "reserved", "chosen"),
    [
        pytest.param("1s1n4c1t", None, None, ("0-3", "0"), id="the default"),
        pytest.param("1s1n1c1t", None, None, ("0", "0"), id="the default, one CPU"),
        pytest.param(
            "1s1n4c1t isolated=0-1", None, None, ("0-3", "2"), id="0 is isolated"
        ),
        pytest.param(
            "1s1n4c1t isolated=2-3",
            "cpuset:2-3",
            None,
            ("2-3", "2"),
            id="all are isolated",
        ),
        pytest.param(
            "1s1n4c1t isolated=2-3", "cpuset:2-3", "1", ("2-3", "2"), id="one of these"
        ),
        pytest.param("1s1n4c1t isolated=0", "2", None, ("1-2", "1"), id="not isolated"),
        pytest.param("1s1n4c1t offline=0", None, None, ("1-3", "1"), id="0 is offline"),
        pytest.param("1s1n4c1t", "cpuset:1-2", None, ("1-2", "1"), id="a list"),
        pytest.param("1s1n4c1t", "exclude-cpuset:0,99", None, ("1-3", "1"), id="but"),
        pytest.param("1s2n2c2t", "4", None, ("0-1,4-5", "0"), id="so many: a node"),
        pytest.param("1s2n2c2t", None, "2", ("0-7", "0,4"), id="reserve: a core"),
        pytest.param("1s2n2c2t", None, "750m", ("0-7", "0"), id="reserve a fraction"),
        pytest.param(
            "1s1n4c1t", "cpuset:1-3", "exclude-cpuset:1", ("1-3", "2-3"), id="the rest"
        ),
        pytest.param(
            "1s1n4c1t isolated=3", None, "cpuset:3", ("0-3", "3"), id="one isolated"
        ),
        pytest.param("1s1n4c1t", None, "cpuset:0-3", ("0-3", "0-3"), id="everything"),
    ],
)
def test_cpus_are_chosen_for_the_machine(
    machine: str, available: str | None, reserved: str | None, chosen: tuple[str, str]
) -> None:
    config = config_of(available, reserved)

    settings = KIND.build(config, parse_spec(machine), None).settings

    assert (str(settings.available), str(settings.reserved)) == chosen


@pytest.mark.parametrize(
    ("available", "reserved", "complaint"),
    [
        pytest.param(
            "cpuset:6-9", None, f"{AVAILABLE}: this machine has no CPU 6-9", id="none"
        ),
        pytest.param("cpuset:5", None, f"{AVAILABLE}: CPU 5 is offline", id="off"),
        pytest.param(
            "cpuset:", None, f"{AVAILABLE}: no CPU is left of 0-4", id="empty"
        ),
        pytest.param(
            "exclude-cpuset:0-9",
            None,
            f"{AVAILABLE}: no CPU is left of 0-4",
            id="all excluded",
        ),
        pytest.param(
            "4",
            None,
            f"{AVAILABLE}: expected 1 to 3 CPUs (online, not isolated), not 4",
            id="too many",
        ),
        pytest.param(
            "0",
            None,
            f"{AVAILABLE}: expected 1 to 3 CPUs (online, not isolated), not 0",
            id="nothing",
        ),
        pytest.param(
            None, "cpuset:7", f"{RESERVED}: this machine has no CPU 7", id="not there"
        ),
        pytest.param(
            "cpuset:1-2",
            "cpuset:0-1",
            f"{RESERVED}: CPU 0 is not available (1-2)",
            id="outside of what is available",
        ),
        pytest.param(
            "cpuset:1-2",
            "exclude-cpuset:0-2",
            f"{RESERVED}: no CPU is left of 1-2, expected 1 or more",
            id="nothing is reserved",
        ),
        pytest.param(
            None,
            "0",
            f"{RESERVED}: expected 1 to 3 CPUs (available, not isolated), not 0",
            id="zero is reserved",
        ),
        pytest.param(
            None,
            "3001m",
            f"{RESERVED}: expected 1 to 3 CPUs (available, not isolated), not 4",
            id="more than there are",
        ),
        pytest.param(
            "2",
            "3",
            f"{RESERVED}: expected 1 to 2 CPUs (available), not 3",
            id="more than may be used",
        ),
        pytest.param(
            "2",
            "cpuset:0",
            f"{RESERVED}: a list of CPUs needs a list of available CPUs (cpuset:LIST)",
            id="numbers out of an amount",
        ),
        pytest.param(
            None,
            "cpuset:2-3",
            f"{RESERVED}: CPU 3 is isolated: the kernel does not balance load over "
            "isolated CPUs; reserve others, or this one alone",
            id="isolated among others",
        ),
    ],
)
def test_cpus_that_do_not_fit_the_machine_are_reported(
    available: str | None, reserved: str | None, complaint: str
) -> None:
    machine = parse_spec("1s1n6c1t offline=5 isolated=3-4")
    config = config_of(available, reserved)

    with pytest.raises(BadSetting) as found:
        KIND.build(config, machine, None)

    assert str(found.value) == complaint


@given(st.sets(st.integers(0, 12), min_size=1), st.sets(st.integers(1, 7), max_size=5))
def test_listed_cpus_that_are_online_are_available_and_all_others_named(
    listed: set[int], offline: set[int]
) -> None:
    off = f" offline={CpuSet.from_iterable(offline)}" if offline else ""
    machine = parse_spec(f"1s1n8c1t{off}")
    config = config_of(f"cpuset:{CpuSet.from_iterable(listed)}", None)
    online = set(range(8)) - offline

    if not listed & online:
        with pytest.raises(BadSetting):
            KIND.build(config, machine, None)
        return
    settings = KIND.build(config, machine, None).settings
    missing = [(one.path, one.why) for one in left_out(config, machine)]

    assert set(settings.available) == listed & online
    named = [
        f"this machine has no CPU {CpuSet.from_iterable(listed - set(range(8)))}"
        if max(listed) > 7
        else "",
        f"CPU {CpuSet.from_iterable(listed & offline)} is offline"
        if listed & offline
        else "",
    ]
    why = f"{', '.join(filter(None, named))}; used as soon as it is there"
    assert missing == ([(AVAILABLE, why)] if any(named) else [])
