"""The configuration of a plugin as a typed class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.sdk.conversion import InvalidField, convert

__all__ = ["BadSetting", "BadSyntax", "InvalidField", "Settings"]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base class of a plugin's configuration; its fields are the keys of the document.

    A field ``log_file`` is the key ``logFile``. Keys that the operator may leave out
    have a default; one without a value counts as left out. Unknown keys and values of
    another type are errors with their path. Types of fields may be any that msgspec
    converts: numbers with bounds (``Annotated[int, Meta(ge=1)]``), ``Literal``, enums,
    tuples, mappings, and further subclasses of `Settings`. Checks of your own belong
    into ``__post_init__``: raise `InvalidField`.

    >>> class Greeting(Settings, frozen=True):
    ...     greeting: str = "hello"
    ...     name_spaces: tuple[str, ...] = ("*",)
    >>> Greeting.read("nameSpaces: [shop]")
    Greeting(greeting='hello', name_spaces=('shop',))
    >>> Greeting.read("greting: hi")
    Traceback (most recent call last):
    ...
    nri_resmgr.config.errors.BadSetting: $.greting: unknown key, did you mean greeting?
    """

    @classmethod
    def read(cls, text: str, base: Self | None = None) -> Self:
        """Read a YAML document, such as the text that the runtime hands over.

        Args:
            text: The document; one without content has all defaults.
            base: Has the values of keys that are left out, instead of the defaults.

        Raises:
            BadSyntax: The text is not YAML, has a key twice, or is too large.
            BadSetting: A key or value is not valid.
        """
        return cls.of(parse_yaml(text), base)

    @classmethod
    def of(cls, document: object, base: Self | None = None) -> Self:
        """Read a document that is parsed already; see `read`.

        Raises:
            BadSetting: A key or value is not valid.
        """
        if document is None:
            document = {}
        if base is not None and isinstance(document, Mapping):
            document = {**msgspec.to_builtins(base), **_present(document)}
        return convert(document, cls)


def _present(document: Mapping[object, object]) -> dict[object, object]:
    return {key: value for key, value in document.items() if value is not None}
