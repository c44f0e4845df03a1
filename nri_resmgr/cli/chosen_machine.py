"""The machine that a command is told: made up, from a dump, or this one."""

from __future__ import annotations

import argparse
from pathlib import Path

from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.host.tree import HostTree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.synthetic import parse_spec


def named_machine(text: str) -> Machine:
    """Read a spec, or the dump of that name.

    Raises:
        BadMachineSpec: There is no such file, and no machine is written so.
        BadDump: The file is no dump.
        UnreadableFile: It cannot be read.
    """
    path = Path(text)
    try:
        return load_dump(path) if path.exists() else parse_spec(text)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UnreadableFile(path, why) from None


def this_machine(options: argparse.Namespace) -> Machine:
    """Read the machine that the flags of the host are about.

    Raises:
        ResmgrError: It cannot be read.
    """
    kinds = read_memory_kinds(options.memory_kinds)
    return read_machine(HostTree(options.host_root), kinds)
