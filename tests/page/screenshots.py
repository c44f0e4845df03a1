"""``make screenshots``: a node at work as its page, `top` and its picture show it.

They are taken of the real programs: the daemon on the test runtime, `nri-resmgr` on a
terminal, and a headless Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import html
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from nri_resmgr.cli.workload import Workload
from nri_resmgr.testing import PluginRefused
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import QosClass
from tests.cli.command import ROOT, nri_resmgr
from tests.cli.terminal import on_a_terminal
from tests.daemon.daemon_process import daemon
from tests.daemon.test_observability import free_port
from tests.page.browser import Browser, browser
from tests.real_host.patience import wait_until

PICTURES: Final = ROOT / "docs" / "pictures"
NAMES: Final = ("page.png", "node.svg", "top.png")

_MACHINE: Final = parse_spec("2s2n4c2t memory=64Gi")
_WORKLOADS: Final = (
    Workload("db", QosClass.GUARANTEED, 4000),
    Workload("cache", QosClass.GUARANTEED, 2000),
    Workload("broker", QosClass.GUARANTEED, 3000),
    Workload("encoder", QosClass.GUARANTEED, 6000),
    *(Workload(f"web-{number}", QosClass.BURSTABLE, 500) for number in range(4)),
    Workload("api", QosClass.BURSTABLE, 1500),
    Workload("metrics", QosClass.BURSTABLE, 200),
    Workload("logs", QosClass.BEST_EFFORT),
    Workload("backup", QosClass.BEST_EFFORT),
    Workload("training", QosClass.GUARANTEED, 24000),  # more than there is
)
_TICKS: Final = 100  # per second, of /proc/stat
_COLUMNS: Final = 100
_LINES: Final = 32

# Those of a terminal, by ECMA-48's numbers.
_COLOURS: Final = ("#000", "#c33", "#4a4", "#a80", "#57c", "#a5a", "#3a9a9a", "#ccc")
_PAINTED: Final = re.compile(r"\x1b\[([0-9;]*)m(.*?)\x1b\[0m", re.DOTALL)
_OTHER: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_TERMINAL: Final = """\
<!DOCTYPE html><meta charset="utf-8"><body style="margin:0;background:#1c1c1c;
color:#ddd"><pre style="margin:0;padding:12px;width:max-content;
font:14px/1.3 'DejaVu Sans Mono',monospace">{}</pre></body>"""


async def take(folder: Path) -> None:
    """Take all screenshots, into *folder*."""
    with tempfile.TemporaryDirectory() as made, browser() as window:
        work, port = Path(made), free_port()
        socket = str(work / "control.sock")
        http = ("--http-endpoint", f"127.0.0.1:{port}", "--http-page")
        async with daemon(
            work,
            _MACHINE,
            *("--control-socket", socket, *http),
            before=lambda root: _write_times(root, 0),
        ) as running:
            for workload in _WORKLOADS:
                with suppress(PluginRefused):
                    await running.place(workload)
            # It begins some time after the first requests are answered.
            await running.line("http.listening")
            env = {"NRI_RESMGR_CONTROL_SOCKET": socket}
            await asyncio.to_thread(_take, folder, window, port, env, work / "host")


def _take(
    folder: Path, window: Browser, port: int, env: Mapping[str, str], root: Path
) -> None:
    window.open(f"http://127.0.0.1:{port}/")
    last = f"default/{_WORKLOADS[-1].name}/"
    wait_until(lambda: last in window.texts("#refusals")[0], "no refusal")
    wait_until(lambda: "default/db/db" in window.texts("#picture")[0], "no picture")
    page, node, top = (folder / name for name in NAMES)
    page.write_bytes(window.screenshot())

    drawn = nri_resmgr("status", "--picture", node, env=dict(env))
    assert drawn.returncode == 0, drawn.stderr

    frame = _top(env, root)
    shown = _TERMINAL.format(_markup(frame)).encode()
    window.open(f"data:text/html;base64,{base64.b64encode(shown).decode()}")
    top.write_bytes(window.screenshot("pre"))


def _top(env: Mapping[str, str], root: Path) -> str:
    """Return a frame of ``nri-resmgr top`` with its colours, while CPUs are busy."""

    def uses(shown: list[str], *, some: bool) -> bool:
        rows = [one for one in shown if "default/db/db" in one]
        is_whole = shown[-1].startswith("q quit")
        return is_whole and any((" 0%" not in one) is some for one in rows)

    words = ("top", "--interval", "0.5")
    with on_a_terminal(
        *words, columns=_COLUMNS, lines=_LINES, environment=dict(env)
    ) as terminal:
        terminal.until(partial(uses, some=False))
        _write_times(root, _TICKS)
        terminal.until(partial(uses, some=True))
        return terminal.text.rpartition("\x1b[H")[2]


def _markup(frame: str) -> str:
    """Return a frame with its colours as HTML."""

    def painted(match: re.Match[str]) -> str:
        codes = match[1].split(";")
        style = "font-weight:bold;" if "1" in codes else ""
        style += "opacity:.6;" if "2" in codes else ""
        style += "background:#ddd;color:#1c1c1c;" if "7" in codes else ""
        for code in (one for one in codes if len(one) > 1):
            what = "color" if code[0] == "3" else "background"
            style += f"{what}:{_COLOURS[int(code[1])]};"
        return f'<span style="{style}">{match[2]}</span>'

    return _OTHER.sub("", _PAINTED.sub(painted, html.escape(frame, quote=False)))


def _write_times(root: Path, ticks: int) -> None:
    """Write the times of the CPUs, each busy for its own part of so many *ticks*."""
    draw = Random(8)  # noqa: S311 - repeatable
    rows = []
    for cpu in _MACHINE.online:
        busy = round(ticks * draw.choice([0.12, 0.31, 0.46, 0.78, 0.97]))
        rows.append(f"cpu{cpu} {1 + busy} 0 0 {9 + ticks - busy} 0 0 0 0 0 0\n")
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/stat").write_text("".join(rows))


def main() -> None:
    """Take them for the docs, or into another folder."""
    parser = argparse.ArgumentParser(prog="python -m tests.page.screenshots")
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder")
    asyncio.run(take(parser.parse_args().to))


if __name__ == "__main__":
    main()
