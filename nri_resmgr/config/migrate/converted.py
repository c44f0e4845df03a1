"""The result of a conversion, as the text of a document with comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import yaml

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.migrate.section import Note
from nri_resmgr.config.policy_config import API_VERSION, ReadDocument
from nri_resmgr.values import InputError
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable

NO_PINS: Final = "NonePolicy"
"""The kind that pins and refuses no container."""

_NOTES: Final = "Without a counterpart, or with another meaning here:"


@dataclass(eq=False)
class BadResult(InputError):
    """A converted document is not valid, as a value of the original is not."""

    mistake: BadSetting

    def __str__(self) -> str:
        return (
            "a value is invalid, correct it in this file; its place and the reason, "
            f"as converted: {self.mistake}"
        )


class Converted(msgspec.Struct, frozen=True):
    """A document of ours, and what it could not keep.

    Attributes:
        origin: What was converted, and what remains to be done; a line each.
    """

    origin: Sequence[str]
    kind: str
    spec: JsonObject
    notes: Sequence[Note]

    def text(self, read: ReadDocument) -> str:
        """Return the text of the document, each note as a comment.

        Args:
            read: Shows whether it is valid.

        Raises:
            BadResult: It is not valid.
        """
        document = {"apiVersion": API_VERSION, "kind": self.kind, "spec": self.spec}
        try:
            read(document)
        except BadSetting as error:
            raise BadResult(error) from None
        # Aliases, for values that stand in two places, are harder to edit.
        body = _Dumper.text_of(document)
        return comments(self.origin) + note_comments(self.notes) + body


class _Dumper(yaml.SafeDumper):
    """Writes values that occur twice twice."""

    def ignore_aliases(self, _: object) -> bool:
        return True

    @classmethod
    def text_of(cls, document: JsonObject) -> str:
        return yaml.dump(
            document, Dumper=cls, sort_keys=False, allow_unicode=True, width=88
        )


def note_comments(notes: Sequence[Note]) -> str:
    """Format notes as comments; nothing for none."""
    lines = [f"  {note.path}: {note.why}" for note in notes]
    return comments([_NOTES, *lines]) if lines else ""


def comments(lines: Sequence[str]) -> str:
    r"""Format lines as comments of YAML.

    >>> print(comments(["from a\nb"]), end="")
    # from a\nb
    """
    # Keys of the document are in them: a line break would end the comment.
    return "".join(f"# {printable(line)}\n" for line in lines)
