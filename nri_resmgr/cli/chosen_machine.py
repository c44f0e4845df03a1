"""The machine that a command works on: synthetic, from a dump, or this one."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.host.bounded import reason
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec


def named_machine(text: str) -> Machine:
    """Parse the spec of a synthetic machine, or load the dump of that name.

    Raises:
        BadMachineSpec: There is no such file, and the text is not a spec.
        BadDump: The file is not a dump.
        UnreadableFile: The file cannot be read.
    """
    path = Path(text)
    with readable(path):
        return load_dump(path) if path.exists() else parse_spec(text)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise `UnreadableFile` for what the operating system refuses."""
    try:
        yield
    except OSError as error:
        raise UnreadableFile(path, reason(error)) from None


def this_machine(options: argparse.Namespace) -> Machine:
    """Read the machine of the host that the flags name."""
    kinds = read_memory_kinds(options.memory_kinds)
    return read_machine(HostTree(options.host_root), kinds)
