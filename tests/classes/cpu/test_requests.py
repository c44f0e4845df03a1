"""What containers ask of their own CPUs by CRI-O's annotations."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.cpu.desired import desired
from nri_resmgr.classes.cpu.requests import CpuClassRequest, with_requests
from nri_resmgr.classes.isolation.values import BadIsolation, read_wake_latency
from nri_resmgr.values import CpuSet
from tests.classes.cpu.draws import COUNT, MEMBERS, NAMES
from tests.classes.cpu.machines import SERVER, cpus, short
from tests.examples import examples

FAST = CpuClass(name="fast", governor="powersave", epp=0, disabled_cstates=("C6",))
CLASSES = {"fast": FAST}


@pytest.mark.parametrize(
    ("text", "latency"),
    [
        pytest.param("enable", "0", id="all idle states"),
        pytest.param("disable", "n/a", id="none but polling"),
        pytest.param("max_latency:10", "10", id="those out of which it wakes soon"),
        pytest.param("max_latency:0", "n/a", id="no time at all to wake"),
        pytest.param("max_latency:2147483647", "2147483647", id="the kernel's most"),
    ],
)
def test_idle_states_are_read(text: str, latency: str) -> None:
    assert read_wake_latency(text) == latency


@pytest.mark.parametrize(
    "text", ["on", "10", "max_latency:", "max_latency:-1", "max_latency:2147483648"]
)
def test_an_invalid_request_is_reported(text: str) -> None:
    complaint = f"expected enable, disable or max_latency:MICROSECONDS, not {text!r}"
    with pytest.raises(BadIsolation, match=re.escape(complaint)):
        read_wake_latency(text)


def test_a_request_is_added_to_the_class() -> None:
    requests = [
        CpuClassRequest(cpus("1-2"), "performance", "n/a"),
        CpuClassRequest(cpus("3"), "", "5"),
    ]
    classes, members = with_requests(CLASSES, {"fast": cpus("0-1")}, requests)

    assert classes == {
        "fast": FAST,
        "fast + performance + wake n/a": msgspec.structs.replace(
            FAST,
            name="fast + performance + wake n/a",
            governor="performance",
            wake_latency="n/a",
        ),
        "performance + wake n/a": CpuClass(
            name="performance + wake n/a", governor="performance", wake_latency="n/a"
        ),
        "wake 5": CpuClass(name="wake 5", wake_latency="5"),
    }
    assert members == {
        "fast": cpus("0"),
        "fast + performance + wake n/a": cpus("1"),
        "performance + wake n/a": cpus("2"),
        "wake 5": cpus("3"),
    }


def test_like_requests_are_one_class() -> None:
    requests = [
        CpuClassRequest(cpus("0"), "", "5"),
        CpuClassRequest(cpus("1"), "", "5"),
    ]

    _, members = with_requests(CLASSES, {"fast": cpus("0-1")}, requests)
    assert members == {"fast + wake 5": cpus("0-1")}


def test_a_request_is_written_for_its_cpus() -> None:
    files = desired(
        *with_requests({}, {}, [CpuClassRequest(cpus("1"), "", "n/a")]), SERVER
    )

    assert {short(path): text for path, text in files.items()} == {
        "cpu1/power/pm_qos_resume_latency_us": "n/a"
    }


@given(
    members=MEMBERS,
    asked=st.lists(
        st.tuples(
            st.sampled_from(("", "performance", "powersave")),
            st.sampled_from(("", "0", "n/a", "7")),
        ),
        min_size=COUNT,
        max_size=COUNT,
    ),
)
@examples(0.5)
def test_every_cpu_keeps_its_class_apart_from_its_request(
    members: dict[str, CpuSet], asked: list[tuple[str, str]]
) -> None:
    before = {name: msgspec.structs.replace(FAST, name=name) for name in NAMES}
    requests = [
        CpuClassRequest(CpuSet.of(cpu), *request) for cpu, request in enumerate(asked)
    ]
    classes, after = with_requests(before, members, requests)

    for cpu, (governor, latency) in enumerate(asked):
        was = [before[name] for name, its in members.items() if cpu in its]
        now = [classes[name] for name, its in after.items() if cpu in its]
        like = was[0] if was else CpuClass(name="")
        wished = msgspec.structs.replace(
            like,
            name="",
            governor=governor or like.governor,
            wake_latency=latency or like.wake_latency,
        )
        if was or governor or latency:
            assert [msgspec.structs.replace(one, name="") for one in now] == [wished]
        else:
            assert now == []
