"""Pressure as the kernel writes it."""

from __future__ import annotations

from pathlib import Path

from nri_resmgr.host.pressure import Pressure, Stall, read_pressure
from nri_resmgr.host.tree import HostTree

CPU = """\
some avg10=98.27 avg60=93.50 avg300=67.56 total=9728651045
full avg10=0.00 avg60=1.00 avg300=2.50 total=0
"""
OLD_CPU = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\n"  # before Linux 5.13


def write(root: Path, path: str, text: str) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_each_resource_has_its_lines(tmp_path: Path) -> None:
    write(tmp_path, "/proc/pressure/cpu", OLD_CPU)
    write(tmp_path, "/proc/pressure/io", CPU)

    assert read_pressure(HostTree(tmp_path)) == {
        "cpu": Pressure(Stall(1.0, 2.0, 3.0), None),
        "io": Pressure(Stall(98.27, 93.5, 67.56), Stall(0.0, 1.0, 2.5)),
    }


def test_kernels_without_pressure_report_none(tmp_path: Path) -> None:
    write(tmp_path, "/proc/pressure/cpu", "")

    assert read_pressure(HostTree(tmp_path)) == {}
