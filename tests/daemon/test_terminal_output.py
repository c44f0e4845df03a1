"""``status`` and ``top`` of a real daemon on a real terminal."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from nri_resmgr.cli.workload import Workload
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import nri_resmgr
from tests.cli.terminal import Terminal, on_a_terminal
from tests.control.json_schema import mistakes
from tests.daemon.daemon_process import daemon

pytestmark = pytest.mark.process

WEB = Workload("web", QosClass.GUARANTEED, 2000)
LONG = Workload(
    "a-name-as-long-as-those-of-deployments-7d9f8c", QosClass.BURSTABLE, 500
)


STILL = ("--interval", "3600")
"""Flags with which only keys change the screen."""


def write_times(root: Path, busy: Mapping[int, int], total: int) -> None:
    """Write the busy and all clock ticks of the CPUs of a host, as the kernel does."""
    lines = [
        f"cpu{cpu} {busy.get(cpu, 0)} 0 0 {total - busy.get(cpu, 0)} 0"
        for cpu in range(8)
    ]
    path = root / "proc" / "stat"
    path.parent.mkdir(exist_ok=True)
    (path.parent / "new").write_text("\n".join(lines) + "\n")
    (path.parent / "new").replace(path)


async def shown(
    folder: Path,
    watch: Callable[[Path, Path], None],
    *workloads: Workload,
) -> None:
    """Run a daemon with containers, and *watch* it: its socket and its host's root."""
    socket = folder / "control.sock"

    def before(root: Path) -> None:
        write_times(root, {}, 100)

    flags = ("--control-socket", str(socket))
    async with daemon(folder, parse_spec("1s2n4c1t"), *flags, before=before) as running:
        for workload in workloads:
            await running.place(workload)
        await running.line("control.listening")
        await asyncio.to_thread(watch, socket, folder / "host")


def names(screen: list[str]) -> list[str]:
    """Return the containers on the screen, by the beginning of their pods' names."""
    return [line.split("/")[1][:3] for line in screen if "default/" in line]


async def test_status_fits_the_terminal_and_has_colours(tmp_path: Path) -> None:
    def watch(socket: Path, _: Path) -> None:
        words = ("status", "--control-socket", str(socket))
        plain = nri_resmgr(*words).stdout
        with on_a_terminal(*words, columns=80) as terminal:
            painted = terminal.rest()
            lines = terminal.screen
        with on_a_terminal(*words, environment={"NO_COLOR": "1"}) as terminal:
            bare = terminal.rest()

        assert "\x1b" not in plain + bare
        assert painted.startswith("\x1b[1mnri-resmgr")
        assert [line for line in lines if len(line) > 80] == []
        # Where a program reads, a container is one line.
        assert any(
            f"{LONG.pod.name}/{LONG.container.name}  " in line
            for line in plain.splitlines()
        )

    await shown(tmp_path, watch, WEB, LONG)


async def test_status_of_a_namespace(tmp_path: Path) -> None:
    def watch(socket: Path, _: Path) -> None:
        words = ("status", "--control-socket", socket, "-n")
        here, none = nri_resmgr(*words, "default"), nri_resmgr(*words, "none")
        data = [
            json.loads(nri_resmgr(*words, name, "-o", "json").stdout)
            for name in ("default", "none")
        ]

        assert "default/web/web" in here.stdout
        assert "default/web/web" not in none.stdout
        assert none.stdout.endswith("no containers in namespace none\n")
        assert (here.returncode, none.returncode) == (0, 0)
        assert [len(one["containers"]) for one in data] == [1, 0]

    await shown(tmp_path, watch, WEB)


async def test_top_scrolls_below_its_heading(tmp_path: Path) -> None:
    def watch(socket: Path, _: Path) -> None:
        words = ("top", *STILL, "--control-socket", str(socket))
        with on_a_terminal(*words, columns=60, lines=12) as terminal:
            first = terminal.until(lambda screen: place_of(screen)[0] == 1)
            terminal.press("\x1b[B")
            second = terminal.until(lambda screen: place_of(screen)[0] == 2)
            terminal.press("\x1b[F")
            last = terminal.until(lambda screen: place_of(screen)[0] > 2)
            terminal.press("\x1b[A\x1b[5~\x1b[H")
            again = terminal.until(lambda screen: place_of(screen)[0] == 1)
            terminal.press("q")
            text = terminal.rest()

        head = first.index("") + 1
        assert [len(one) for one in (first, second, last)] == [12, 12, 12]
        assert [line for line in first if len(line) > 60] == []
        assert first[:head] == second[:head] == last[:head]
        assert second[head:-2] == first[head + 1 : -1]
        at, every = place_of(last)[1:]
        assert at == every > place_of(first)[1]
        assert again == first
        assert terminal.process.returncode == 0
        assert text.endswith("\x1b[?25h\x1b[?1049l")

    await shown(tmp_path, watch, WEB, LONG)


def place_of(screen: list[str]) -> tuple[int, int, int]:
    """Return the first and the last visible line and their number, or zeros."""
    found = re.search(r"arrows: (\d+)-(\d+) of (\d+)  / filter$", screen[-1])
    first, last, every = map(int, found.groups()) if found else (0, 0, 0)
    return first, last, every


async def test_top_sorts_and_filters(tmp_path: Path) -> None:
    def watch(socket: Path, _: Path) -> None:
        words = ("top", *STILL, "--control-socket", str(socket))
        with on_a_terminal(*words, lines=40) as terminal:
            by_cpu = terminal.until(complete("sort: CPU"))
            terminal.press("ss")
            by_name = terminal.until(complete("sort: name"))
            terminal.press("/WE")
            typing = terminal.until(complete("filter: WE_"))
            terminal.press("\r")
            kept = terminal.until(complete("filter: WE, Esc"))
            terminal.press("\x1b")
            free = terminal.until(lambda screen: screen[-1].endswith("/ filter"))
            terminal.press("c")
            terminal.until(lambda screen: "of its CPUs used" not in "".join(screen))

        assert names(by_cpu) == ["web", "a-n"]
        assert names(by_name) == names(free) == ["a-n", "web"]
        assert names(typing) == names(kept) == ["web"]
        assert "1 without 'WE' in the name" in kept

    await shown(tmp_path, watch, WEB, LONG)


def complete(text: str) -> Callable[[list[str]], bool]:
    return lambda screen: text in screen[-1]


async def test_top_shows_the_use_of_cpus_and_pools(tmp_path: Path) -> None:
    def watch(socket: Path, root: Path) -> None:
        words = ("top", "--interval", "0.1", "--control-socket", str(socket))
        with on_a_terminal(*words, lines=40) as terminal:
            before = terminal.until(complete("q quit"))
            write_times(root, {4: 100, 5: 50, 0: 10}, 200)
            wait_for_use(terminal)
        once = nri_resmgr("top", "--once", "--control-socket", socket).stdout

        assert before[-1].startswith("q quit")
        lines = [" ".join(line.split()) for line in terminal.text.splitlines()]
        assert any("NUMA node #1 38% " in line for line in lines)
        assert any("web/web 75% NUMA node #1 4-5" in line for line in lines)
        # Nothing passed between its two samples.
        assert "socket 0: 0% of its CPUs used" in once

    await shown(tmp_path, watch, WEB)


async def test_top_prints_frames_for_programs(tmp_path: Path) -> None:
    def watch(socket: Path, _: Path) -> None:
        words = ("top", "--once", "--control-socket", socket, "-o")
        for form, parse in (("json", json.loads), ("yaml", yaml.safe_load)):
            frame = parse(nri_resmgr(*words, form).stdout)
            state, host = frame.pop("state"), frame.pop("host")

            assert frame == {"apiVersion": "cli.nri/v1", "kind": "Frame"}
            assert mistakes(state, "State") == mistakes(host, "Host") == []
            assert [one["pod"] for one in state["containers"]] == ["web"]

    await shown(tmp_path, watch, WEB)


def wait_for_use(terminal: Terminal) -> None:
    # One frame has it: the next one is about the time after it.
    wanted = ("socket 0: 20% of its CPUs used", "100%", " 50%")
    terminal.until(lambda _: all(text in terminal.text for text in wanted))
