"""The ``__init__`` of a frozen class, which stores as that of an open one does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

# `object.__setattr__` would look the field up and check its caller each time.
_SET_CLASS: Final = vars(object)["__class__"].__set__
_FACTORY: Final[Any] = attrs.Factory  # a function, say the types of attrs
_FIELD: Final = type(attrs.field())
_AFTERWARDS: Final = "__attrs_post_init__"


def methods_of(kind: Any, made: Any, *, kw_only: bool) -> dict[str, object]:
    """Write an ``__init__`` that does what that of attrs does, in less time.

    It lets the new value be of a twin that is not frozen, stores with the fastest
    instruction that Python has, and freezes it. attrs' own calls
    ``object.__setattr__`` for each field, which takes six times as long, and is
    compiled with a whole class around it.

    Args:
        kind: The class as it was declared.
        made: The same, with slots and frozen.
        kw_only: Whether all fields are named only.

    Returns:
        It and ``__match_args__``; nothing for what only attrs knows how to treat:
        fields that are inherited, validated, private or named otherwise.
    """
    inherits = any(_has_fields(base) for base in made.__mro__[1:])
    fields = {
        name: _field(kind, name) for name in made.__slots__ if name != "__weakref__"
    }
    if inherits or not all(_is_plain(*row) for row in fields.items()):
        return {}
    names = {"_set_class": _SET_CLASS, "_Open": _open_twin(made), "_Frozen": made}
    script = _script(fields, names, kw_only=kw_only, then=hasattr(made, _AFTERWARDS))
    exec(script, names)  # noqa: S102 - names of fields and words of ours, as attrs does
    by_place = (name for name, field in fields.items() if field.init and not kw_only)
    return {"__init__": names["__init__"], "__match_args__": tuple(by_place)}


def _script(
    fields: Mapping[str, Any], names: dict[str, Any], *, kw_only: bool, then: bool
) -> str:
    asked = [_parameter(*row, names) for row in fields.items() if row[1].init]
    between = ["*"] if kw_only and asked else []
    lines = [f"def __init__({', '.join(['self', *between, *asked])}):"]
    lines.append("_set_class(self, _Open)")
    lines += [line for row in fields.items() for line in _stores(*row, names)]
    lines.append("self.__class__ = _Frozen")
    if then:
        lines.append(f"self.{_AFTERWARDS}()")
    return "\n ".join(lines)


def _has_fields(base: Any) -> bool:
    # By their slots, which are there before anybody has asked for the fields.
    slots = vars(base).get("__slots__", ())
    return "__attrs_attrs__" in vars(base) and not {"__weakref__"}.issuperset(slots)


def _field(kind: Any, name: str) -> Any:
    found = vars(kind).get(name, attrs.NOTHING)
    return found if isinstance(found, _FIELD) else _Plain(found)


class _Plain:
    """A field of which only a default is said; attrs takes long to make one of its."""

    __slots__ = ("_default",)

    init = True
    kw_only = False
    alias = converter = _validator = None

    def __init__(self, default: object) -> None:
        self._default = default


def _is_plain(name: str, field: Any) -> bool:
    checked = field._validator  # noqa: SLF001 - attrs has no other name for it
    return not (checked or field.kw_only or field.alias or name.startswith("_"))


def _open_twin(made: Any) -> Any:
    body = {
        "__slots__": (),
        "__module__": made.__module__,
        "__qualname__": made.__qualname__,
        # Both: Python has one slot for them, and looks for shortcuts by it.
        "__setattr__": object.__setattr__,
        "__delattr__": object.__delattr__,
    }
    return type(made)(made.__name__, (made,), body)


def _parameter(name: str, field: Any, names: dict[str, Any]) -> str:
    default = field._default  # noqa: SLF001 - attrs has no other name for it
    if default is attrs.NOTHING:
        return name
    is_made = isinstance(default, _FACTORY)
    names[f"_default_{name}"] = attrs.NOTHING if is_made else default
    return f"{name}=_default_{name}"


def _stores(name: str, field: Any, names: dict[str, Any]) -> Iterator[str]:
    default, value = field._default, name  # noqa: SLF001 - as above
    if isinstance(default, _FACTORY):
        names[f"_make_{name}"] = default.factory
        made = f"_make_{name}({'self' if default.takes_self else ''})"
        value = (
            f"{made} if {name} is _default_{name} else {name}" if field.init else made
        )
    elif not field.init:
        if default is attrs.NOTHING:
            return
        names[f"_default_{name}"] = default
        value = f"_default_{name}"
    if field.converter is not None:
        names[f"_convert_{name}"] = field.converter
        value = f"_convert_{name}({value})"
    yield f"self.{name} = {value}"
