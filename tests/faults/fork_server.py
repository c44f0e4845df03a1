"""Starts daemons for a test, one after the other: forked, with the imports done.

Commands are lines of JSON on standard input. Each is answered by two lines: the
process id at once, and the exit status when it has ended.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Final

import nri_resmgr
from nri_resmgr.__main__ import main
from tests.faults.trigger import Trigger

# What a daemon imports sooner or later: a start takes a fifth of the time then.
_PACKAGES: Final = ("app", "config", "control", "daemon", "host", "policy", "stub")

_FAILED: Final = 70
_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG


def import_all() -> None:
    """Import what daemons need."""
    for package in _PACKAGES:
        found = importlib.import_module(f"nri_resmgr.{package}")
        for module in pkgutil.walk_packages(found.__path__, f"{found.__name__}."):
            if "tracing" not in module.name:  # an extra
                importlib.import_module(module.name)


def slow_down(seconds: float) -> None:
    """Delay writes of checkpoints, in the thread that writes, as disks do."""

    def hook(event: str, arguments: Any) -> None:
        if event == "os.rename" and "checkpoint" in arguments[0]:
            time.sleep(seconds)

    sys.addaudithook(hook)


def let_clock_jump(path: Path) -> None:
    """Shift the time of day of this process by what a file has.

    A clock belongs to the whole machine, and the kernel has namespaces for the
    others only. So Python's is replaced before the daemon reads it.
    """
    true_ns = time.time_ns

    def time_ns() -> int:
        return true_ns() + int(float(path.read_text()) * 1e9)

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9


def serve() -> None:
    """Process commands until the end of the input."""
    import_all()
    for line in sys.stdin:
        order = json.loads(line)
        sys.stdout.flush()
        if not (pid := os.fork()):
            os._exit(_run(order))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _run(order: dict[str, Any]) -> int:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, number)
    if order["slow"]:
        slow_down(order["slow"])
    if order["clock"]:
        let_clock_jump(Path(order["clock"]))
    # A file may not grow beyond some limit: then the kernel ends the process.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    if order["trigger"]:
        Trigger(Path(order["trigger"])).watch_this_process()
    try:
        return main(order["arguments"])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is the outcome
        traceback.print_exc()
        return _FAILED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    print(nri_resmgr.__name__, flush=True)
    serve()
