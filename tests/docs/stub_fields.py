"""The table of fields that a plugin can set."""

from __future__ import annotations

from nri_proto import NriLevel
from nri_resmgr.stub.fields import FIELDS, OLDEST, Field
from tests.docs.markdown import code, merged


def stub_fields(body: str) -> str:
    """Write how each field is set and removed; what runtimes do with it is by hand."""
    return merged(
        body,
        ("field", "setter", "removal", "level", "at creation", "in an update"),
        {
            field.path: (
                code(field.setter),
                code(field.remover),
                _level(field),
                None,
                None,
            )
            for field in FIELDS
        },
    )


def _level(field: Field) -> str:
    level = _short(field.level)
    if field.removal_level != OLDEST:
        level += f", removal {_short(field.removal_level)}"
    return level


def _short(level: NriLevel) -> str:
    return str(level).removesuffix(".0")
