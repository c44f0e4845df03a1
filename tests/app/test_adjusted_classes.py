"""Adjustments may name the classes that there are, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.plugin.changes.adjusting import adjust
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.config import PolicyConfig
from nri_resmgr.policies import parse_config
from nri_resmgr.stub.model import LinuxCpu, LinuxResources
from nri_resmgr.testing.resctrl import Resctrl
from tests.app.class_rig import HARDWARE, running_rig
from tests.app.test_adjustments import (
    MACHINE,
    MORE,
    adjustment,
    container,
    of_pods,
    pod,
    read,
    run,
    spec_of,
)
from tests.waiting import until

PARTITION: Final = "{all: {l3Allocation: 100%, classes: {gold: {}, silver: {}}}}"
RDT: Final = f"rdt: {{enable: true, partitions: {PARTITION}}}"
BLOCKIO: Final = "blockio: {enable: true, classes: {slow: [{Weight: 50}]}}"
KNOWN: Final = "known: system/default, gold, silver; name one of these, or add"
RESIZED: Final = LinuxResources(cpu=LinuxCpu(2048, 200_000, 100_000))


def config(*control: str) -> PolicyConfig:
    """Read a document with kinds of classes."""
    return parse_config(
        "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\nspec:\n"
        f"  reservedResources: {{cpu: 750m}}\n  control: {{{', '.join(control)}}}\n"
    )


def made(*control: str) -> ResourcePolicy:
    """Make a plugin without a runtime, with a container that is adjusted already."""
    policy = ResourcePolicy(MACHINE, config(*control))
    policy.synchronize([], [])
    run(policy, "web", 1)
    judged = adjust(policy, read(adjustment("old", resources=MORE)))
    assert judged.errors == {}
    return policy


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("rdt", f"RDT class 'fast' by adjustment a; {KNOWN}"),
        ("blockio", "block I/O class 'fast' by adjustment a; known: slow; name one"),
    ],
)
def test_an_unknown_class_is_an_error_of_the_container_and_nothing_changes(
    kind: str, words: str
) -> None:
    policy = made(RDT, BLOCKIO)
    before = policy.state
    wrong = adjustment(scope=of_pods("web"), classes={kind: "fast"})

    judged = adjust(policy, read(wrong))

    assert list(judged.errors) == ["web"]
    assert f"default/web/main asks for {words}" in judged.errors["web"]
    assert judged.involved == {"web": ("a",)}
    assert policy.state is before


@pytest.mark.parametrize(
    ("control", "classes"),
    [
        ((RDT, BLOCKIO), {"rdt": "gold", "blockio": "slow"}),
        ((RDT, BLOCKIO), {"rdt": "system/default"}),
        # Kinds that are off, and classes that only the runtime knows.
        ((), {"rdt": "fast", "blockio": "fast"}),
        (("rdt: {monitorPods: true}",), {"rdt": "fast"}),
        (("blockio: {enable: true}",), {"blockio": "fast"}),
        # Groups of the host, before anything has looked at them.
        (("rdt: {enable: true}",), {"rdt": "fast"}),
    ],
)
def test_a_class_that_exists_or_cannot_be_known_is_accepted(
    control: tuple[str, ...], classes: dict[str, str]
) -> None:
    policy = made(*control)

    judged = adjust(policy, read(adjustment(classes=classes)))

    assert (judged.errors, judged.applied) == ({}, {"web": "a"})


def test_a_class_that_is_added_later_is_known_then() -> None:
    policy = made(RDT)
    wrong = read(adjustment(classes={"rdt": "fast"}))
    refused = adjust(policy, wrong)
    reconfigure(policy, config(RDT.replace("silver", "fast")))

    accepted = adjust(policy, wrong)

    assert (list(refused.errors), accepted.errors) == (["web"], {})


def test_a_new_container_gets_nothing_of_an_adjustment_with_an_unknown_class() -> None:
    policy = made(RDT)
    wrong = adjustment(scope=of_pods("db"), resources=MORE, classes={"rdt": "fast"})
    # It names no container yet.
    judged = adjust(policy, read(wrong))

    with capture_logs() as logs:
        run(policy, "db", 1)
        policy.update_container(pod("db"), container("db", 1), RESIZED)

    assert judged.errors == {}
    assert spec_of(policy, "db").adjusted is None
    (line,) = [one for one in logs if one["event"] == "adjustments.unknown-class"][:1]
    assert (line["title"], KNOWN in line["why"]) == ("default/db/main", True)


def test_a_container_stays_adjusted_when_its_class_is_removed() -> None:
    policy = made(RDT)
    adjust(policy, read(adjustment(resources=MORE, classes={"rdt": "silver"})))
    reconfigure(policy, config(RDT.replace("silver", "bronze")))

    policy.update_container(pod("web"), container("web", 1), RESIZED)

    assert spec_of(policy, "web").origin == "adjustment a"


def test_a_restart_leaves_what_was_in_force_before_an_unknown_class() -> None:
    policy = made(RDT)
    reborn = ResourcePolicy(MACHINE, config(RDT))
    reborn.engine.restore_from(lambda _: policy.state)
    wrong = read(adjustment(resources={"limits": {"cpu": 1}}, classes={"rdt": "fast"}))
    reborn.specs.adjustments.begin(wrong)

    reborn.synchronize([pod("web")], [container("web", 3, 2 << 30)])

    assert spec_of(reborn, "web").origin == "adjustment old"
    assert list(adjust(reborn, wrong).errors) == ["web"]


async def test_groups_of_the_host_are_known_after_discovery(tmp_path: Path) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("gold")
    text = "{control: {rdt: {enable: true}}}"
    async with running_rig(tmp_path, text, resctrl) as rig:
        await rig.settled()
        await rig.create("web")
        policy = rig.node.plugin
        good = adjust(policy, read(adjustment(classes={"rdt": "gold"})))
        wrong = adjust(policy, read(adjustment(classes={"rdt": "fast"})))

    assert good.errors == {}
    assert "known: system/default, gold;" in wrong.errors["web"]


async def test_a_container_returns_to_the_group_where_it_was(tmp_path: Path) -> None:
    resctrl = Resctrl(HARDWARE)
    for name in ("gold", "others"):
        resctrl.mkdir(name)
    async with running_rig(
        tmp_path, "{control: {rdt: {enable: true}}}", resctrl
    ) as rig:
        await rig.settled()
        policy, gold = rig.node.plugin, read(adjustment(classes={"rdt": "gold"}))
        for name, task, group in (("web", 100, ""), ("db", 200, "others")):
            await rig.create(name)
            rig.appear(name, task, group=group)
            await rig.node.runtime.start_container(name)
        adjust(policy, gold)
        await until(lambda: rig.tasks("gold") == "100 200")
        # It is created with the class.
        await rig.create("new")
        rig.appear("new", 300, group="gold")
        await rig.node.runtime.start_container("new")
        await rig.compared()
        adjust(policy, [])
        await until(lambda: rig.tasks("gold") == "")
        groups = rig.tasks(), rig.tasks("others")

    assert groups == ("100 300 99999", "200")
