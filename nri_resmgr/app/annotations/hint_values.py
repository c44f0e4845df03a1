"""Readers of the annotations that choose among topology hints."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.annotations.documents import (
    read_document,
    read_mapping,
    read_text,
    read_texts,
)
from nri_resmgr.app.annotations.errors import NotAccepted
from nri_resmgr.app.annotations.values import read_flag
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.topology.hint_options import (
    ALL_SOURCES,
    HintSource,
    PathMatch,
    PathRule,
)
from nri_resmgr.topology.hints import Hint
from nri_resmgr.values import BadListFormat, CpuSet, NodeSet
from nri_resmgr.values.globs import check_glob

_NONE: Final = frozenset[HintSource]()
_SOURCES: Final = {source.value: frozenset((source,)) for source in HintSource} | {
    "all": ALL_SOURCES,
    "none": _NONE,
}


def read_sources(text: str) -> frozenset[HintSource]:
    """Read a truth value, or sources divided by commas."""
    words = [word.strip() for word in text.split(",")]
    if all(word in _SOURCES for word in words):
        return _NONE.union(*(_SOURCES[word] for word in words))
    try:
        return ALL_SOURCES if read_flag(text) else _NONE
    except NotAccepted:
        accepted = f"true, false, or a list of {', '.join(_SOURCES)}"
        raise NotAccepted(text, accepted) from None


def read_path_rule(text: str) -> PathRule:
    """Read ``{type: prefix|glob, paths: [...]}``."""
    table = Table.read(read_document(text), "type", "paths")
    kinds = tuple(PathMatch)
    for key, expected in (("type", " or ".join(kinds)), ("paths", "a list of paths")):
        if not table.rows.get(key):
            raise BadSetting(table.at(key), f"missing, expected {expected}")
    match = PathMatch(table.choice("type", kinds, ""))
    paths = read_texts(table.rows["paths"], table.at("paths"))
    if match is PathMatch.GLOB:
        for name in "/".join(paths).split("/"):
            check_glob(name)
    return PathRule(match, paths)


def read_hints(text: str) -> tuple[Hint, ...]:
    """Read hints that a test hands in, as nri-plugins' tests write them."""
    top = read_mapping(read_document(text), "$")
    return tuple(_hint(name, found) for name, found in top.items())


def _hint(name: str, found: object) -> Hint:
    table = Table.read(found, "Provider", "CPUs", "NUMAs", "Sockets", path=f"$.{name}")

    def text(key: str) -> str:
        return read_text(table.rows.get(key, ""), table.at(key))

    try:
        return Hint(
            text("Provider") or name,
            cpus=CpuSet.parse(text("CPUs")),
            nodes=NodeSet.parse(text("NUMAs")),
            packages=frozenset(NodeSet.parse(text("Sockets"))),
        )
    except BadListFormat as error:
        raise BadSetting(table.path, str(error)) from None
