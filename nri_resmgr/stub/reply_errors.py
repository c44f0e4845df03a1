"""What is wrong with a reply before it is sent: a bug of the plugin, told to it.

Nothing has reached the runtime when one of these is raised.
"""

from __future__ import annotations

from nri_resmgr.values.error_fields import with_fields


class ReplyError(ValueError):
    """Root of the tree; the plugin's author fixes the code that built the reply."""


@with_fields
class DuplicateKey(ReplyError):
    """A field, or a key of one, is set twice in one reply.

    The runtime would refuse the whole request as a conflict of the plugin with itself.
    """

    field: str
    key: str = ""

    def __str__(self) -> str:
        what = f"{self.field} {self.key!r}" if self.key else self.field
        return f"{what} is set twice in one reply"


@with_fields
class BadKey(ReplyError):
    """A key is empty, or begins with the "-" that marks a removal."""

    field: str
    key: str

    def __str__(self) -> str:
        if not self.key:
            return f"{self.field} needs a key that is not empty"
        return f'{self.field} key {self.key!r} begins with "-", the mark of removal'


@with_fields
class EmptyText(ReplyError):
    """Text that NRI takes for "unchanged" where the plugin wants to set something."""

    field: str

    def __str__(self) -> str:
        return f'{self.field} cannot be set to "": NRI reads that as unchanged'


@with_fields
class EmptyCpuset(EmptyText):
    """Empty `cpus` or `mems`."""


@with_fields
class MissingContainerId(ReplyError):
    """An update or eviction names no container; the runtime would drop it silently."""

    kind: str

    def __str__(self) -> str:
        return f"{self.kind} without a container id"


@with_fields
class SelfUpdate(ReplyError):
    """An update of the container being created, which only an adjustment can change."""

    container_id: str

    def __str__(self) -> str:
        return (
            f"update of {self.container_id!r} while it is being created: "
            "use the adjustment"
        )


@with_fields
class BadField(ReplyError):
    """A value does not fit into its field of the schema."""

    field: str
    why: str

    def __str__(self) -> str:
        return f"{self.field}: {self.why}"
