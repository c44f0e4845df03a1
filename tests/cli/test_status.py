"""``nri-resmgr status``: its columns, the width of a terminal, namespaces, colours."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.look import Look, colored, plain
from nri_resmgr.cli.render_status import of_namespace, render_status
from nri_resmgr.control.state import state_of
from tests.control.daemon_parts import Parts, make_parts
from tests.control.json_schema import mistakes
from tests.examples import examples

POOLS = """\
pool            kind      CPUs  shared  exclusive  capacity  granted  free  nodes  \
memory  containers
reserved CPUs   reserved  0     -       -          1         0        1     0      \
-       0
socket #0       package   0-7   3,6-7   1-2,4-5    7         4        3     0-1    \
2 GiB   0
  NUMA node #1  numa      4-7   6-7     4-5        4         2        2     1      \
1 GiB   1
  NUMA node #0  numa      0-3   3       1-2        3         2        1     0      \
1 GiB   1"""
CONTAINERS = """\
container      QoS         asks  limit  memory  pool          CPUs  exclusive  \
nodes  request from
bank/db/main   Guaranteed  2     2      1 GiB   NUMA node #0  1-2   1-2        \
0      oci (estimated)
shop/web/main  Guaranteed  2     2      1 GiB   NUMA node #1  4-5   4-5        \
1      oci (estimated)"""
CODES = re.compile(r"\x1b\[[0-9;]*m")


def node() -> Parts:
    """Make a node with a container in each of two namespaces."""
    parts = make_parts()
    parts.run("web", 2)
    parts.run("db", 2)
    return parts


def state() -> dict[str, Any]:
    found = state_of(node().daemon)
    found["containers"][0]["namespace"] = "bank"
    return found


def titles(text: str) -> list[str]:
    """Return the first cells of the table of containers."""
    *_, table = text.split("\n\n")
    return [line.split()[0] for line in table.splitlines()[1:]]


def test_the_wide_form_has_all_columns() -> None:
    _, pools, containers = render_status(state(), is_wide=True).split("\n\n")

    assert (pools, containers) == (POOLS, CONTAINERS)


def test_a_namespace_has_its_containers_only() -> None:
    found = state()
    shown = of_namespace(found, "shop")

    assert titles(render_status(found)) == ["bank/db/main", "shop/web/main"]
    assert titles(render_status(found, namespace="shop")) == ["shop/web/main"]
    assert [one["pod"] for one in shown["containers"]] == ["web"]
    assert mistakes(shown, "State") == []
    # What is the node's is that of all.
    assert shown["pools"] == found["pools"]
    assert "requests       2 by oci" in render_status(found, namespace="shop")


def test_a_namespace_without_containers_is_named() -> None:
    *_, last = render_status(state(), namespace="none").split("\n\n")

    assert last == "no containers in namespace none"


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,60}[a-z0-9])?", fullmatch=True)
WORDS = st.text("abc -/:", min_size=1) | st.text("abc", min_size=70, max_size=120)


@examples(0.5)
@given(
    width=st.integers(80, 200),
    is_wide=st.booleans(),
    machine=st.sampled_from(("1s2n4c1t", "2s2n40c2t", "1s16n2c1t")),
    name=NAMES,
    why=WORDS,
)
def test_lines_are_as_wide_as_the_terminal_at_most_and_nothing_is_lost(
    width: int, machine: str, name: str, why: str, *, is_wide: bool
) -> None:
    parts = make_parts(machine)
    parts.run(name, 2)
    found = state_of(parts.daemon)
    error = {"source": "file", "name": "f", "when": "NOW", "why": why}
    found["configuration"]["error"] = error
    # The form with all columns has a least width.
    width = max(width, 130) if is_wide else width
    free = render_status(found, is_wide=is_wide)

    text = render_status(found, Look(plain, width), is_wide=is_wide)

    assert [line for line in text.splitlines() if len(line) > width] == []
    assert sorted("".join(text.split())) == sorted("".join(free.split()))
    assert text.count("\n") >= free.count("\n")


def test_colours_are_all_that_a_terminal_adds() -> None:
    found = state()
    painted = render_status(found, Look(colored))

    assert painted != render_status(found)
    assert CODES.sub("", painted) == render_status(found)


@pytest.mark.parametrize(
    ("part", "value", "line"),
    [
        pytest.param(
            "configuration",
            {"leftOut": [{"path": "$.spec.x", "why": "no CPU 9"}]},
            "               left out: $.spec.x: no CPU 9",
            id="an option that is left out",
        ),
        pytest.param(
            "kubelet",
            [{"manager": "cpu", "policy": "static", "why": "it is"}],
            "kubelet        it is",
            id="a kubelet that is in the way",
        ),
    ],
)
def test_problems_are_red(part: str, value: Any, line: str) -> None:
    found = state()
    before = render_status(found, Look(colored))
    found[part] = value if isinstance(value, list) else found[part] | value

    assert "\x1b[1;31m" not in before
    assert f"\x1b[1;31m{line}\x1b[0m" in render_status(found, Look(colored))


def test_a_container_that_is_not_as_decided_is_red() -> None:
    found = state()
    drifted = {"kind": "cpus", "wanted": "4-5", "found": "0-7"}
    verdict = {"why": "", "differences": [drifted], "abandoned": False}
    for one, word in zip(found["containers"], ("as-decided", "drifted"), strict=True):
        one["verification"] = verdict | {"verdict": word}
    *_, good, bad = render_status(found, Look(colored)).splitlines()

    assert "\x1b" not in good
    assert bad.startswith("\x1b[1;31mshop/web/main ")
    assert bad.endswith("drifted: cpus 0-7\x1b[0m")
