"""``python -m tests.benchmarks.help_pages``: CPU time of help, beside a bare Python's.

The programs are those of an installation without development tools. They take turns, so
that other load affects all of them; each runs once before, for its byte code.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.plugins import Programs
from tests.benchmarks.process import cpu_seconds_of_run
from tests.benchmarks.tables import HEADER, busy_machine, print_row

RUNS: Final = 20

_SOURCE: Final = Path(__file__).parents[2]
_AIM: Final = "≤ 80"


def main() -> None:
    """Print a row for each program."""
    print(f"Machine: {busy_machine()}\n")
    with tempfile.TemporaryDirectory(prefix="nri-help-") as folder:
        python = Programs.install(Path(folder), _SOURCE).python
        client = python.with_name("nri-resmgr")
        commands = {
            "python -c pass": (python, "-c", "pass"),
            "nri-resmgr --help": (client, "--help"),
            "nri-resmgr status --help": (client, "status", "--help"),
        }
        turns = [
            [1e3 * cpu_seconds_of_run(command) for command in commands.values()]
            for _ in range(RUNS + 1)
        ]
    print(HEADER)
    for words, figures in zip(commands, zip(*turns[1:], strict=True), strict=True):
        aim = _AIM if words.endswith("--help") else ""
        print_row(f"`{words}`, ms of a CPU", figures, aim)


if __name__ == "__main__":
    main()
