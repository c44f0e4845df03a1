"""Notes of what readers ask of a document, from which the shape of documents follows.

A `NotingTable` is a `Table` whose methods write down each call: the key, the method and
its arguments. A kind's reader, called with such tables for the documents of
`nri_resmgr.schema.samples`, so describes itself, and no second list of options exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.config.table import Table
from nri_resmgr.schema.shape import Default, Form, Shape

EXAMPLE: Final = "example"
"""The beginning of names in samples: choices among them are names, not words."""

# Names that are defined in any document.
_BUILT_IN: Final = ("reserved", "default")

_FORMS: Final = tuple(Form)


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a reader for a key."""

    form: Form
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    pattern: str = ""
    types: tuple[type, ...] = ()


class Notes:
    """Notes of one place of a document, and of those below it.

    Attributes:
        keys: By key, of a mapping.
        items: Of a list, or of a mapping with any keys.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Notes] = {}
        self.items: Notes | None = None
        self._uses: list[Use] = []
        self._any_case = False
        self._default: Default = None
        # Paths of this place in the samples, and those of them where it is required.
        self._seen: set[str] = set()
        self._required: set[str] = set()

    def key(self, name: str) -> Notes:
        """Return the notes of a key of a mapping."""
        return self.keys.setdefault(name, Notes())

    def item(self) -> Notes:
        """Return the notes of all items."""
        if self.items is None:
            self.items = Notes()
        return self.items

    def visit(self, path: str) -> None:
        """Note a mapping of the sample."""
        self._seen.add(path)

    def know(self, keys: Sequence[str], *, any_case: bool = False) -> None:
        """Note the keys that such mappings may have."""
        self._any_case |= any_case
        for name in keys:
            self.key(name)

    def use(self, use: Use) -> None:
        """Note a call for this place."""
        self._uses.append(use)

    def absent(self, default: object) -> None:
        """Note what an absent value stands for."""
        if isinstance(default, bool | int | str):
            self._default = default if default != "" else None
        elif isinstance(default, Sequence):
            self._default = tuple(str(one) for one in default)

    def require(self, path: str) -> None:
        """Note that the value has to be there, in the mapping at *path*."""
        self._required.add(path)

    def is_required_in(self, mapping: Notes) -> bool:
        """Return whether each such mapping of the samples has to have this value."""
        return self._required == mapping._seen

    def shape(self) -> Shape:
        """Return what follows from all notes."""
        form = max((use.form for use in self._uses), key=_FORMS.index, default=None)
        if form is None:
            form = Form.MAPPING if self.keys else Form.ANYTHING
        uses = [use for use in self._uses if use.form is form]
        choices = dict.fromkeys(word for use in uses for word in use.choices)
        return Shape(
            form=form,
            keys={name: one.shape() for name, one in self.keys.items()},
            required=tuple(
                name for name, one in self.keys.items() if one.is_required_in(self)
            ),
            any_case=self._any_case or any(use.any_case for use in uses),
            items=self.items.shape() if self.items else None,
            low=min((use.low for use in uses if use.low is not None), default=None),
            high=max((use.high for use in uses if use.high is not None), default=None),
            choices=tuple(choices),
            by_name=form is Form.CHOICE and all(map(_is_name, choices)),
            pattern=next((use.pattern for use in uses if use.pattern), ""),
            types=tuple(dict.fromkeys(one for use in uses for one in use.types)),
            default=self._default,
        )


class NotingTable(Table, frozen=True):
    """A table that notes the calls of its methods."""

    notes: Notes = msgspec.field(default_factory=Notes)
    is_open: bool = False

    def table(self, key: str, *keys: str, any_case: bool = False) -> NotingTable:
        """Note a mapping."""
        found = super().table(key, *keys, any_case=any_case)
        self._note(key, Use(form=Form.MAPPING))
        self._at(key).know(keys, any_case=any_case)
        return _below(found, self._at(key))

    def open_table(self, key: str) -> NotingTable:
        """Note a mapping with any keys."""
        found = super().open_table(key)
        self._note(key, Use(form=Form.OPEN_MAPPING))
        notes = self._at(key)
        notes.item()
        return NotingTable(found.path, found.rows, notes, is_open=True)

    def tables(
        self, key: str, *keys: str, any_case: bool = False
    ) -> tuple[NotingTable, ...]:
        """Note a list of mappings."""
        found = super().tables(key, *keys, any_case=any_case)
        self._note(key, Use(form=Form.LIST), ())
        item = self._at(key).item()
        item.use(Use(form=Form.MAPPING))
        item.know(keys, any_case=any_case)
        return tuple(_below(row, item) for row in found)

    def open_rows(self, key: str) -> tuple[NotingTable, ...]:
        """Return the mappings of a list, whose keys are noted already."""
        item = self._at(key).item()
        return tuple(
            NotingTable(row.path, row.rows, item) for row in super().open_rows(key)
        )

    def text(self, key: str, default: str = "") -> str:
        """Note text."""
        self._note(key, Use(form=Form.TEXT), default)
        return super().text(key, default)

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Note ``true`` or ``false``."""
        self._note(key, Use(form=Form.FLAG), default)
        return super().flag(key, default=default)

    def texts(
        self, key: str, default: Sequence[str] = (), *, numbers: bool = False
    ) -> tuple[str, ...]:
        """Note a list of text."""
        self._note(key, Use(form=Form.LIST), tuple(default))
        item = Use(form=Form.RAW, types=(str, int)) if numbers else Use(form=Form.TEXT)
        self._at(key).item().use(item)
        return super().texts(key, default, numbers=numbers)

    def number(self, key: str, low: int, high: int, default: int) -> int:
        """Note a whole number."""
        self._note(key, Use(form=Form.NUMBER, low=low, high=high), default)
        return super().number(key, low, high, default)

    def fraction(self, key: str) -> float:
        """Note a number of 0 to 1."""
        self._note(key, Use(form=Form.FRACTION, low=0, high=1), 0)
        return super().fraction(key)

    def name(self, key: str) -> str:
        """Note text that is required."""
        self._at(key).require(self.path)
        return super().name(key)

    def require(self, key: str, expected: str) -> None:
        """Note that a key is required."""
        self._at(key).require(self.path)
        super().require(key, expected)

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """Note some words."""
        words = tuple(str(one) for one in choices)
        self._note(key, Use(form=Form.CHOICE, choices=words), str(default))
        return super().choice(key, choices, default)

    def choices(
        self, key: str, choices: Sequence[str], *, any_case: bool = False
    ) -> tuple[str, ...]:
        """Note a list of some words."""
        found = super().choices(key, choices, any_case=any_case)
        words = tuple(str(one) for one in choices)
        use = Use(form=Form.CHOICE, choices=words, any_case=any_case)
        self._at(key).item().use(use)
        return found

    def amount(self, key: str) -> str | None:
        """Note text or a number."""
        self._note(key, Use(form=Form.AMOUNT))
        return super().amount(key)

    def form(
        self, key: str, pattern: re.Pattern[str], expected: str, *, numbers: bool = True
    ) -> str:
        """Note text with a pattern."""
        form = Form.AMOUNT if numbers else Form.TEXT
        self._note(key, Use(form=form, pattern=pattern.pattern))
        return super().form(key, pattern, expected, numbers=numbers)

    def raw(self, key: str, *types: type) -> object:
        """Note types."""
        self._note(key, Use(form=Form.RAW, types=types))
        return super().raw(key, *types)

    def _at(self, key: str) -> Notes:
        return self.notes.item() if self.is_open else self.notes.key(key)

    def _note(self, key: str, use: Use, default: object = None) -> None:
        notes = self._at(key)
        notes.use(use)
        if key not in self.rows:
            notes.absent(default)


def note(rows: Mapping[str, object], keys: Sequence[str], notes: Notes) -> NotingTable:
    """Return the table of a whole document, which notes its calls in *notes*."""
    notes.know(keys)
    return _below(Table.read(rows, *keys), notes)


def _below(found: Table, notes: Notes) -> NotingTable:
    notes.visit(found.path)
    return NotingTable(found.path, found.rows, notes)


def _is_name(word: str) -> bool:
    return word.startswith(EXAMPLE) or word in _BUILT_IN
