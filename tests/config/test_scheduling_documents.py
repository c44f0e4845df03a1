from __future__ import annotations

import pytest

from nri_resmgr.config import BadSetting, TopologyAwareConfig
from nri_resmgr.config.balloons import BalloonsConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulingClass,
    SchedulingFlag,
    SchedulingPolicy,
)

HEAD = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\n"
FIRST = "$.spec.schedulingClasses[0]"


def complaint_about(spec: str) -> str:
    with pytest.raises(BadSetting) as found:
        parse_config(f"{HEAD}spec: {spec}")
    return str(found.value)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        pytest.param("{}", f"{FIRST}.name: missing, expected text", id="no name"),
        pytest.param("x", f"{FIRST}: expected a mapping, not 'x'", id="no mapping"),
        pytest.param(
            "{name: a, polcy: fifo}",
            f"{FIRST}.polcy: unknown key, did you mean policy?",
            id="an unknown key",
        ),
        pytest.param(
            "{name: a, policy: SCHED_FIFO}",
            f"{FIRST}.policy: unknown value, expected none or other or fifo or rr or "
            "batch or iso or idle or deadline",
            id="a policy by its name in C",
        ),
        pytest.param(
            "{name: a, policy: fifo}",
            f"{FIRST}.priority: missing, expected 1 to 99",
            id="real time without a priority",
        ),
        pytest.param(
            "{name: a, policy: rr, priority: 100}",
            f"{FIRST}.priority: expected 1 to 99, not 100",
            id="a priority that is too high",
        ),
        pytest.param(
            "{name: a, policy: rr, priority: 0}",
            f"{FIRST}.priority: expected 1 to 99, not 0",
            id="a priority of nothing",
        ),
        pytest.param(
            "{name: a, policy: other, priority: 5}",
            f"{FIRST}.priority: only allowed with policy fifo or rr",
            id="a priority without real time",
        ),
        pytest.param(
            "{name: a, policy: other, nice: 20}",
            f"{FIRST}.nice: expected -20 to 19, not 20",
            id="nicer than can be",
        ),
        pytest.param(
            "{name: a, policy: fifo, priority: 1, nice: -1}",
            f"{FIRST}.nice: only allowed with policy other or batch or idle",
            id="real time is not nice",
        ),
        pytest.param(
            "{name: a, policy: fifo, priority: high}",
            f"{FIRST}.priority: expected a number, not 'high'",
            id="a word for a priority",
        ),
        pytest.param(
            "{name: a, flags: [reclaim]}",
            f"{FIRST}.flags: needs a policy",
            id="flags of no policy",
        ),
        pytest.param(
            "{name: a, policy: other, flags: [reset-on-fork, keep-polcy]}",
            f"{FIRST}.flags[1]: unknown value, did you mean keep-policy?",
            id="an unknown flag",
        ),
        pytest.param(
            "{name: a, policy: deadline, deadline: 5000}",
            f"{FIRST}.runtime: missing, expected nanoseconds",
            id="a deadline without runtime",
        ),
        pytest.param(
            "{name: a, policy: deadline, runtime: 5000}",
            f"{FIRST}.deadline: missing, expected nanoseconds",
            id="a runtime without deadline",
        ),
        pytest.param(
            "{name: a, policy: deadline, runtime: 1023, deadline: 5000}",
            f"{FIRST}.runtime: expected 1024 to 9223372036854775807, not 1023",
            id="a runtime shorter than the kernel takes",
        ),
        pytest.param(
            "{name: a, policy: deadline, runtime: 6000, deadline: 5000, period: 7000}",
            f"{FIRST}: expected runtime <= deadline <= period",
            id="more runtime than time",
        ),
        pytest.param(
            "{name: a, policy: deadline, runtime: 2000, deadline: 5000, period: 4000}",
            f"{FIRST}: expected runtime <= deadline <= period",
            id="a deadline after the period",
        ),
        pytest.param(
            "{name: a, policy: fifo, priority: 1, runtime: 2000}",
            f"{FIRST}.runtime: only allowed with policy deadline",
            id="a runtime without the deadline policy",
        ),
        pytest.param(
            "{name: a, ioClass: best-effort}",
            f"{FIRST}.ioClass: unknown value, expected none or rt or be or idle",
            id="an I/O class in full",
        ),
        pytest.param(
            "{name: a, ioClass: be, ioPriority: 8}",
            f"{FIRST}.ioPriority: expected 0 to 7, not 8",
            id="an I/O priority that is too low",
        ),
        pytest.param(
            "{name: a, ioClass: idle, ioPriority: 1}",
            f"{FIRST}.ioPriority: only allowed with ioClass rt or be",
            id="idle I/O has no priority",
        ),
    ],
)
def test_a_class_that_the_kernel_would_not_take_is_reported(
    row: str, complaint: str
) -> None:
    assert complaint_about(f"{{schedulingClasses: [{row}]}}") == complaint


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(
            "{name: a, policy: other, priority: 0, ioPriority: 0, runtime: 0}",
            SchedulingClass(name="a", policy=SchedulingPolicy.OTHER),
            id="zeros go with everything",
        ),
        pytest.param(
            "{name: a, policy: deadline, runtime: 1024, deadline: 1024}",
            SchedulingClass(
                name="a", policy=SchedulingPolicy.DEADLINE, runtime=1024, deadline=1024
            ),
            id="a deadline without a period, all of it runtime",
        ),
        pytest.param(
            "{name: a, policy: other, nice: -20, flags: [reset-on-fork, keep-params]}",
            SchedulingClass(
                name="a",
                policy=SchedulingPolicy.OTHER,
                nice=-20,
                flags=(SchedulingFlag.RESET_ON_FORK, SchedulingFlag.KEEP_PARAMS),
            ),
            id="the least nice, with flags",
        ),
        pytest.param(
            "{name: a, ioClass: be, ioPriority: 7}",
            SchedulingClass(name="a", io_class=IoClass.BEST_EFFORT, io_priority=7),
            id="an I/O priority alone",
        ),
    ],
)
def test_a_class_at_the_edge_of_what_the_kernel_takes(
    row: str, expected: SchedulingClass
) -> None:
    config = parse_config(f"{HEAD}spec: {{schedulingClasses: [{row}]}}")

    assert isinstance(config, TopologyAwareConfig)
    assert config.scheduling_classes == {"a": expected}


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        pytest.param(
            "{schedulingClasses: [{name: a}, {name: b}, {name: a}]}",
            "$.spec.schedulingClasses[2].name: duplicate name 'a'",
            id="two classes of one name",
        ),
        pytest.param(
            "{schedulingClasses: {name: a}}",
            "$.spec.schedulingClasses: expected a list, not a mapping",
            id="no list",
        ),
        pytest.param(
            "{schedulingClasses: [{name: slow}], namespaceSchedulingClasses: {x: sow}}",
            "$.spec.namespaceSchedulingClasses.x: unknown value, did you mean slow?",
            id="a namespace in a class that is not there",
        ),
        pytest.param(
            "{namespaceSchedulingClasses: {x: slow}}",
            "$.spec.namespaceSchedulingClasses.x: unknown value, none is defined",
            id="no class is defined",
        ),
        pytest.param(
            "{namespaceSchedulingClasses: {1: slow}}",
            "$.spec.namespaceSchedulingClasses.1: expected text for a key, not 1",
            id="a number for a namespace",
        ),
        pytest.param(
            "{schedulingClasses: [{name: a}], podQoSSchedulingClasses: {burstable: b}}",
            "$.spec.podQoSSchedulingClasses.burstable: unknown value, expected a",
            id="a QoS class in a class that is not there",
        ),
        pytest.param(
            "{schedulingClasses: [{name: a}], podQoSSchedulingClasses: {best: a}}",
            "$.spec.podQoSSchedulingClasses.best: unknown QoS class, expected "
            "Guaranteed or Burstable or BestEffort, in any letter case",
            id="no QoS class",
        ),
        pytest.param(
            "{schedulingClasses: [{name: a}], "
            "podQoSSchedulingClasses: {Burstable: a, burstable: a}}",
            "$.spec.podQoSSchedulingClasses.burstable: duplicate key Burstable, "
            "expected Guaranteed or Burstable or BestEffort, in any letter case",
            id="a QoS class twice",
        ),
    ],
)
def test_a_class_is_defined_once_before_another_is_in_it(
    spec: str, complaint: str
) -> None:
    assert complaint_about(spec) == complaint


@pytest.mark.parametrize("kind", ["TopologyAwarePolicy", "BalloonsPolicy"])
@pytest.mark.parametrize("policy", ["", ", policy: none"])
def test_a_nice_value_without_a_policy_is_accepted_with_a_warning(
    kind: str, policy: str
) -> None:
    spec = f"{{schedulingClasses: [{{name: b}}, {{name: a, nice: 5{policy}}}]}}"
    found = parse_config(f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}")

    assert isinstance(found, TopologyAwareConfig | BalloonsConfig)
    assert found.scheduling_classes["a"] == SchedulingClass(
        name="a", policy=SchedulingPolicy.OTHER, nice=5
    )
    assert found.scheduling_classes["b"] == SchedulingClass(name="b")
    assert found.warnings == (
        (
            "$.spec.schedulingClasses[1].nice",
            "without a policy it applies to policy other",
        ),
    )
