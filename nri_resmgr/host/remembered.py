"""Files of a host that stay the same while it runs, each read once."""

from __future__ import annotations

from nri_resmgr.host.tree import Tree


class RememberedTree:
    """Returns what a tree had at the first time, for the path of requests.

    Only for files that change with a boot, such as those that tell the version of the
    cgroups. What is absent is looked for again.

    Attributes:
        root: See `Tree`.
        live: The tree itself.
    """

    def __init__(self, tree: Tree) -> None:
        self.root = tree.root
        self.live = tree
        self._texts: dict[str, str] = {}

    def read(self, path: str) -> str | None:
        """See `Tree.read`."""
        text = self._texts.get(path)
        if text is None and (text := self.live.read(path)) is not None:
            self._texts[path] = text
        return text

    def read_again(self, path: str) -> str | None:
        """Read a file that has changed nevertheless.

        Raises:
            UnreadableHostFile: It is there and cannot be read.
        """
        self._texts.pop(path, None)
        return self.read(path)

    def names(self, path: str) -> tuple[str, ...]:
        """See `Tree.names`; not remembered."""
        return self.live.names(path)

    def target(self, path: str) -> str | None:
        """See `Tree.target`; not remembered."""
        return self.live.target(path)
