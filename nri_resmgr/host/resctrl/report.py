"""What a change of groups came to."""

from __future__ import annotations

import msgspec


class Options(msgspec.Struct, frozen=True):
    """How groups of ours are told from those of others.

    Attributes:
        prefix: What the folders of our classes begin with; all that do are ours.
        adopts: A group of another program that has the name of a class is changed;
            what it had is put back when the class goes. Otherwise that is an error,
            unless the group has what the class is to have: then it is used as it is.
        forces: A class goes even if something runs in it, which then falls to the root
            group. Otherwise that is an error.
    """

    prefix: str = ""
    adopts: bool = False
    forces: bool = False


class Report(msgspec.Struct, frozen=True):
    """What was done, by the folders of groups; the root group's is empty.

    Attributes:
        made: New groups.
        written: Groups whose schemata were written.
        removed: Groups of ours that went.
        shared: Groups of others that have what we want, and are left alone.
        failed: Path and reason of what did not work and does not matter for classes
            that are wanted. It is tried again the next time.
    """

    made: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


class Drift(msgspec.Struct, frozen=True):
    """A group that does not hold what it held after we wrote it.

    Attributes:
        group: Its folder.
        ours: Its schemata then.
        present: Its schemata now; None where it is gone.
    """

    group: str
    ours: str
    present: str | None
