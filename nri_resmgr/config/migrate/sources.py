"""Finds out what the documents of a text are, and converts each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import yaml

from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.migrate.annotations import rename_annotations
from nri_resmgr.config.migrate.cmk_pools import convert_cmk, is_cmk
from nri_resmgr.config.migrate.converted import Converted, comments, note_comments
from nri_resmgr.config.migrate.cri_rm import convert_cri_rm, convert_data, has_modules
from nri_resmgr.config.migrate.kubelet import KIND as KUBELET
from nri_resmgr.config.migrate.kubelet import convert_kubelet
from nri_resmgr.config.migrate.kubelet_flags import (
    convert_kubelet_flags,
    has_kubelet_flags,
)
from nri_resmgr.config.migrate.plugin_files import (
    convert_plugin_file,
    is_plugin_file,
)
from nri_resmgr.config.policy_config import API_VERSION, ReadDocument
from nri_resmgr.config.syntax import parse_yaml

_MARKER: Final = "---"
_LIST: Final = "List"
_ADJUSTED: Final = "Adjustment"
_ADJUSTMENT: Final = (
    "An Adjustment of CRI Resource Manager needs no conversion: leave it in the",
    "cluster, where nri-resmgr agent reads it.",
)
_EXPECTED: Final = (
    "expected a document of nri-plugins, of CRI Resource Manager or of the kubelet "
    "(kind: KubeletConfiguration, or its flags), pools of CMK, a file of nri-plugins' "
    "memory-qos, memory-policy or resctrl-mon, or a manifest of Kubernetes"
)


class _Piece(msgspec.Struct, frozen=True):
    """A document of a text that may have several.

    Attributes:
        text: With its marker (``---``) and the comments before it.
        line: How many lines are before it.
        is_marked: Whether it begins with a marker.
    """

    text: str
    line: int
    is_marked: bool


def convert_text(text: str, read: ReadDocument) -> str:
    """Convert all documents of a text; those of nri-plugins and ours stay as they are.

    Args:
        text: One YAML document or several, or the kubelet's flags.
        read: Reads a document of ours: what a conversion made is valid.

    Raises:
        BadSyntax: It is not YAML, or is empty.
        BadSetting: A document is of no known origin, or has a mistake.
        BadResult: A document has a mistake that only its conversion shows.
    """
    if has_kubelet_flags(text):
        return convert_kubelet_flags(text).text(read)
    found = ""
    for piece in _pieces(text):
        new, is_marked = _convert(piece, read)
        found += new if is_marked or not found else f"{_MARKER}\n{new}"
        found += "" if found.endswith("\n") else "\n"
    if not found:
        raise BadSyntax(f"there is no document in it, {_EXPECTED}")
    return found


def _pieces(text: str) -> Iterator[_Piece]:
    """Split a text into documents; nothing between them is lost."""
    try:
        starts = [
            (event.start_mark, bool(event.explicit))
            for event in yaml.parse(text, Loader=yaml.SafeLoader)
            if isinstance(event, yaml.DocumentStartEvent) and event.start_mark
        ]
    except (yaml.YAMLError, RecursionError):
        # Parsed as one document, it gives a sentence with the line.
        yield _Piece(text, 0, is_marked=False)
        return
    places = [0, *(mark.index for mark, _ in starts[1:]), len(text)]
    for place, (mark, is_marked) in enumerate(starts):
        part = text[places[place] : places[place + 1]]
        yield _Piece(part, mark.line if place else 0, is_marked=is_marked)


def _convert(piece: _Piece, read: ReadDocument) -> tuple[str, bool]:
    """Return the new text of a document, and whether it begins with a marker."""
    # Lines before the text, so that errors have the line of the file.
    document = parse_yaml("\n" * piece.line + piece.text)
    if document is None:
        return "", True
    if not isinstance(document, Mapping):
        raise BadSetting("$", _EXPECTED)
    version, kind = (str(document.get(key) or "") for key in ("apiVersion", "kind"))
    if version == API_VERSION:
        _check_kind(kind, read)
        return piece.text, piece.is_marked
    if kind == _ADJUSTED and version.startswith("criresmgr.intel.com/"):
        return comments(_ADJUSTMENT), True
    if kind == _LIST and (items := _items(document, read)):
        return items, False
    if found := _configuration(document, version, kind):
        return found.text(read), False
    if not kind or not version:
        raise BadSetting("$", _EXPECTED)
    return _manifest(piece)


def _check_kind(kind: str, read: ReadDocument) -> None:
    """Check that there is a kind of documents of ours."""
    try:
        read({"apiVersion": API_VERSION, "kind": kind})
    except BadSetting as error:
        # Others are of the specification, which is not in it.
        if error.path == "$.kind":
            raise


def _items(document: Mapping[str, object], read: ReadDocument) -> str:
    """Convert a list with configurations, as kubectl writes it, to single documents.

    Empty for a list of manifests only, which stays one document.
    """
    items = document.get("items")
    if not isinstance(items, list) or not any(map(_is_configuration, items)):
        return ""
    found: list[str] = []
    for place, item in enumerate(items):
        text = yaml.safe_dump(item, sort_keys=False, allow_unicode=True, width=88)
        piece = _Piece(text, 0, is_marked=False)
        try:
            # kubectl writes no list into another one.
            is_list = isinstance(item, Mapping) and item.get("kind") == _LIST
            new, _ = _manifest(piece) if is_list else _convert(piece, read)
        except BadSetting as error:
            path = f"$.items[{place}]{error.path.removeprefix('$')}"
            raise BadSetting(path, error.why) from None
        found.append(new)
    return f"{_MARKER}\n".join(found)


def _is_configuration(item: object) -> bool:
    if not isinstance(item, Mapping):
        return False
    kind, data = item.get("kind"), item.get("data")
    if kind in (KUBELET, _ADJUSTED) or item.get("apiVersion") == API_VERSION:
        return True
    return kind == "ConfigMap" and isinstance(data, Mapping) and has_modules(data)


def _configuration(
    document: Mapping[str, object], version: str, kind: str
) -> Converted | None:
    """Convert a configuration; None for a manifest."""
    if kind == KUBELET:
        return convert_kubelet(document)
    if not kind and not version and has_modules(document):
        return convert_cri_rm(document)
    if not kind and not version and is_cmk(document):
        return convert_cmk(document)
    if not kind and not version and is_plugin_file(document):
        return convert_plugin_file(document)
    data = document.get("data")
    if kind != "ConfigMap" or not isinstance(data, Mapping) or not has_modules(data):
        return None
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return convert_data(data, str(name or ""))


def _manifest(piece: _Piece) -> tuple[str, bool]:
    renamed = rename_annotations(piece.text, piece.line)
    notes = note_comments(renamed.notes)
    first, _, rest = renamed.text.partition("\n")
    if not notes:
        return renamed.text, piece.is_marked
    if first.rstrip() == _MARKER:
        return f"{first}\n{notes}{rest}", True
    if not piece.is_marked:
        return notes + renamed.text, False
    # Something stands beside or before the marker.
    text = renamed.text if renamed.text.endswith("\n") else f"{renamed.text}\n"
    return text + notes, True
