"""Loads recordings; of a truncated one, the complete part."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from nri_resmgr.recordings.entries import (
    BadRecording,
    Entry,
    Header,
)
from nri_resmgr.recordings.text import read_entries, read_header


class Recording(msgspec.Struct, frozen=True):
    """A recording.

    Attributes:
        header: The header.
        entries: The valid entries before the first invalid one.
        cut: The mistake in the first invalid entry; empty if all are valid.
    """

    header: Header
    entries: tuple[Entry, ...]
    cut: str = ""


def load_recording(lines: Iterator[str], path: str) -> Recording:
    """Load a recording; of a truncated one, the complete entries.

    Raises:
        BadRecording: The header is not that of a recording.
    """
    header = read_header(next(lines, ""), path)
    entries: list[Entry] = []
    try:
        for entry in read_entries(lines, path):
            entries.append(entry)  # noqa: PERF402 - those before a bad one count
    except BadRecording as bad:
        return Recording(header, tuple(entries), str(bad))
    return Recording(header, tuple(entries))
