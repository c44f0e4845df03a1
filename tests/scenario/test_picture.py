"""The picture is one well-formed file with every CPU and every container in it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given

from nri_resmgr.scenario.findings import Findings, findings_of
from nri_resmgr.scenario.floorplan import Box, floor_plan
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.picture import colour_of, picture_html, picture_svg
from nri_resmgr.scenario.play import Player
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import NO_CPUS
from tests.examples import examples
from tests.topology.strategies import machines

STORY = """
story:
  - {create: db, guaranteed: 2, memory: 1Gi}
  - {create: "a<b>&'\\"", burstable: 100m}
  - {create: huge, guaranteed: 99}
"""


NOTHING_PINNED = """
apiVersion: config.nri/v1alpha1
kind: NonePolicy
"""


def findings(machine: str, document: str = "") -> Findings:
    node = InProcessNode(parse_spec(machine), document)
    Player(node).play(read_workload(STORY))
    return findings_of(node)


def texts(picture: str) -> list[str]:
    """Return what is written, without what only a pointer shows."""
    root = ET.fromstring(picture)  # noqa: S314 - our own text
    found = (one for one in root.iter() if one.tag.endswith("}text"))
    return [
        "".join([one.text or "", *(part.tail or "" for part in one)]) for one in found
    ]


def cpus_in(box: Box) -> list[str]:
    if box.kind == "cpu":
        return [box.label]
    return [cpu for one in box.inside for cpu in cpus_in(one)]


def fits(box: Box) -> bool:
    return all(
        one.x >= 0
        and one.y >= 0
        and one.x + one.width <= box.width
        and one.y + one.height <= box.height
        and fits(one)
        for one in box.inside
    )


def overlaps(one: Box, two: Box) -> bool:
    apart = (
        one.x + one.width <= two.x,
        two.x + two.width <= one.x,
        one.y + one.height <= two.y,
        two.y + two.height <= one.y,
    )
    return not any(apart)


def is_tidy(box: Box) -> bool:
    inside = box.inside
    pairs = ((one, two) for n, one in enumerate(inside) for two in inside[:n])
    return not any(overlaps(*pair) for pair in pairs) and all(map(is_tidy, inside))


@examples(0.15)
@given(machines())
def test_every_cpu_is_drawn_once_and_nothing_overlaps(machine: Machine) -> None:
    plan = floor_plan(machine)

    assert sorted(cpus_in(plan), key=int) == [str(cpu) for cpu in machine.online]
    assert fits(plan)
    assert is_tidy(plan)


def test_every_container_and_refusal_is_in_the_legend() -> None:
    found = findings("2s1d2n2c2t cxl=1x4Gi offline=3")

    lines = texts(picture_svg(found))

    db, odd = found.placements
    containers = [
        f"{db.title}  (Guaranteed, asks for 2): CPUs {db.cpus}, memory {db.mems}",
        f"{odd.title}  (Burstable, asks for 100m): CPUs {odd.cpus}, memory {odd.mems}",
    ]
    assert odd.title == "default/pod-of-a<b>&'\"/a<b>&'\""
    assert [line for line in lines if line.startswith(("default/", "ref"))] == [
        *containers,
        "refused: default/pod-of-huge/huge",
    ]
    assert "node 4, 4Gi cxl" in lines


def cpu_groups(picture: str) -> dict[str, ET.Element]:
    root = ET.fromstring(picture)  # noqa: S314 - our own text
    groups = (one for one in root.iter() if one.attrib.get("id", "").startswith("cpu"))
    return {one.attrib["id"]: one for one in groups}


def in_colour(picture: str, colour: str) -> set[str]:
    return {
        name
        for name, group in cpu_groups(picture).items()
        if any(colour in one.attrib.get("style", "") for one in group)
    }


def test_a_cpu_has_the_colour_of_its_container() -> None:
    found = findings("1s1n4c1t")

    coloured = in_colour(picture_svg(found), colour_of(0))
    assert coloured == {f"cpu{cpu}" for cpu in found.placements[0].cpus}


def test_a_container_that_is_not_pinned_has_its_colour_on_all_cpus() -> None:
    found = findings("1s1n4c1t", NOTHING_PINNED)
    picture = picture_svg(found)

    assert [one.cpus for one in found.placements] == [NO_CPUS] * 3
    assert in_colour(picture, colour_of(1)) == {"cpu0", "cpu1", "cpu2", "cpu3"}
    classes = {
        one.attrib.get("class")
        for group in cpu_groups(picture).values()
        for one in group
    }
    assert "free" not in classes
    assert "shared" in classes


def test_colours_of_neighbours_differ() -> None:
    assert len({colour_of(number) for number in range(60)}) == 60


def test_the_page_needs_no_other_file() -> None:
    page = picture_html(findings("1s1n4c1t"))

    assert ET.fromstring(page).tag.endswith("html")  # noqa: S314 - our own text
    assert page.count("http") == page.count("http://www.w3.org/")
    assert "prefers-color-scheme: dark" in page
