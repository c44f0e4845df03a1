"""Changes of the class of a running container, and what is sent to a runtime."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.blockio import (
    Features,
    Unified,
    changes,
)
from tests.classes.blockio.samples import CGROUPS, one_class

FAST = [{"Devices": ["/dev/sda", "/dev/sdb"], "ThrottleReadBps": 100}, {"Weight": 900}]
SLOW = [{"Devices": ["/dev/sdb"], "ThrottleReadBps": 100, "ThrottleWriteIOPS": 3}]
HEAVY = [{"Weight": 10}, {"Devices": ["/dev/sda"], "Weight": 1000}]


@pytest.mark.parametrize(
    ("old", "new", "cgroup", "written"),
    [
        pytest.param(
            FAST,
            SLOW,
            "v2",
            {"io.max": ("8:0 rbps=max", "8:16 wiops=3"), "io.weight": ("100",)},
            id="what is gone is set back, what is equal is left alone",
        ),
        pytest.param(
            FAST,
            SLOW,
            "v1",
            {
                "blkio.throttle.read_bps_device": ("8:0 0",),
                "blkio.throttle.write_iops_device": ("8:16 3",),
                "blkio.weight": ("500",),
            },
            id="version 1 takes a limit away by a zero",
        ),
        pytest.param(
            SLOW,
            FAST,
            "v2-bfq",
            {"io.bfq.weight": ("900",), "io.max": ("8:0 rbps=100", "8:16 wiops=max")},
            id="the other way round",
        ),
        pytest.param(
            HEAVY,
            None,
            "v2-bfq",
            {"io.bfq.weight": ("100", "8:0 default")},
            id="no class any more",
        ),
        pytest.param(
            HEAVY,
            None,
            "v1-bfq",
            {"blkio.bfq.weight": ("100",), "blkio.bfq.weight_device": ("8:0 default",)},
            id="no class any more, bfq of version 1",
        ),
        pytest.param(
            HEAVY,
            None,
            "v1",
            {"blkio.weight": ("500",), "blkio.weight_device": ("8:0 0",)},
            id="no class any more, cfq",
        ),
        pytest.param(
            None, HEAVY, "v2", {"io.weight": ("1",)}, id="a class for the first time"
        ),
        pytest.param(None, None, "v2", {}, id="none before and none after"),
        pytest.param(FAST, SLOW, "v2-bare", {}, id="no files at all"),
    ],
)
def test_a_change_writes(
    old: object, new: object, cgroup: str, written: dict[str, tuple[str, ...]]
) -> None:
    before = one_class(old) if old else None
    after = one_class(new) if new else None

    assert changes(before, after, CGROUPS[cgroup]) == written


def test_a_runtime_is_sent_one_line_of_a_file_and_the_daemon_writes_the_rest() -> None:
    sent = one_class(FAST).unified(CGROUPS["v2"])

    assert sent == Unified(
        {"io.max": "8:0 rbps=100", "io.weight": "8990"}, {"io.max": ("8:16 rbps=100",)}
    )  # 890 * 9999 // 990 + 1 = 8989 + 1


def test_a_runtime_that_writes_by_line_is_sent_everything() -> None:
    sent = one_class(FAST).unified(CGROUPS["v2"], by_line=True)

    assert sent == Unified(
        {"io.max": "8:0 rbps=100\n8:16 rbps=100", "io.weight": "8990"}, {}
    )


def test_in_version_1_the_daemon_writes_everything() -> None:
    some = one_class(SLOW)

    assert some.unified(CGROUPS["v1"]) == Unified({}, some.files(CGROUPS["v1"]))


@pytest.mark.parametrize(
    ("present", "is_v2", "features"),
    [
        pytest.param(
            {"io.weight", "io.bfq.weight", "io.max"},
            True,
            Features(True, "io.bfq.weight", "io.bfq.weight", True),
            id="bfq's weight goes before the other",
        ),
        pytest.param(
            {"io.weight", "io.max"},
            True,
            Features(True, "io.weight", "", True),
            id="io.weight is not for devices",
        ),
        pytest.param(
            {"io.stat"}, True, Features(True, "", "", False), id="nothing to set"
        ),
        pytest.param(
            {"blkio.bfq.weight", "blkio.throttle.read_bps_device"},
            False,
            Features(False, "blkio.bfq.weight", "", True),
            id="bfq of a kernel before 5.4 knows no devices",
        ),
        pytest.param(
            {"blkio.weight", "blkio.weight_device"},
            False,
            Features(False, "blkio.weight", "blkio.weight_device", False),
            id="cfq without throttling",
        ),
    ],
)
def test_features_are_reported_by_files(
    present: set[str],
    is_v2: bool,  # noqa: FBT001 - a column of the table
    features: Features,
) -> None:
    assert Features.of(frozenset(present), is_v2=is_v2) == features
