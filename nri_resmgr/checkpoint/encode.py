"""Writing checkpoints: a header and a line per record, cached by record."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from nri_resmgr.policies import find_kind
from nri_resmgr.policy.decision import Policy
from nri_resmgr.policy.records import Key, Rows
from nri_resmgr.values.documents import to_plain
from nri_resmgr.values.identity_cache import IdentityCache

StateT = TypeVar("StateT")

CHECKPOINT_NAME: Final = "policy.checkpoint"
"""The checkpoint's file in the state directory."""

FORMAT: Final = 1
"""Incremented when readers of the present format would misread the text."""

_AT_ONCE: Final = 16  # records in a step; the longest take 60 µs each

_Lines: TypeAlias = dict[Key, tuple[object, str]]
"""A value and its line, by key."""

_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class Draft:
    """Turns the states of a policy into lines.

    A state shares unchanged records with the one before it: a line is made only for
    records that are other objects than last time.

    Attributes:
        lines: A line per record, in the order of the state; of the last state whose
            `steps` were completed.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._kind = ""
        self._made: dict[str, _Lines] = {}

    def lines_of(self, policy: Policy[StateT], state: StateT) -> list[str]:
        """Make the lines of a state, and return them."""
        for _ in self.steps(policy, state):
            pass
        return self.lines

    def steps(self, policy: Policy[StateT], state: StateT) -> Iterator[None]:
        """Make the lines of a state, in steps of about a millisecond."""
        records = find_kind(policy.kind).records()
        if policy.kind != self._kind:
            self._kind, self._made = policy.kind, {}
        lines: list[str] = []
        for name, rows in records.tables_of(state).items():
            made: _Lines = {}
            yield from self._table(name, rows, made)
            self._made[name] = made
            lines.extend([line for _, line in made.values()])
        self.lines = lines

    def _table(self, name: str, rows: Rows, made: _Lines) -> Iterator[None]:
        before = self._made.get(name, {})
        # Containers of a shared pool have the same pins.
        text_of = IdentityCache(_text, most=_AT_ONCE)
        written = 0
        for key, value in rows.items():
            known = before.get(key)
            if known is None or known[0] is not value:
                text = text_of(value)
                written += 1
                if not written % _AT_ONCE:
                    yield
                known = (value, f"[{_encode(name)},{_encode(key)},{text}]\n")
            made[key] = known


def _text(value: object) -> str:
    return _encode(to_plain(value))


def checkpoint(lines: Sequence[str], kind: str, version: str, when: str) -> str:
    """Return the text of a checkpoint: a header with a checksum, and the lines.

    Args:
        lines: The lines of a `Draft`.
        kind: The kind of the policy.
        version: The version of nri-resmgr, for messages.
        when: The time, for messages.
    """
    body = "".join(lines)
    header = {
        "checkpoint": "nri-resmgr",
        "format": FORMAT,
        "version": version,
        "policy": kind,
        "written": when,
        "crc32": zlib.crc32(body.encode("ascii")),
    }
    return f"{_encode(header)}\n{body}"
