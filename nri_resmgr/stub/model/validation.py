"""What a validating plugin gets beside the merged adjustment."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.stub.model.contents import EMPTY


class PluginInstance(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A plugin that was consulted in the request; `index` is two digits."""

    name: str = ""
    index: str = ""


class CompoundFieldOwners(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Each key of a compound field with the plugin that set it."""

    owners: Mapping[str, str] = EMPTY


class FieldOwners(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Who set what of one container, by the numbers of `AdjustedField`."""

    simple: Mapping[int, str] = EMPTY
    compound: Mapping[int, CompoundFieldOwners] = EMPTY


class OwningPlugins(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Owners by container id; a plugin with "-" in front cleared the field."""

    owners: Mapping[str, FieldOwners] = EMPTY
