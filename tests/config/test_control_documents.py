"""``control.rdt`` and ``control.blockio`` of documents, for policies of all kinds."""

from __future__ import annotations

import pytest

from nri_resmgr.classes.blockio import IoLimits, ParameterSet
from nri_resmgr.classes.rdt import (
    ALL,
    Allocations,
    CacheAllocation,
    Percent,
    RdtClass,
    RdtConfig,
    RdtPartition,
)
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.config.blockio import BlockIoControl
from nri_resmgr.config.rdt import MonitoredPods, RdtUse
from nri_resmgr.policies import parse_config

KINDS = (
    "BalloonsPolicy",
    "NonePolicy",
    "DynamicPoolsPolicy",
    "PodpoolsPolicy",
    "StaticPlusPolicy",
    "StaticPolicy",
    "StaticPoolsPolicy",
    "TopologyAwarePolicy",
)
PARTITIONS = "partitions: {p: {l3Allocation: 60%, classes: {gold: {}}}}"


def read(control: str, kind: str = "StaticPolicy") -> PolicyConfig:
    head = f"apiVersion: config.nri/v1alpha1\nkind: {kind}\n"
    return parse_config(f"{head}spec: {{control: {control}}}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("control", "rdt", "blockio"),
    [
        pytest.param("{}", None, None, id="nothing is asked for"),
        pytest.param(
            f"{{rdt: {{{PARTITIONS}}}, blockio: {{classes: {{a: []}}}}}}",
            None,
            None,
            id="what is not switched on is off",
        ),
        pytest.param(
            "{rdt: {enable: true, options: {l3: {optional: false}}}}",
            RdtUse(),
            None,
            id="without partitions the groups of the host are the classes",
        ),
        pytest.param(
            f"{{rdt: {{monitorPods: true, usePodQoSAsDefaultClass: true, {PARTITIONS}, "
            "monitoring: {namespaces: [a*], labelSelector: {app: db}}}}",
            RdtUse(
                monitors=True,
                pods=MonitoredPods(("a*",), {"app": "db"}),
                assigns=False,
            ),
            None,
            id="only monitoring is switched on",
        ),
        pytest.param(
            "{rdt: {monitoring: {namespaces: [a]}}}",
            None,
            None,
            id="filters of what is off",
        ),
        pytest.param(
            f"{{rdt: {{enable: true, force: true, adoptGroups: true, "
            f"monitorPods: true, usePodQoSAsDefaultClass: true, {PARTITIONS}}}}}",
            RdtUse(
                config=RdtConfig(
                    (
                        RdtPartition(
                            "p",
                            Allocations({"L3": {ALL: CacheAllocation(Percent(60))}}),
                            (RdtClass("gold"),),
                        ),
                    )
                ),
                by_qos=True,
                forces=True,
                adopts=True,
                monitors=True,
            ),
            None,
            id="a partition, and all that there is to say besides",
        ),
        pytest.param(
            "{blockio: {enable: true}}",
            None,
            BlockIoControl(enabled=True),
            id="block I/O classes that the runtime knows",
        ),
        pytest.param(
            "{blockio: {enable: true, usePodQoSAsDefaultClass: true, "
            "classes: {Burstable: [{weight: 80}]}}}",
            None,
            BlockIoControl(
                enabled=True,
                by_qos=True,
                classes={"Burstable": (ParameterSet(limits=IoLimits(weight=80)),)},
            ),
            id="block I/O classes of our own",
        ),
    ],
)
def test_classes_of_a_document_are_read(
    kind: str, control: str, rdt: RdtUse | None, blockio: BlockIoControl | None
) -> None:
    config = read(control, kind)

    assert (config.rdt, config.blockio, config.ineffective) == (rdt, blockio, ())


@pytest.mark.parametrize(
    ("control", "complaint"),
    [
        pytest.param(
            "{rtd: {}}",
            "$.spec.control.rtd: unknown key, did you mean rdt?",
            id="no such kind of class",
        ),
        pytest.param(
            "{rdt: {enable: yes please}}",
            "$.spec.control.rdt.enable: expected true or false, not 'yes please'",
            id="a word for a flag",
        ),
        pytest.param(
            "{rdt: {partitions: {p: {l3Allocation: 101%}}}}",
            "$.spec.control.rdt.partitions.p.l3Allocation: '101%': ",
            id="more than all of a cache, even if it is off",
        ),
        pytest.param(
            "{rdt: {enable: true, partitions: {p: {classes: {c: {}}}, "
            "q: {classes: {c: {}}}}}}",
            "$.spec.control.rdt.partitions.q.classes.c: ",
            id="a class in two partitions",
        ),
        pytest.param(
            "{rdt: {monitoring: {labelSelector: {app: 1}}}}",
            "$.spec.control.rdt.monitoring.labelSelector.app: expected text, not 1",
            id="a label that is no text",
        ),
        pytest.param(
            "{rdt: {monitoring: {namespace: [a]}}}",
            "$.spec.control.rdt.monitoring.namespace: unknown key, did you mean "
            "namespaces?",
            id="a filter in the singular",
        ),
        pytest.param(
            "{rdt: {monitorpods: true}}",
            "$.spec.control.rdt.monitorpods: unknown key, did you mean monitorPods?",
            id="a key in another letter case",
        ),
        pytest.param(
            "{blockio: {classes: {a: [{Weight: 9}]}}}",
            "$.spec.control.blockio.classes.a[0].Weight: expected 10 to 1000, not 9",
            id="less weight than there is",
        ),
        pytest.param(
            "{blockio: {configFile: /etc/blockio.yaml}}",
            "$.spec.control.blockio.configFile: unknown key, ",
            id="a file of classes: a document has them all",
        ),
    ],
)
def test_a_mistake_in_classes_is_reported(control: str, complaint: str) -> None:
    with pytest.raises(BadSetting) as found:
        read(control)

    assert str(found.value).startswith(complaint)
