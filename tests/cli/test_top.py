"""What ``nri-resmgr top`` draws, and what its keys change."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.cli.amounts import size_text
from nri_resmgr.cli.cpu_use import CpuUse, use_between
from nri_resmgr.cli.look import colored
from nri_resmgr.cli.render_top import Sample, render_frame
from nri_resmgr.cli.terminal_keys import keys_of
from nri_resmgr.cli.top_view import Order, View, help_text, pressed, scrolled
from nri_resmgr.control.state import state_of
from tests.cli.test_asking_renders import state
from tests.control.daemon_parts import Parts, make_parts
from tests.examples import examples

FRAME = """\
nri-resmgr 0.1.0  TopologyAwarePolicy  up 1 h 2 min
runtime   containerd 2.1.0, disconnected
CPUs      exclusive 3  shared 2  reserved 1  isolated 0  idle 2  of 8

node 0,1  0    | 4
socket 0  rAss | BB··
s shared  r reserved  i isolated  · idle

  container        use  pool          CPUs
A shop/mixed/main  20%  NUMA node #0  1-3
B shop/own/main    45%  NUMA node #1  4-5

  pool            use  granted     CPUs
  reserved CPUs   0%   0 of 1      0
  socket #0       35%  3500m of 7  0-7
    NUMA node #1  55%  2 of 4      4-7
    NUMA node #0  15%  1500m of 3  0-3

socket 0: 35% of its CPUs used
0 r   0%  1 A  10%  2 s  20%  3 s  30%  4 B  40%  5 B  50%  6 ·  60%  7 ·  70%

node 0    [##.......................] 1 GiB granted of 16 GiB dram, 8 GiB in use
node 1    [##.......................] 1 GiB granted of 16 GiB dram

waiting   10 s    1 min   5 min   (per cent of the time)
cpu       25.0    1.0     0.1"""

HOST: dict[str, Any] = {
    "pressure": {"cpu": {"some": {"avg10": 25.0, "avg60": 1.0, "avg300": 0.1}}},
    "nodes": [{"id": 0, "used": 8 << 30}, {"id": 1, "used": None}],
}
QUIET: dict[str, Any] = {"pressure": {}, "nodes": []}
USE: CpuUse = {cpu: cpu * 100 for cpu in range(8)}


def frame(
    found: dict[str, Any],
    width: int = 80,
    view: View | None = None,
    host: dict[str, Any] = HOST,
) -> str:
    return render_frame(Sample(found, host, USE), width, view=view).text


def blocks(parts: Parts, width: int = 80) -> list[list[str]]:
    """Return the lines of each part of a frame, the heading aside."""
    text = frame(state_of(parts.daemon), width, host=QUIET)
    return [block.splitlines() for block in text.split("\n\n")][1:]


def test_a_picture_of_the_node() -> None:
    assert frame(state()) == FRAME


def test_the_heading_does_not_scroll() -> None:
    drawn = render_frame(Sample(state(), HOST, USE), 80)

    assert "\n".join(drawn.head) == FRAME.partition("\n\n")[0]
    assert "\n".join(drawn.lines) == FRAME.partition("\n\n")[2]


def test_bars_are_as_long_as_the_width_allows() -> None:
    bars = [
        [line for line in frame(state(), width).splitlines() if "[" in line]
        for width in (85, 80, 60)
    ]

    assert [line.partition("]")[0] for line, _ in bars] == [
        f"node 0    [##{'.' * 28}",
        f"node 0    [##{'.' * 23}",
        # The sizes are below it.
        f"node 0    [##{'.' * 28}",
    ]


# Also one word that is longer than a line.
WORDS = st.text("abc -/:", min_size=1) | st.text("abc", min_size=70, max_size=120)
AMOUNTS = st.integers(0, 1 << 54)


@examples(0.5)
@given(
    width=st.integers(60, 260),
    machine=st.sampled_from(("1s2n4c1t", "2s2n40c2t", "1s16n2c1t", "4s1n1c1t")),
    words=st.fixed_dictionaries(
        {"error": WORDS, "runtime": WORDS, "pod": WORDS, "version": WORDS}
    ),
    amounts=st.fixed_dictionaries(
        {"capacity": AMOUNTS.filter(bool), "granted": AMOUNTS, "used": AMOUNTS}
    ),
    pattern=WORDS,
)
def test_a_frame_is_as_wide_as_the_terminal_at_most(
    width: int,
    machine: str,
    words: dict[str, str],
    amounts: dict[str, int],
    pattern: str,
) -> None:
    parts = make_parts(machine)
    parts.run(words["pod"], 2)
    found = state_of(parts.daemon)
    found["daemon"] |= {"version": words["version"], "uptimeSeconds": 10**8}
    found["daemon"]["dryRun"] = True
    found["runtime"]["name"] = words["runtime"]
    found["configuration"]["error"] = {"why": words["error"]}
    found["pendingUpdates"] = {"count": 10**6, "oldestSeconds": 10**6}
    for node in found["nodes"]:
        capacity, granted = amounts["capacity"], amounts["granted"]
        node["memory"] |= {"capacity": capacity, "granted": granted}
    used = [{"id": node["id"], "used": amounts["used"]} for node in found["nodes"]]
    some = {"avg10": 100.0, "avg60": 100.0, "avg300": 100.0}
    pressure = {one: {"some": some} for one in ("cpu", "memory", "io", "irq")}
    host = {"nodes": used, "pressure": pressure}

    text = frame(found, width, View(pattern=pattern), host)

    assert [line for line in text.splitlines() if len(line) > width] == []
    # Cut at the end, and in the name of a container only.
    assert text.count("…") <= text.count("\n")
    joined = " ".join(text.split())
    assert f"{size_text(amounts['used'])} in use" in joined


def test_a_frame_shows_pending_updates() -> None:
    waiting = state() | {"pendingUpdates": {"count": 2, "oldestSeconds": 5.0}}

    assert "updates   2 updates pending, the oldest for 5 s" in frame(waiting)


def test_colours_are_all_that_a_terminal_adds() -> None:
    painted = render_frame(Sample(state(), HOST, USE), 80, colored).text

    assert painted != FRAME
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == FRAME


# The map.


def test_each_socket_is_a_row_with_the_numbers_of_its_cpus() -> None:
    parts = make_parts("2s2n4c2t")  # threads of a core are 16 apart

    assert blocks(parts)[0] == [
        "node 0,1  0    16   | 4    20",
        "socket 0  r··· ···· | ···· ····",
        "node 2,3  8    24   | 12   28",
        "socket 1  ···· ···· | ···· ····",
        "s shared  r reserved  i isolated  · idle",
    ]


def test_a_row_that_is_wider_than_the_terminal_is_folded() -> None:
    assert blocks(make_parts("1s1n40c1t"), 30)[0][:6] == [
        "node 0    0        8",
        "socket 0  r······· ········",
        "          16       24",
        "          ········ ········",
        "          32",
        "          ········",
    ]


def test_numbers_that_alternate_between_sockets_stand_together() -> None:
    found = state()
    found["sockets"] = [{"id": 0, "cpus": "0,2,4,6"}, {"id": 1, "cpus": "1,3,5,7"}]
    for node, socket in zip(found["nodes"], found["sockets"], strict=True):
        node["cpus"] = socket["cpus"]

    _, drawn, *_ = frame(found).split("\n\n")
    assert drawn.splitlines()[:4] == [
        *("node 0    0", "socket 0  rsB·"),
        *("node 1    1", "socket 1  AsB·"),
    ]


def test_a_number_that_is_longer_than_its_group_moves_the_next_one() -> None:
    found = state()
    cpus = "0-1,1000,1002-1003"
    found["sockets"] = [{"id": 0, "cpus": cpus}]
    found["nodes"] = [found["nodes"][0] | {"cpus": cpus}]
    found["cpus"] |= {"online": cpus, "idle": "1,1000,1002-1003"}
    found["containers"] = []

    _, drawn, *_ = frame(found).split("\n\n")
    assert drawn.splitlines()[:2] == ["node 0    0  1000 1002", "socket 0  r· ·    ··"]


def test_a_cpu_that_two_nodes_list_is_drawn_once() -> None:
    found = state()  # as with emulated NUMA
    for node in found["nodes"]:
        node["cpus"] = "0-7"

    _, drawn, *_ = frame(found).split("\n\n")
    assert drawn.splitlines()[:2] == ["node 0    0", "socket 0  rAssBB··"]


# Tables.


def names(text: str) -> list[str]:
    """Return the names in the table of containers."""
    table = next(one for one in text.split("\n\n") if one.startswith("  container"))
    return [line.split()[1] for line in table.splitlines()[1:]]


def busy() -> dict[str, Any]:
    """Return the state of a node whose containers differ by each order."""
    parts = make_parts()
    parts.run("shared", 0.5)  # beside all that is not exclusive
    parts.run("b", 2)  # on CPUs 4-5
    parts.run("c", 2)
    parts.run("a", 1)
    return state_of(parts.daemon)


def test_containers_are_in_the_order_that_is_asked_for() -> None:
    found = busy()
    first = {
        one["pod"]: int(re.split("[,-]", one["cpus"])[0]) for one in found["containers"]
    }
    use = {cpu: (97 - 13 * cpu) * 10 for cpu in range(8)}  # less by number
    sample = Sample(found, QUIET, use)
    shown = {
        order: names(render_frame(sample, 80, view=View(order=order)).text)
        for order in Order
    }

    owners = sorted("abc", key=lambda name: first[name])
    assert shown[Order.CPU] == [f"shop/{one}/main" for one in (*owners, "shared")]
    assert shown[Order.NAME] == [f"shop/{one}/main" for one in (*"abc", "shared")]
    assert sorted(shown[Order.USE]) == sorted(shown[Order.CPU])
    without = [one for one in shown[Order.USE] if "shared" not in one]
    assert without == shown[Order.CPU][:3]


def test_a_filter_counts_what_it_hides() -> None:
    text = frame(state(), view=View(pattern="OWN/"))

    assert names(text)[0] == "shop/own/main"
    assert "1 without 'OWN/' in the name" in text.splitlines()
    assert "0 without" not in frame(state())


def test_names_are_cut_so_that_the_other_columns_fit() -> None:
    parts = make_parts()
    parts.run("a-very-long-name-of-a-pod-in-some-namespace", 2)
    table = blocks(parts, 60)[1]

    assert table[1].startswith("A shop/a-very-long-")
    assert table[1].endswith("…  45%  NUMA node #1  4-5")


def test_a_list_of_cpus_is_cut_at_the_end_of_the_line() -> None:
    found = state()
    found["containers"][0]["cpus"] = ",".join(str(2 * one) for one in range(90))
    (row,) = (line for line in frame(found, 60).splitlines() if "mixed/main" in line)

    assert (len(row), row[-1]) == (60, "…")
    assert "  0,2,4," in row


def test_without_a_measurement_no_use_is_claimed() -> None:
    text = render_frame(Sample(state(), HOST, {}), 80).text

    assert "%" not in text
    assert "A shop/mixed/main  -    NUMA node #0  1-3" in text.splitlines()


def test_the_use_is_what_passed_between_two_answers() -> None:
    before = [{"id": 0, "busy": 10, "total": 100}, {"id": 1, "busy": 0, "total": 100}]
    after = [{"id": 0, "busy": 35, "total": 200}, {"id": 2, "busy": 9, "total": 9}]

    assert use_between({"cpus": before}, {"cpus": after}) == {0: 250}
    assert use_between(None, {"cpus": after}) == {}


# Keys.


def after(keys: str | list[str], view: View | None = None) -> View | None:
    found: View | None = view or View()
    for key in keys:
        assert found is not None
        found = pressed(found, key, page=10)
    return found


@pytest.mark.parametrize(
    ("keys", "view"),
    [
        pytest.param(["down", "down", "up"], View(first=1), id="a line"),
        pytest.param(["up"], View(), id="not before the first line"),
        pytest.param(["page down", "page down"], View(first=20), id="a page"),
        pytest.param(["page down", "home"], View(), id="to the first line"),
        pytest.param("s", View(order=Order.USE), id="the next order"),
        pytest.param("sss", View(), id="all orders"),
        pytest.param("c", View(has_cpus=False), id="no single CPUs"),
        pytest.param("cc", View(), id="and again"),
        pytest.param("/qs", View(pattern="qs", is_typing=True), id="a filter"),
        pytest.param(["/", "a", "enter"], View(pattern="a"), id="a filter that stays"),
        pytest.param(
            ["/", "a", "b", "backspace", "enter"], View(pattern="a"), id="a mistake"
        ),
        pytest.param(["/", "a", "escape"], View(), id="no filter"),
        pytest.param(["/", "a", "enter", "escape"], View(), id="no filter any more"),
        pytest.param(["x", "enter", ""], View(), id="keys without a meaning"),
        pytest.param("q", None, id="the end"),
        pytest.param("Q", None, id="the end, in capitals"),
    ],
)
def test_a_key(keys: str | list[str], view: View | None) -> None:
    assert after(keys) == view


@given(
    st.lists(st.sampled_from(["up", "down", "page up", "page down", "home", "end"])),
    st.integers(0, 60),
    st.integers(1, 30),
)
def test_the_last_page_is_full_if_there_are_enough_lines(
    keys: list[str], lines: int, room: int
) -> None:
    view = View()
    for key in keys:
        moved = pressed(view, key, room)
        assert moved is not None
        view = scrolled(moved, lines, room)

        assert 0 <= view.first <= max(lines - room, 0)
    if keys and keys[-1] == "end":
        assert view.first == max(lines - room, 0)


def test_the_help_line_shows_the_keys_and_the_place() -> None:
    assert help_text(View(), 5, 10) == "q quit  s sort: CPU  c CPUs  / filter"
    place = "  arrows: 4-13 of 20  "
    assert (
        help_text(View(first=3), 20, 10)
        == f"q quit  s sort: CPU  c CPUs{place}/ filter"
    )
    typing = View(pattern="we", is_typing=True)
    assert help_text(typing, 5, 10) == "filter: we_  Enter keeps it, Esc clears it"
    kept = help_text(View(pattern="we"), 5, 10)
    assert kept == "q quit  s sort: CPU  c CPUs  / filter: we, Esc clears it"


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[5~\x1b[6~", ["page up", "page down"]),
        (b"\x1b[H\x1bOF\x1b[1~\x1b[8~", ["home", "end", "home", "end"]),
        (b"/w\x7f\r", ["/", "w", "backspace", "enter"]),
        ("ö".encode(), ["ö"]),
        (b"\x1b[1;5C\x1b[200~\x00\t", []),
        (b"\x1b", ["escape"]),
        (b"\xff\xc3", []),
    ],
)
def test_keys_of_a_terminal(data: bytes, keys: list[str]) -> None:
    assert keys_of(data) == keys
