"""Recordings out of their text, as far as they are whole."""

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
        header: How it began.
        entries: Those that are whole, up to the first that is not.
        cut: What is wrong with the first that is not; empty where all are.
    """

    header: Header
    entries: tuple[Entry, ...]
    cut: str = ""


def load_recording(lines: Iterator[str], path: str) -> Recording:
    """Read a recording; one that was cut off is good for what is there.

    Raises:
        BadRecording: It does not even begin as one.
    """
    header = read_header(next(lines, ""), path)
    entries: list[Entry] = []
    try:
        for entry in read_entries(lines, path):
            entries.append(entry)  # noqa: PERF402 - those before a bad one count
    except BadRecording as bad:
        return Recording(header, tuple(entries), str(bad))
    return Recording(header, tuple(entries))
