"""The folder of ``simulate --cluster``: dumps of nodes, and manifests of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.cli.chosen_machine import named_machine
from nri_resmgr.cli.workload_files import MANIFESTS, files_below, not_read, read_all
from nri_resmgr.scenario.manifests import read_objects
from nri_resmgr.scenario.objects import Found
from nri_resmgr.scenario.steps import LeftOut
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError

_DUMP: Final = ".tgz"


class ClusterFolder(msgspec.Struct, frozen=True):
    """What a folder has.

    Attributes:
        machines: By the names of the nodes.
        objects: Those of the manifests.
        unread: The files that are neither.
    """

    machines: Mapping[str, Machine]
    objects: tuple[Found, ...]
    unread: tuple[LeftOut, ...]


@dataclass(eq=False)
class NoNodes(InputError):
    """A folder has no dump."""

    folder: Path

    def __str__(self) -> str:
        return (
            f"--cluster {self.folder}: no file in it ends in {_DUMP}; "
            f"write NODE{_DUMP} for each node with `nri-resmgr topology dump`"
        )


@dataclass(eq=False)
class SameNode(InputError):
    """Two files are dumps of one node."""

    node: str
    first: Path
    second: Path

    def __str__(self) -> str:
        return f"{self.first} and {self.second} are dumps of the same node, {self.node}"


def read_cluster(folder: Path) -> ClusterFolder:
    """Read the dumps, ``NODE.tgz``, and the manifests in a folder and below.

    Raises:
        UnreadableFile: A file or a folder cannot be read.
        NoNodes: There is no dump.
        SameNode: Two dumps have the same name.
        BadDump: A file is not a dump, or damaged.
        BadFile: A manifest has a mistake.
        SameObject: Two files have the same object.
    """
    files = list(files_below(folder))
    dumps: dict[str, Path] = {}
    for path in (one for one in files if one.suffix == _DUMP):
        if (first := dumps.setdefault(path.stem, path)) != path:
            raise SameNode(path.stem, first, path)
    if not dumps:
        raise NoNodes(folder)
    manifests = [one for one in files if one.suffix in MANIFESTS]
    others = (one for one in files if one.suffix not in (*MANIFESTS, _DUMP))
    return ClusterFolder(
        machines={name: named_machine(str(path)) for name, path in dumps.items()},
        objects=tuple(read_objects(read_all(manifests))),
        unread=tuple(not_read(one, (*MANIFESTS, _DUMP)) for one in others),
    )
