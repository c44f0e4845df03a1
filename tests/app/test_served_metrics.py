"""Which metrics are served, and how old their values may be."""

from __future__ import annotations

import pytest

from nri_resmgr.app.metrics.groups import is_chosen
from nri_resmgr.app.metrics.served import ServedMetrics
from nri_resmgr.app.metrics.text import Kind, Metric, single

POLICY = Metric("nri_policy_cpu_allocation", Kind.GAUGE, "Help.")
RDT = Metric("nri_l3_llc_occupancy", Kind.GAUGE, "Help.")


def value(text: str) -> str:
    """Return the value of a text of one series; empty if it is not served."""
    return text.rsplit(maxsplit=1)[-1] if text else ""


@pytest.mark.parametrize(
    ("metric", "glob", "expected"),
    [
        pytest.param(POLICY.name, "policy", True, id="a group"),
        pytest.param(POLICY.name, "pol*", True, id="a glob of groups"),
        pytest.param(POLICY.name, "nri_policy_cpu_*", True, id="a glob of names"),
        pytest.param(POLICY.name, "policy/nri_policy_mem_*", False, id="others of it"),
        pytest.param("process_open_fds", "standard", True, id="a wider group"),
        pytest.param("process_open_fds", "standard/process", True, id="both"),
        pytest.param("nri_resmgr_build_info", "buildinfo", True, id="the version"),
        pytest.param("nri_resmgr_connected", "policy", False, id="of the daemon"),
        pytest.param("nri_resmgr_connected", "*", True, id="all"),
    ],
)
def test_a_glob_chooses_groups_and_names(
    metric: str,
    glob: str,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert is_chosen(metric, (glob,)) is expected


def test_metrics_that_are_not_enabled_are_left_out() -> None:
    served = ServedMetrics()

    served.begin(("policy",), (), 30.0, now=0.0)
    assert value(served.text(single(POLICY, 1))) == "1"
    assert served.text(single(RDT, 1)) == ""

    served.begin(None, (), 30.0, now=1.0)
    assert value(served.text(single(RDT, 2))) == "2"


def test_polled_metrics_keep_their_values_for_a_period() -> None:
    served, found = ServedMetrics(), []

    for now in (0.0, 29.9, 30.0, 59.0, 61.0):
        served.begin(None, ("rdt",), 30.0, now)
        texts = (served.text(single(RDT, now)), served.text(single(POLICY, now)))
        found.append(tuple(map(value, texts)))

    assert found == [
        ("0.0", "0.0"),
        ("0.0", "29.9"),
        ("30.0", "30.0"),
        ("30.0", "59.0"),
        ("61.0", "61.0"),
    ]


def test_nothing_is_read_for_values_that_are_kept_or_not_served() -> None:
    served = ServedMetrics()

    served.begin(None, ("rdt",), 30.0, now=0.0)
    assert served.without_reading([RDT]) is None
    text = served.text(single(RDT, 1))
    served.begin(None, ("rdt",), 30.0, now=10.0)
    assert served.without_reading([RDT]) == text
    served.begin(None, ("rdt",), 30.0, now=31.0)
    assert served.without_reading([RDT]) is None
    served.begin(("policy",), (), 30.0, now=32.0)
    assert served.without_reading([RDT]) == ""


def test_another_choice_takes_effect_before_the_period_ends() -> None:
    served = ServedMetrics()
    served.begin(None, ("rdt",), 3600.0, now=0.0)
    served.text(single(RDT, 1))

    served.begin(None, ("*",), 3600.0, now=1.0)

    assert value(served.text(single(RDT, 2))) == "2"
