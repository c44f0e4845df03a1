"""Options and results of changes of groups."""

from __future__ import annotations

import msgspec


class ResctrlOptions(msgspec.Struct, frozen=True):
    """The groups that may be changed and removed.

    Attributes:
        prefix: Prefix of the folders of our classes; all groups with it are ours.
        adopts: Change a group of another program that has the name of a class, and
            restore its schemata when the class is removed. Otherwise that is an error,
            unless the group has the schemata of the class: then it is used as it is.
        forces: Remove a class even if it has threads, which move to the root group.
            Otherwise that is an error.
    """

    prefix: str = ""
    adopts: bool = False
    forces: bool = False


class ResctrlReport(msgspec.Struct, frozen=True):
    """Changes by folder of the group; empty for the root group.

    Attributes:
        shared: Unchanged groups of other programs that have the schemata of a class.
        failed: Path and reason of failures that do not matter for configured classes;
            the next call retries.
    """

    made: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


class ResctrlDrift(msgspec.Struct, frozen=True):
    """A group whose schemata another program has changed.

    Attributes:
        expected: Its schemata after we wrote them.
        present: Its schemata now; None if it is gone.
    """

    group: str
    expected: str
    present: str | None
