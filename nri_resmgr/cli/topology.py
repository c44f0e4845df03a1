"""``nri-resmgr topology``: what the machine is, for people, programs, bug reports."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.dump import load_dump, load_files, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.topology import Machine
from nri_resmgr.topology.document import to_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.text import format_tree
from nri_resmgr.values import HostError


@dataclass(eq=False)
class CannotWrite(HostError):
    """The system refuses to write what was asked for."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why.lower()}"


def show(options: argparse.Namespace) -> int:
    """Print the model as a tree, JSON or YAML."""
    machine = _machine(options)
    match options.output:
        case "json":
            json.dump(to_document(machine), sys.stdout, indent=2)
            print()
        case "yaml":
            import yaml

            yaml.safe_dump(to_document(machine), sys.stdout, sort_keys=False)
        case _:
            print(format_tree(machine))
    return 0


def dump(options: argparse.Namespace) -> int:
    """Write the machine and the files it was read from into one archive."""
    try:
        machine = write_dump(_tree(options), options.file)
    except OSError as error:
        raise CannotWrite(options.file, error.strerror or str(error)) from None
    print(f"{options.file}: {len(machine.online)} CPUs, {len(machine.nodes)} nodes")
    return 0


def sysfs(options: argparse.Namespace) -> int:
    """Write the machine as the sysfs files that tell of it."""
    machine = _machine(options)
    try:
        write_tree(sysfs_files(machine), options.folder)
    except OSError as error:
        raise CannotWrite(options.folder, error.strerror or str(error)) from None
    print(f"{options.folder}: a root for programs that read sysfs")
    return 0


def _machine(options: argparse.Namespace) -> Machine:
    if options.machine is not None:
        return parse_spec(options.machine)
    if options.load is not None:
        with _reading(options.load):
            return load_dump(options.load)
    kinds = read_memory_kinds(options.memory_kinds)
    return read_machine(HostTree(options.host_root), kinds)


def _tree(options: argparse.Namespace) -> Tree:
    if options.machine is not None:
        return sysfs_files(parse_spec(options.machine))
    if options.load is not None:
        with _reading(options.load):
            return load_files(options.load)
    return HostTree(options.host_root)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UnreadableFile(path, why) from None
