"""Mappings whose keys may be written in any letter case, as Go's readers take them."""

from __future__ import annotations

from collections.abc import Mapping

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table


def read_any_case(document: object, path: str, *keys: str) -> Table:
    """Take *document* for a mapping that has none but *keys*, in any letter case.

    Raises:
        BadSetting: It is no mapping, has another key, or one twice.
    """
    if not isinstance(document, Mapping):
        return Table.read(document, *keys, path=path)
    known = {key.lower(): key for key in keys}
    found: dict[object, object] = {}
    for key, value in document.items():
        name = known.get(key.lower(), key) if isinstance(key, str) else key
        if name in found:
            raise BadSetting(f"{path}.{key}", "comes twice, in another letter case")
        found[name] = value
    return Table.read(found, *keys, path=path)
