"""How NRI is switched on in the configuration of CRI-O."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.runtimes.errors import ForeignFile, Overridden
from nri_resmgr.runtimes.switch import MARK, Change, ConfigFile, Keys, ordered
from nri_resmgr.runtimes.toml_edit import Scalar, is_value, parse, with_values

MAIN: Final = "/etc/crio/crio.conf"
FOLDER: Final = "/etc/crio/crio.conf.d"
KEYS: Final = Keys(
    ("crio", "nri"),
    ("enable_nri", True),
    "nri_plugin_registration_timeout",
    "nri_plugin_request_timeout",
    "nri_disable_connections",
)

_DROP_IN: Final = "90-nri-resmgr.conf"


class Crio(msgspec.Struct, frozen=True):
    """The files that CRI-O reads.

    Attributes:
        files: In the order in which they are read: each key goes by the last one
            that has it.
        folder: Where drop-ins are.
    """

    files: tuple[ConfigFile, ...] = ()
    folder: str = FOLDER

    @property
    def drop_in(self) -> str:
        """The path of ours."""
        return posixpath.join(self.folder, _DROP_IN)


def switched_on(found: Crio, wanted: Mapping[str, Scalar]) -> Change:
    """Say how to set the keys: by a drop-in, unless they are set already.

    Raises:
        NotToml: CRI-O would not start with one of the files.
        Overridden: One that is read after ours says otherwise.
        ForeignFile: One has our name, and not our contents.
    """
    ours = _ours(found)
    documents = {file.path: parse(file.path, file.text) for file in found.files}
    said = {path: KEYS.said(document) for path, document in documents.items()}
    notes = KEYS.notes(documents.values())
    others = [path for path in said if path != found.drop_in]
    for path in others:
        wrong = (k for k, v in said[path].items() if not is_value(wanted.get(k, v), v))
        if _is_after(path, found) and any(wrong):
            raise Overridden(path, ".".join(KEYS.table))
    before = None if ours is None else ours.text
    effective = {key: v for path in others for key, v in said[path].items()}
    if ours is None and all(is_value(effective.get(k), v) for k, v in wanted.items()):
        return Change(found.drop_in, None, None, notes)
    values = ordered(KEYS, {**said.get(found.drop_in, {}), **wanted})
    return Change(found.drop_in, before, _text(found.drop_in, values), notes)


def switched_back(found: Crio) -> Change:
    """Say how to take back what `switched_on` did.

    Raises:
        ForeignFile: The drop-in is not as we wrote it.
    """
    ours = _ours(found)
    return Change(found.drop_in, None if ours is None else ours.text, None)


def _ours(found: Crio) -> ConfigFile | None:
    for file in found.files:
        if file.path == found.drop_in:
            said = KEYS.said(parse(file.path, file.text))
            if file.text != _text(file.path, said):
                raise ForeignFile(file.path)
            return file
    return None


def _is_after(path: str, found: Crio) -> bool:
    # Folder by folder, as filepath.Walk goes.
    is_drop_in = path.startswith(f"{found.folder}/")
    return is_drop_in and path.split("/") > found.drop_in.split("/")


def _text(path: str, values: Mapping[str, Scalar]) -> str:
    return with_values(path, MARK, KEYS.table, values)
