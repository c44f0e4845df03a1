"""The base of values that are written to files."""

from __future__ import annotations

import msgspec


class StoredValue(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A value of checkpoints, recordings or dumps of machines.

    Fields with their default are left out of documents, and unknown ones rejected.
    Names and defaults of fields are therefore part of the format.
    """
