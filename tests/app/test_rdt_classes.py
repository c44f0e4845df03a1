"""RDT classes of containers: at creation, while they run, and when the daemon ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from nri_proto import NriLevel
from nri_resmgr.testing.errors import PluginRefused
from nri_resmgr.testing.resctrl import Resctrl
from tests.app.class_rig import HARDWARE, running_rig
from tests.app.node import SAFE
from tests.app.rdt_words import GOLD, KEY, document, sent


def balloons(spec: str) -> str:
    types = "balloonTypes: [{name: t, namespaces: [default], rdtClass: gold}]"
    rest = spec.removeprefix("{")
    return (
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\n"
        f"spec: {{reservedResources: {{cpu: 1}}, {types}, {rest}"
    )


async def test_groups_are_made_and_a_container_is_created_in_one(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, document()) as rig:
        await rig.settled()
        created = await rig.create("c0", GOLD)

        assert sent(created) == ("gold", None)
        assert {name: rig.schemata(name) for name in rig.groups()} == {
            "gold": ["L3:0=fffff;1=fffff", "MB:0=100;1=100"],
            "silver": ["L3:0=003ff;1=003ff", "MB:0=100;1=100"],
        }
    assert rig.groups() == []


@pytest.mark.parametrize(
    ("level", "names"),
    [
        pytest.param(SAFE, ("gold", None), id="by the group where the level has it"),
        pytest.param(NriLevel(0, 11), ("gold", None), id="by the group from 0.11 on"),
        pytest.param(NriLevel(0, 10), (None, "gold"), id="by the class before that"),
    ],
)
async def test_the_runtime_is_sent_the_class_of_a_container(
    tmp_path: Path, level: NriLevel, names: tuple[str | None, str | None]
) -> None:
    async with running_rig(tmp_path, document(), level=level) as rig:
        await rig.settled()

        assert sent(await rig.create("c0", GOLD)) == names


@pytest.mark.parametrize(
    ("spec", "annotations", "names"),
    [
        pytest.param(document(), {}, None, id="none where nothing is set"),
        pytest.param(
            document("Guaranteed: {}", "usePodQoSAsDefaultClass: true"),
            {},
            "Guaranteed",
            id="the QoS class's where that counts",
        ),
        pytest.param(
            document("Guaranteed: {}, gold: {}", "usePodQoSAsDefaultClass: true"),
            GOLD,
            "gold",
            id="an annotation goes first",
        ),
        pytest.param(
            document("Burstable: {}", "usePodQoSAsDefaultClass: true"),
            {},
            None,
            id="a QoS class without a class is dropped",
        ),
        pytest.param(
            document(),
            {f"{KEY}/pod": "gold", f"{KEY}/container.c0": "silver"},
            "silver",
            id="a container's annotation goes before its pod's",
        ),
        pytest.param(
            document(),
            {"rdt.resources.beta.kubernetes.io/pod": "silver"},
            "silver",
            id="the runtimes' own annotation",
        ),
        pytest.param(
            balloons(document("gold: {}")),
            {},
            "gold",
            id="its balloon type's",
        ),
        pytest.param(
            balloons(document()),
            {KEY: "silver"},
            "silver",
            id="an annotation goes before the balloon type",
        ),
        pytest.param(
            document(),
            {KEY: "system/default"},
            None,
            id="the root group is where all begin",
        ),
        pytest.param(
            "{control: {rdt: {enable: false}}}",
            {KEY: "gold"},
            None,
            id="annotations mean nothing where it is off",
        ),
    ],
)
async def test_the_class_follows_annotations_and_configuration(
    tmp_path: Path, spec: str, annotations: Mapping[str, str], names: str | None
) -> None:
    async with running_rig(tmp_path, spec) as rig:
        if "true" in spec:
            await rig.settled()

        assert sent(await rig.create("c0", annotations))[0] == names


@pytest.mark.parametrize(
    ("spec", "annotations", "why"),
    [
        pytest.param(
            document(),
            {KEY: "goold"},
            f"default/c0/c0 asks for RDT class 'goold' by {KEY}; known: gold, silver; "
            "name one of these, or add the class to the configuration",
            id="no such class",
        ),
        pytest.param(
            document("gold: {kubernetes: {denyPodAnnotation: true}}"),
            {f"{KEY}/pod": "gold"},
            f"default/c0/c0 asks for RDT class 'gold' by {KEY}/pod, which "
            "kubernetes.denyPodAnnotation of the class forbids; name another class",
            id="denied to pods",
        ),
        pytest.param(
            document("gold: {kubernetes: {denyContainerAnnotation: true}}"),
            {f"{KEY}/container.c0": "gold"},
            f"default/c0/c0 asks for RDT class 'gold' by {KEY}/container.c0, which "
            "kubernetes.denyContainerAnnotation of the class forbids; name another "
            "class",
            id="denied to containers",
        ),
        pytest.param(
            "{control: {rdt: {enable: true}}}",
            GOLD,
            f"default/c0/c0 asks for RDT class 'gold' by {KEY}; known: "
            "system/default, other; name one of these, or add the class to the "
            "configuration",
            id="no such group of the host",
        ),
    ],
)
async def test_an_unavailable_class_is_refused(
    tmp_path: Path, spec: str, annotations: Mapping[str, str], why: str
) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("other")
    async with running_rig(tmp_path, spec, resctrl) as rig:
        await rig.settled()
        with pytest.raises(PluginRefused) as found:
            await rig.create("c0", annotations)

        assert why in str(found.value)
        assert not rig.node.plugin.state.ledger.entries


async def test_a_denied_pod_may_name_the_class_for_a_container(tmp_path: Path) -> None:
    spec = document("gold: {kubernetes: {denyPodAnnotation: true}}")
    async with running_rig(tmp_path, spec) as rig:
        await rig.settled()
        created = await rig.create("c0", {f"{KEY}/container.c0": "gold"})

        assert sent(created) == ("gold", None)


async def test_groups_of_the_host_are_classes_where_none_is_configured(
    tmp_path: Path,
) -> None:
    resctrl = Resctrl(HARDWARE)
    resctrl.mkdir("gold")
    async with running_rig(
        tmp_path, "{control: {rdt: {enable: true}}}", resctrl
    ) as rig:
        await rig.settled()

        assert sent(await rig.create("c0", GOLD)) == ("gold", None)
    assert rig.groups() == ["gold"]
