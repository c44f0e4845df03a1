"""States as text: a header and a line per record, of which few are written anew."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nri_resmgr.app.checkpoint_kinds import records_of
from nri_resmgr.policy.decision import Policy
from nri_resmgr.values.plain import to_plain

FORMAT: Final = 1
"""Goes up when those who know only this one would misread the text."""

_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


class Draft:
    """Turns the states of a policy into lines.

    A state shares what did not change with the one before it, so that a line is made
    only for what is another object than last time.
    """

    def __init__(self) -> None:
        self._kind = ""
        self._made: dict[str, dict[Any, tuple[object, str]]] = {}

    def lines_of(self, policy: Policy[Any], state: Any) -> list[str]:
        """Return a line per record, in the order of the state."""
        records = records_of(policy.kind)
        if policy.kind != self._kind:
            self._kind, self._made = policy.kind, {}
        lines: list[str] = []
        for name, rows in records.tables_of(state).items():
            made = self._rows(name, records.TABLES[name], rows)
            lines.extend([line for _, line in made.values()])
        return lines

    def _rows(
        self, name: str, kind: Any, rows: Mapping[Any, Any]
    ) -> dict[Any, tuple[object, str]]:
        before = self._made.get(name, {})
        made: dict[Any, tuple[object, str]] = {}
        texts: dict[int, str] = {}  # containers that share have the same pins
        for key, value in rows.items():
            known = before.get(key)
            if known is None or known[0] is not value:
                text = texts.get(id(value))
                if text is None:
                    text = texts[id(value)] = _encode(to_plain(kind, value))
                known = (value, f"[{_encode(name)},{_encode(key)},{text}]\n")
            made[key] = known
        self._made[name] = made
        return made


def checkpoint(lines: Sequence[str], kind: str, version: str, when: str) -> str:
    """Put lines behind a header that tells whether they are all there.

    Args:
        lines: As `Draft` gives them.
        kind: Of the policy.
        version: Ours, for people.
        when: A time, for people.
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
