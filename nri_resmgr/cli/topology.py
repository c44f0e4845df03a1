"""``nri-resmgr topology``: show the machine, or write it to a file."""

from __future__ import annotations

import argparse
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.chosen_machine import readable, this_machine
from nri_resmgr.cli.flags import Parser, add_host_flags, add_picture_flag
from nri_resmgr.cli.output import (
    add_output,
    is_document,
    own_document,
    print_document,
)
from nri_resmgr.cli.output_files import write_picture
from nri_resmgr.host.machine.dump import load_dump, load_files, write_dump
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.pictures.values import Picture, Plan
from nri_resmgr.topology import Machine
from nri_resmgr.topology.document import to_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.topology.text import format_tree
from nri_resmgr.values import HostError
from nri_resmgr.values.counts import count_text

_STDOUT: Final = Path("-")

_EXAMPLES: Final = """\
examples:
  nri-resmgr topology                            this machine, as a tree
  nri-resmgr topology -o json                    for programs
  nri-resmgr topology --picture node.svg         as a picture, too
  nri-resmgr topology dump node7.tgz             capture it, such as for a bug report
  nri-resmgr topology --load node7.tgz           show a captured one
  nri-resmgr topology --machine 2s2n8c2t sysfs /tmp/host
                                                 write a synthetic one as sysfs files
"""

_DUMP_EXAMPLES: Final = """\
examples:
  nri-resmgr topology dump node7.tgz                        this machine
  nri-resmgr topology --machine 2s2n8c2t dump small.tgz     a synthetic one
  nri-resmgr topology dump - > node7.tgz                    by standard output
"""

_SYSFS_EXAMPLES: Final = """\
examples:
  nri-resmgr topology --machine 2s2n8c2t sysfs /tmp/host    a synthetic machine
  nri-resmgr topology --load node7.tgz sysfs /tmp/host      a captured one
"""


@dataclass(eq=False)
class CannotWrite(HostError):
    """The operating system refuses to write the file."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why.lower()}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = "Show the machine as the policies see it."
    parser.epilog = _EXAMPLES
    add_host_flags(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--machine", metavar="SPEC", help="a synthetic machine, such as 2s2n8c2t"
    )
    source.add_argument(
        "--load", type=Path, metavar="FILE", help="an archive of `topology dump`"
    )
    add_picture_flag(parser, "the machine")
    add_output(parser)
    parser.set_defaults(action=show)
    actions = parser.add_subparsers(title="other actions", metavar="[ACTION]")
    to_archive = actions.add_parser(
        "dump",
        help="write the machine to an archive, for --load",
        epilog=_DUMP_EXAMPLES,
    )
    to_archive.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="archive to write, or - for standard output",
    )
    to_archive.set_defaults(action=dump)
    to_folder = actions.add_parser(
        "sysfs", help="write the machine as sysfs files", epilog=_SYSFS_EXAMPLES
    )
    to_folder.add_argument(
        "folder", type=Path, metavar="FOLDER", help="folder to write to"
    )
    to_folder.set_defaults(action=sysfs)


def run(options: argparse.Namespace) -> int:
    """Show the machine, or write it."""
    options.action(options)
    if options.picture:
        write_picture(_picture(_machine(options)), options.picture)
    return 0


def show(options: argparse.Namespace) -> None:
    """Print the machine as a tree, or as a document."""
    machine = _machine(options)
    if is_document(options.output):
        found = own_document("Topology", {"machine": to_document(machine)})
        print_document(found, options.output)
    else:
        print(format_tree(machine))


def dump(options: argparse.Namespace) -> None:
    """Write the machine and the files it was read from to one archive."""
    if options.file == _STDOUT:
        if sys.stdout.isatty():
            why = "a terminal cannot take it; send it to a file"
            raise CannotWrite(options.file, why)
        # Nothing is written before all is read: an error leaves no part of an archive.
        archive = io.BytesIO()
        write_dump(_tree(options), archive)
        # As bytes, and not by a stream of text, which may be closed and None.
        with os.fdopen(1, "wb", closefd=False) as stdout:
            stdout.write(archive.getvalue())
        return
    try:
        machine = write_dump(_tree(options), options.file)
    except OSError as error:
        raise CannotWrite(options.file, error.strerror or str(error)) from None
    print(
        f"{options.file}: {count_text(len(machine.online), 'CPU')}, "
        f"{count_text(len(machine.nodes), 'node')}"
    )


def sysfs(options: argparse.Namespace) -> None:
    """Write the machine as sysfs files."""
    machine = _machine(options)
    try:
        write_tree(sysfs_files(machine), options.folder)
    except OSError as error:
        raise CannotWrite(options.folder, error.strerror or str(error)) from None
    print(f"{options.folder}: a host root with the sysfs files of the machine")


def _picture(machine: Machine) -> Picture:
    parts = [f"{count_text(len(machine.online), 'CPU')} online"]
    parts += [f"offline {machine.offline}"] if machine.offline else []
    return Picture(", ".join(parts), (Plan(machine),))


def _machine(options: argparse.Namespace) -> Machine:
    if options.machine is not None:
        return parse_spec(options.machine)
    if options.load is not None:
        with readable(options.load):
            return load_dump(options.load)
    return this_machine(options)


def _tree(options: argparse.Namespace) -> Tree:
    if options.machine is not None:
        return sysfs_files(parse_spec(options.machine))
    if options.load is not None:
        with readable(options.load):
            return load_files(options.load)
    return HostTree(options.host_root)
