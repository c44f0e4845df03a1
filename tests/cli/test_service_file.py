"""The systemd unit starts the command as it is."""

from __future__ import annotations

import shlex
from configparser import ConfigParser
from pathlib import Path

from nri_resmgr.cli.main import build_parser

UNIT = Path(__file__).parents[2] / "deploy" / "nri-resmgr.service"


def test_the_unit_runs_a_command_that_there_is() -> None:
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign] # systemd's case
    unit.read(UNIT)
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])

    assert Path(program).name == "nri-resmgr"
    assert build_parser({}).parse_args(arguments).command.__name__ == "_run"
