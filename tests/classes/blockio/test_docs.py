"""The page about block I/O classes is true."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import yaml

from nri_resmgr.classes.blockio import IoLimits, ParameterSet
from tests.classes.blockio.samples import classes_of

PAGE = Path(__file__).parents[3] / "docs" / "blockio.md"


def test_the_example_runs() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)

    assert result.attempted > 0
    assert result.failed == 0


def test_the_file_of_the_page_is_read() -> None:
    # Examples of documents stand in a list, so their fences are indented.
    [text] = re.findall(r"(?ms)^```yaml\n(.*?)```", PAGE.read_text())

    devices = ("/dev/sd[a-z]", "/dev/disk/by-id/ata-x")
    assert classes_of(yaml.safe_load(text)) == {
        "slow": (
            ParameterSet(devices, IoLimits(50, 60_000_000, 40 << 20, 10_000, 5_000)),
            ParameterSet((), IoLimits(400)),
        )
    }
