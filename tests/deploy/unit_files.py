"""Our units of systemd as files, and what ``systemd-analyze`` says of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.real_host.absent import give_up

SYSTEMD: Final = Path(__file__).parents[2] / "deploy" / "systemd"
UNIT: Final = SYSTEMD / "nri-resmgr.service"
AGENT_UNIT: Final = SYSTEMD / "nri-resmgr-agent.service"
PROGRAM: Final = "/opt/nri-resmgr/bin/nri-resmgr"


def settings_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the settings of a unit, or of a drop-in."""
    for line in path.read_text().splitlines():
        key, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            yield key, value


def drop_ins_of(unit: Path) -> tuple[Path, ...]:
    """Return the drop-ins of a unit."""
    return tuple(sorted(unit.parent.glob(f"{unit.name}.d/*.conf")))


def put(unit: Path, units: Path) -> None:
    """Put a unit into a folder of units, as installed on a machine that has us."""
    if shutil.which("systemd-analyze") is None:
        give_up("systemd-analyze is not installed")
    text = unit.read_text().replace(PROGRAM, sys.executable)
    (units / unit.name).write_text(text)
    (units / f"{unit.name}.d").mkdir()


def analyze(units: Path, unit: Path, *words: str) -> tuple[int, str]:
    """Run ``systemd-analyze`` on a unit; return its status and what it said."""
    done = subprocess.run(
        ["systemd-analyze", *words, units / unit.name],
        # With a colon at the end the units of this machine are found, too.
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{units}:", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr
