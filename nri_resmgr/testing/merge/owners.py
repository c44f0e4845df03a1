"""Records which plugin has set which field of a container in one request."""

from __future__ import annotations

from typing import Final, TypeAlias

from nri_proto import NriLevel, nri_pb2
from nri_proto.levels import NEWEST
from nri_resmgr.testing.errors import FieldConflict

_CLEARED_BY: Final = "-"

# Container id, field, key; no key for fields with a single value.
_Place: TypeAlias = tuple[str, int, str | None]


class Owners:
    """Owners of fields, and of keys in fields.

    A field or key has one owner. Only the plugin that has cleared it may claim it
    again.

    Args:
        level: The NRI release whose words errors have.
    """

    def __init__(self, level: NriLevel = NEWEST) -> None:
        self._level = level
        self._owners: dict[_Place, str] = {}

    def claim(
        self, container_id: str, field: int, plugin: str, key: str | None = None
    ) -> None:
        """Make a plugin the owner.

        Raises:
            FieldConflict: It has an owner, even if that is the same plugin.
        """
        place = (container_id, field, key)
        owner = self._owners.get(place)
        if owner is not None and owner != _CLEARED_BY + plugin:
            first = owner.removeprefix(_CLEARED_BY)
            raise FieldConflict(plugin, first, field, key, self._level)
        self._owners[place] = plugin

    def clear(
        self, container_id: str, field: int, plugin: str, key: str | None = None
    ) -> None:
        """Remove the owner of a field or key, if it has one."""
        self._owners[container_id, field, key] = _CLEARED_BY + plugin

    def share(self, container_id: str, field: int, plugin: str) -> None:
        """Add a plugin to the owners of a field that all plugins may set."""
        place = (container_id, field, None)
        before = self._owners.get(place)
        self._owners[place] = plugin if before is None else f"{before},{plugin}"

    def message(self) -> nri_pb2.OwningPlugins:
        """Return the owners as the message for validators."""
        owning = nri_pb2.OwningPlugins()
        for (container_id, field, key), plugin in self._owners.items():
            fields = owning.owners[container_id]
            if key is None:
                fields.simple[field] = plugin
            else:
                fields.compound[field].owners[key] = plugin
        return owning
