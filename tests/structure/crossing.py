"""The project's files, functions, classes and lines that one CreateContainer enters."""

from __future__ import annotations

import ast
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.benchmarks.churn import USUAL_CPUS, node
from tests.benchmarks.plugins import running
from tests.structure.source import length

ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = Path(__file__).with_name("traced_daemon.py")
_OURS: Final = tuple(f"{ROOT / name}{os.sep}" for name in ("nri_resmgr", "nri_proto"))

# Methods of values that a library wrote in Python. Libraries that we use have none
# such of their own on the way of a request.
_GENERATED: Final = ("<attrs generated", "<string>")

CONTAINERS: Final = 10
"""That run before."""

# Burstable, and alike in the workload of the benchmarks. The first one warms all paths.
FIRST: Final = 17
SECOND: Final = 97

_PATIENCE: Final = 10.0  # seconds
# What follows a reply is done by then, on a busy machine, too. Else it would count as
# part of the next request.
_QUIET: Final = 2.0  # seconds

Entered = tuple[str, int, str]


class Crossing(NamedTuple):
    """Counts of what was entered, each once.

    Attributes:
        files: Modules of ours with a function that was entered.
        functions: Code objects: functions, methods, and lambdas, comprehensions and
            generator expressions in them; those that are generated included.
        classes: Classes with a method that was entered; those that only hold values
            are not seen.
        lines: Of the functions and methods, without blank lines and docstrings.
    """

    files: int
    functions: int
    classes: int
    lines: int


def crossings() -> tuple[Crossing, Crossing]:
    """Trace a daemon; return what was crossed up to the reply, and with what follows.

    Raises:
        TimeoutError: The daemon did not write what it had noted.
    """
    entered = _trace()
    before_reply = entered[: entered.index(None)]
    return _count(before_reply), _count(entered)


def _trace() -> list[Entered | None]:
    with node(USUAL_CPUS) as here:
        output = here.root.with_suffix(".json")
        _, *flags = here.command("")
        program = (sys.executable, "-P", str(_PROGRAM), str(output), *flags)
        with running(program, environment={"PYTHONPATH": str(ROOT)}) as plugin:
            plugin.peer.call("Synchronize", here.snapshot(CONTAINERS - 1))
            here.arrive(FIRST, plugin.peer)
            here.announce(SECOND, plugin.peer)
            _toggle(plugin.pid)
            here.create(SECOND, plugin.peer)
            _toggle(plugin.pid)
            _wait_for(output)
        rows = json.loads(output.read_text())
    return [row and (row[0], row[1], row[2]) for row in rows]


def _toggle(pid: int) -> None:
    time.sleep(_QUIET)
    os.kill(pid, signal.SIGRTMIN)
    time.sleep(_QUIET)


def _wait_for(output: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not output.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(output)
        time.sleep(0.01)


def _count(entered: Iterable[Entered | None]) -> Crossing:
    ours = {one for one in entered if one and _is_ours(one[0])}
    # Many have the same name and line.
    generated = [one for one in entered if one and one[0].startswith(_GENERATED)]
    named = {one for one in ours if not one[2].endswith(">")}
    return Crossing(
        files=len({path for path, _, _ in ours}),
        functions=len(ours) + len(generated),
        classes=len({(path, _owner(full)) for path, _, full in named if _owner(full)}),
        lines=sum(_lines(path)[line] for path, line, _ in named),
    )


def _is_ours(path: str) -> bool:
    return path.startswith(_OURS) and f"{os.sep}_gen{os.sep}" not in path


def _owner(full: str) -> str:
    """Name the class of a method; empty for a function."""
    before, _, _ = full.rpartition(".")
    return "" if before.endswith("<locals>") else before


@cache
def _lines(path: str) -> Mapping[int, int]:
    """Return the lines of each function of a file by where its code begins."""
    text = Path(path).read_text(encoding="utf-8")
    return {
        # Where decorators are, the code begins with them.
        min([one.lineno, *(by.lineno for by in one.decorator_list)]): length(one, text)
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
