"""Enables NRI in the configuration of CRI-O."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.runtimes.errors import ForeignFile, Overridden
from nri_resmgr.runtimes.switch import (
    MARK,
    ConfigFile,
    FileChange,
    Keys,
    ValidatorKeys,
)
from nri_resmgr.runtimes.toml_edit import Value, is_value, parse, with_values

MAIN: Final = "/etc/crio/crio.conf"
FOLDER: Final = "/etc/crio/crio.conf.d"
KEYS: Final = Keys(
    ("crio", "nri"),
    ("enable_nri", True),
    "nri_plugin_registration_timeout",
    "nri_plugin_request_timeout",
    "nri_disable_connections",
    ValidatorKeys(
        "default_validator.nri_enable_default_validator",
        "default_validator.nri_validator_required_plugins",
        "default_validator.nri_validator_tolerate_missing_plugins_annotation",
    ),
)

_DROP_IN: Final = "90-nri-resmgr.conf"


class Crio(msgspec.Struct, frozen=True):
    """The files that CRI-O reads.

    Attributes:
        files: In the order in which they are read: the last value of a key wins.
    """

    files: tuple[ConfigFile, ...] = ()
    folder: str = FOLDER

    @property
    def drop_in(self) -> str:
        """The path of our drop-in."""
        return posixpath.join(self.folder, _DROP_IN)


def switched_on(found: Crio, wanted: Mapping[str, Value]) -> FileChange:
    """Return the change that sets the keys: a drop-in, unless they are set already.

    Raises:
        NotToml: A file is not TOML, so CRI-O would not start.
        Overridden: A file that is read after ours has other values.
        ForeignFile: A file has our name, but other contents.
    """
    ours = _ours(found)
    documents = {file.path: parse(file.path, file.text) for file in found.files}
    present = {path: KEYS.values_in(document) for path, document in documents.items()}
    wanted = KEYS.merged(wanted, documents.values())
    notes = KEYS.notes(documents.values(), wanted)
    others = [path for path in present if path != found.drop_in]
    for path in others:
        wrong = (
            k for k, v in present[path].items() if not is_value(wanted.get(k, v), v)
        )
        if _is_after(path, found) and any(wrong):
            raise Overridden(path, ".".join(KEYS.table))
    before = None if ours is None else ours.text
    effective = {key: v for path in others for key, v in present[path].items()}
    if ours is None and all(is_value(effective.get(k), v) for k, v in wanted.items()):
        return FileChange(found.drop_in, None, None, notes)
    values = KEYS.ordered({**present.get(found.drop_in, {}), **wanted})
    return FileChange(found.drop_in, before, _text(found.drop_in, values), notes)


def switched_back(found: Crio) -> FileChange:
    """Return the change that reverts `switched_on`.

    Raises:
        ForeignFile: The drop-in was changed since.
    """
    ours = _ours(found)
    return FileChange(found.drop_in, None if ours is None else ours.text, None)


def _ours(found: Crio) -> ConfigFile | None:
    for file in found.files:
        if file.path == found.drop_in:
            present = KEYS.values_in(parse(file.path, file.text))
            if file.text != _text(file.path, present):
                raise ForeignFile(file.path)
            return file
    return None


def _is_after(path: str, found: Crio) -> bool:
    # Folder by folder, in the order of filepath.Walk.
    is_drop_in = path.startswith(f"{found.folder}/")
    return is_drop_in and path.split("/") > found.drop_in.split("/")


def _text(path: str, values: Mapping[str, Value]) -> str:
    return with_values(path, MARK, KEYS.table, values)
