"""What a validating plugin is told beside the merged adjustment."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nri_resmgr.stub.model.frozen import EMPTY, Value, as_mapping, as_text_map
from nri_resmgr.values.declared import frozen


@frozen
class PluginInstance(Value):
    """A plugin that was consulted in the request; `index` is two digits."""

    name: str = ""
    index: str = ""


@frozen
class CompoundFieldOwners(Value):
    """Each key of a compound field with the plugin that set it."""

    owners: Mapping[str, str] = attrs.field(default=EMPTY, converter=as_text_map)


@frozen
class FieldOwners(Value):
    """Who set what of one container, by the numbers of `AdjustedField`."""

    simple: Mapping[int, str] = attrs.field(default=EMPTY, converter=as_mapping)
    compound: Mapping[int, CompoundFieldOwners] = attrs.field(
        default=EMPTY, converter=as_mapping
    )


@frozen
class OwningPlugins(Value):
    """Owners by container id; a plugin with "-" in front cleared the field."""

    owners: Mapping[str, FieldOwners] = attrs.field(default=EMPTY, converter=as_mapping)
