"""Reads YAML in annotations, with size limits, in the shapes that Go's reader takes."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.annotations.errors import NotAccepted
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.syntax import parse_yaml

# All annotations of a pod together may have 256 KiB. Compiling the rules of the worst
# text of this size takes half a second.
MAX_TEXT: Final = 16 << 10


def read_document(text: str) -> object:
    """Parse YAML.

    Raises:
        InputError: It is not YAML, has references, or is too long for an annotation.
    """
    if len(text) > MAX_TEXT:
        raise NotAccepted(text, f"at most {MAX_TEXT} characters long")
    return parse_yaml(text, references=False)


def read_mapping(found: object, path: str) -> dict[str, object]:
    """Return *found* as a mapping with text keys; null is an empty one.

    Raises:
        BadSetting: It is not a mapping, or a key is not text.
    """
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadSetting(path, "expected a mapping")
    return {read_text(key, path): value for key, value in found.items()}


def read_items(found: object, path: str) -> list[object]:
    """Return *found* as a list; null is an empty one.

    Raises:
        BadSetting: It is not a list.
    """
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadSetting(path, "expected a list")
    return found


def read_texts(found: object, path: str) -> tuple[str, ...]:
    """Return *found* as a list of text.

    Raises:
        BadSetting: It is not a list, or contains something else.
    """
    items = read_items(found, path)
    return tuple(read_text(one, f"{path}[{n}]") for n, one in enumerate(items))


def read_text(found: object, path: str) -> str:
    """Return *found* as text; integers and booleans as they are written.

    Raises:
        BadSetting: It is none of these.
    """
    match found:
        case str():
            return found
        case bool():
            return str(found).lower()
        case int():
            return str(found)
        case _:
            raise BadSetting(path, "expected text; write it in quotes")
