"""What is wrong with a reply before it is sent: a bug of the plugin, told to it.

Nothing has reached the runtime when one of these is raised.
"""

from __future__ import annotations

from dataclasses import dataclass


class ReplyError(ValueError):
    """Root of the tree; the plugin's author fixes the code that built the reply."""


@dataclass(eq=False)
class DuplicateKey(ReplyError):
    """A field, or a key of one, is set twice in one reply.

    The runtime would refuse the whole request as a conflict of the plugin with itself.
    """

    field: str
    key: str = ""

    def __str__(self) -> str:
        what = f"{self.field} {self.key!r}" if self.key else self.field
        return f"{what} is set twice in one reply"


@dataclass(eq=False)
class InvalidKey(ReplyError):
    """A key is empty, or begins with the "-" that marks a removal."""

    field: str
    key: str

    def __str__(self) -> str:
        if not self.key:
            return f"{self.field} needs a key that is not empty"
        return f'{self.field} key {self.key!r} begins with "-", the mark of removal'


@dataclass(eq=False)
class EmptyText(ReplyError):
    """Text that NRI takes for "unchanged" where the plugin wants to set something."""

    field: str

    def __str__(self) -> str:
        return f'{self.field} cannot be set to "": NRI reads that as unchanged'


@dataclass(eq=False)
class EmptyCpuset(EmptyText):
    """Empty `cpus` or `mems`."""


@dataclass(eq=False)
class MissingContainerId(ReplyError):
    """An update or eviction names no container; the runtime would drop it silently."""

    kind: str

    def __str__(self) -> str:
        return f"{self.kind} without a container id"


@dataclass(eq=False)
class SelfUpdate(ReplyError):
    """An update of the container being created, which only an adjustment can change."""

    container_id: str

    def __str__(self) -> str:
        return (
            f"update of {self.container_id!r} while it is being created: "
            "use the adjustment"
        )


@dataclass(eq=False)
class BadField(ReplyError):
    """A value does not fit into its field of the schema."""

    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"
