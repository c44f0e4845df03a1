from __future__ import annotations

import pytest
import structlog

from nri_proto import NriLevel
from nri_resmgr.app.classes.scheduling import (
    IO_PRIORITY_LEVEL,
    SCHEDULER_LEVEL,
    SchedulingSetter,
    io_priority_of,
    scheduler_of,
)
from nri_resmgr.stub import ContainerAdjustment
from nri_resmgr.stub.model import IoPriority, IoPriorityClass, Scheduler
from nri_resmgr.stub.model import SchedulerFlag as NriFlag
from nri_resmgr.stub.model import SchedulerPolicy as NriPolicy
from nri_resmgr.stub.runtime_info import RuntimeInfo
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

BATCH = SchedulingClass(
    name="slow",
    policy=SchedulingPolicy.BATCH,
    nice=5,
    io_class=IoClass.BEST_EFFORT,
    io_priority=7,
)
SCHEDULER = Scheduler(policy=NriPolicy.BATCH, nice=5)
IO_PRIORITY = IoPriority(IoPriorityClass.BE, 7)
PINNED = ContainerAdjustment().set_cpus("1")


def setter(level: NriLevel | None) -> SchedulingSetter:
    return SchedulingSetter(RuntimeInfo(name="containerd", version="2.2", level=level))


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        pytest.param(
            SchedulingClass(name="x", io_class=IoClass.IDLE),
            None,
            id="the scheduler is left alone",
        ),
        pytest.param(
            SchedulingClass(
                name="x",
                policy=SchedulingPolicy.DEADLINE,
                flags=(SchedulingFlag.RECLAIM, SchedulingFlag.UTIL_CLAMP_MAX),
                runtime=1,
                deadline=2,
                period=3,
            ),
            Scheduler(
                policy=NriPolicy.DEADLINE,
                flags=(NriFlag.RECLAIM, NriFlag.UTIL_CLAMP_MAX),
                runtime=1,
                deadline=2,
                period=3,
            ),
            id="deadlines",
        ),
        pytest.param(
            SchedulingClass(name="x", policy=SchedulingPolicy.FIFO, priority=9),
            Scheduler(policy=NriPolicy.FIFO, priority=9),
            id="real time",
        ),
    ],
)
def test_schedulers(scheduling: SchedulingClass, expected: Scheduler | None) -> None:
    assert scheduler_of(scheduling) == expected


@pytest.mark.parametrize("policy", SchedulingPolicy)
def test_each_policy_has_its_number(policy: SchedulingPolicy) -> None:
    found = scheduler_of(SchedulingClass(name="x", policy=policy))

    assert found == Scheduler(policy=NriPolicy[policy.value.upper()])


@pytest.mark.parametrize("flag", SchedulingFlag)
def test_each_flag_has_its_number(flag: SchedulingFlag) -> None:
    one = SchedulingClass(name="x", policy=SchedulingPolicy.OTHER, flags=(flag,))
    found = scheduler_of(one)

    assert found is not None
    assert found.flags == (NriFlag[flag.value.upper().replace("-", "_")],)


@pytest.mark.parametrize("kind", IoClass)
def test_each_io_class_has_its_number(kind: IoClass) -> None:
    found = io_priority_of(SchedulingClass(name="x", io_class=kind))

    assert found == IoPriority(IoPriorityClass[kind.value.upper()])


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(
            None,
            PINNED.set_scheduler(SCHEDULER).set_io_priority(IO_PRIORITY),
            id="a runtime of unknown abilities gets all",
        ),
        pytest.param(
            NriLevel(0, 11),
            PINNED.set_scheduler(SCHEDULER).set_io_priority(IO_PRIORITY),
            id="0.11 can set both",
        ),
        pytest.param(
            NriLevel(0, 10), PINNED.set_io_priority(IO_PRIORITY), id="0.10 can set one"
        ),
        pytest.param(NriLevel(0, 8), PINNED, id="0.8 can set neither"),
    ],
)
def test_the_runtime_is_sent_the_scheduling_that_its_level_can_set(
    level: NriLevel | None, expected: ContainerAdjustment
) -> None:
    with structlog.testing.capture_logs():
        assert setter(level).add_class(PINNED, BATCH) == expected


def test_scheduling_that_cannot_be_set_leaves_the_adjustment_unchanged() -> None:
    with structlog.testing.capture_logs():
        assert [
            setter(None).add_class(PINNED, SchedulingClass(name="empty")),
            setter(NriLevel(0, 8)).add_class(PINNED, BATCH),
        ] == [PINNED, PINNED]


def test_scheduling_that_cannot_be_set_is_logged_once() -> None:
    one = setter(NriLevel(0, 10, 3))

    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            one.add_class(PINNED, BATCH)

    assert logs == [
        {
            "event": "scheduling.ineffective",
            "log_level": "warning",
            "what": "scheduler",
            "why": "NRI 0.10.3 of containerd 2.2 cannot set it, 0.11.0 could",
        }
    ]


def test_levels_are_those_of_the_fields() -> None:
    scheduler = ContainerAdjustment().set_scheduler(SCHEDULER)
    priority = ContainerAdjustment().set_io_priority(IO_PRIORITY)

    assert (scheduler.needs_level, priority.needs_level) == (
        SCHEDULER_LEVEL,
        IO_PRIORITY_LEVEL,
    )
