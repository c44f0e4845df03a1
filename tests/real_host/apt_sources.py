"""The mirror of Debian that this machine's apt already uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

_ROLLING = frozenset({"stable", "oldstable", "testing", "unstable", "sid"})


class NoDebianMirror(Exception):
    """No Debian archive is among the machine's apt sources."""


@attrs.frozen
class Source:
    """One (URI, suite) pair of the machine's apt sources, with its components."""

    uri: str
    suite: str
    components: tuple[str, ...]


def debian_mirror(etc: Path = Path("/etc")) -> str:
    """URL of the Debian archive that this machine's apt uses.

    A Debian archive differs from third-party archives by its suite (the machine's own
    codename, or a rolling name) together with its component ``main``.

    Raises:
        NoDebianMirror: None is configured, as on Ubuntu.
    """
    release = _os_release(etc / "os-release")
    if release.get("ID") == "debian":
        suites = _ROLLING | {release.get("VERSION_CODENAME", "sid")}
        for source in apt_sources(etc / "apt"):
            if source.suite in suites and "main" in source.components:
                return _resolved(source.uri)
    raise NoDebianMirror("apt on this machine has no Debian mirror")


def apt_sources(folder: Path) -> Iterator[Source]:
    """Read ``sources.list`` and ``sources.list.d`` in both formats.

    Source:
        sources.list(5), ONE-LINE-STYLE FORMAT and DEB822-STYLE FORMAT.
    """
    for path in (folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))):
        if path.suffix == ".list":
            for line in _text(path).splitlines():
                yield from _one_line(line)
        elif path.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", _text(path)):
                yield from _deb822(stanza)


def _one_line(line: str) -> Iterator[Source]:
    words = line.partition("#")[0].split()
    if words[:1] != ["deb"]:
        return
    if words[1:] and words[1].startswith("["):
        closing = next(i for i, word in enumerate(words) if word.endswith("]"))
        words[1 : closing + 1] = []
    match words:
        case ["deb", uri, suite, *components]:
            yield Source(uri, suite, tuple(components))


def _deb822(stanza: str) -> Iterator[Source]:
    fields: dict[str, list[str]] = {}
    values: list[str] = []
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1].isspace():
            values += line.split()
        else:
            key, _, text = line.partition(":")
            values = fields.setdefault(key.strip().lower(), [])
            values += text.split()
    if "deb" not in fields.get("types", []) or fields.get("enabled") == ["no"]:
        return
    for uri in fields.get("uris", []):
        for suite in fields.get("suites", []):
            yield Source(uri, suite, tuple(fields.get("components", [])))


def _resolved(uri: str) -> str:
    """Follow ``mirror+file:``, which cloud images use and debootstrap does not."""
    scheme, _, path = uri.partition("+file:")
    if scheme != "mirror" or not path:
        return uri
    return Path(path).read_text().split()[0]


def _os_release(path: Path) -> dict[str, str]:
    lines = (line.partition("=") for line in _text(path).splitlines())
    return {key: value.strip('"') for key, _, value in lines}


def _text(path: Path) -> str:
    """Content of a file that may be missing, or unreadable because it has passwords."""
    try:
        return path.read_text()
    except (FileNotFoundError, PermissionError):
        return ""
