"""Host files in memory, and a tree that records what is read from another one."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import cached_property

import msgspec

from nri_resmgr.host.speed_select.isst import IsstDevice
from nri_resmgr.host.tree import Tree


class RecordedTree(msgspec.Struct, frozen=True, dict=True):
    """Host files in memory.

    Attributes:
        links: Path on the host to the absolute path of its target. A link to itself
            stands for a file that exists, without its content.
    """

    files: Mapping[str, str]
    links: Mapping[str, str] = {}
    isst: IsstDevice | None = None

    @property
    def root(self) -> str:
        """See `Tree.root`."""
        return ""

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        text = self.files.get(path)
        if text is None and self.links:
            text = self.files.get(self._resolved(path))
        return text

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        return tuple(sorted(self._children.get(self._resolved(path), ())))

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        if path in self.links:  # even if nothing below it was read
            return self.links[path]
        real = self._resolved(path)
        return real if real in self.files or real in self._children else None

    def _resolved(self, path: str) -> str:
        """Follow the first link of a path; targets contain no links."""
        at = path
        while at not in ("/", ""):
            if at in self.links:
                return self.links[at] + path[len(at) :]
            at = posixpath.dirname(at)
        return path

    @cached_property
    def _children(self) -> Mapping[str, set[str]]:
        children: dict[str, set[str]] = {}
        for path in (*self.files, *self.links):
            at = path
            while at not in ("/", ""):
                parent, name = posixpath.split(at)
                known = children.setdefault(parent, set())
                if name in known:
                    break
                known.add(name)
                at = parent
        return children


class RecordingTree:
    """Reads another tree, and records every file and link."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.root = tree.root
        self.files: dict[str, str] = {}
        self.links: dict[str, str] = {}

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        text = self.tree.read(path)
        if text is not None:
            self.files[path] = text
        return text

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`."""
        return self.tree.names(path)

    def target(self, path: str) -> str | None:
        """See `Tree.target`."""
        real = self.tree.target(path)
        if real is not None:
            self.links[path] = real
        return real

    def recorded(self) -> RecordedTree:
        """Return the files and links that were read so far."""
        return RecordedTree(dict(self.files), dict(self.links))
