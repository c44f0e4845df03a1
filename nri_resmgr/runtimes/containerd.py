"""Enables NRI in the configuration of containerd."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from nri_resmgr.runtimes.errors import (
    ForeignFile,
    NotChanged,
    Overridden,
)
from nri_resmgr.runtimes.switch import (
    MARK,
    ConfigFile,
    FileChange,
    Keys,
    ValidatorKeys,
    edited,
    has_values,
    is_our_edit,
    refuse_generated,
)
from nri_resmgr.runtimes.toml_edit import Value, parse, table_of, with_values

MAIN: Final = "/etc/containerd/config.toml"
KEYS: Final = Keys(
    ("plugins", "io.containerd.nri.v1.nri"),
    ("disable", False),
    "plugin_registration_timeout",
    "plugin_request_timeout",
    "disable_connections",
    ValidatorKeys(
        "default_validator.enable",
        "default_validator.required_plugins",
        "default_validator.tolerate_missing_plugins_annotation",
    ),
)

_DROP_IN: Final = "90-nri-resmgr.toml"
# The default imports of containerd 2.2.
DEFAULT_IMPORTS: Final = "/etc/containerd/conf.d/*.toml"
_ON_BY_DEFAULT: Final = 3  # a version of files that only containerd 2 reads
_KNOWN: Final = (2, 3, 4)

# The CRI plugin starts NRI; 2.x has it in two parts.
_NEEDED: Final = (
    "io.containerd.nri.v1.nri",
    "io.containerd.grpc.v1.cri",
    "io.containerd.cri.v1.runtime",
    "cri",
)


class Containerd(msgspec.Struct, frozen=True):
    """The files that containerd reads.

    Attributes:
        main: The main file, if it exists.
        imported: The imported files, in the order in which they are read.
        original: The backup of the main file, if it exists.
        is_on: Whether a process listens on the NRI socket.
    """

    main: ConfigFile | None = None
    imported: tuple[ConfigFile, ...] = ()
    original: str | None = None
    is_on: bool = False

    @property
    def files(self) -> tuple[ConfigFile, ...]:
        """All files, in the order in which they are read."""
        return (self.main, *self.imported) if self.main else self.imported


def imports_of(file: ConfigFile, *, only_absolute: bool = False) -> tuple[str, ...]:
    """Return the absolute paths and patterns of the imports of a file.

    Args:
        file: Relative paths begin at its folder, as in containerd 2.
        only_absolute: Leave out relative paths, which 1.7 resolves differently.

    Source:
        containerd, cmd/containerd/server/config/config.go, resolveImports.

    Raises:
        NotToml: The file is not TOML.

    >>> imports_of(ConfigFile("/etc/containerd/config.toml", "imports = ['a.toml']"))
    ('/etc/containerd/a.toml',)
    """
    imports = parse(file.path, file.text).get("imports", [])
    folder = posixpath.dirname(file.path)
    listed = imports if isinstance(imports, list) else []
    texts = [one for one in listed if isinstance(one, str)]
    if only_absolute:
        texts = [one for one in texts if one.startswith("/")]
    return tuple(posixpath.normpath(posixpath.join(folder, one)) for one in texts)


def switched_on(found: Containerd, wanted: Mapping[str, Value]) -> FileChange:
    """Return the change that sets the keys.

    A file that has the table is edited: containerd up to 2.1 replaces the whole table
    of one file by that of the next, so a drop-in would hide its other keys. If no file
    has the table and the main file imports a folder, a drop-in is written.

    Raises:
        InputError: A file is broken, generated, of an unknown version, or overrides
            the change; see `errors`.
    """
    main = found.main
    documents = [parse(one.path, one.text) for one in found.files]
    wanted = KEYS.merged(wanted, documents)
    notes = KEYS.notes(documents, wanted)
    if main is None:
        change = _first_file(found, wanted)
        return msgspec.structs.replace(change, notes=notes)
    for file, document in zip(found.files, documents, strict=True):
        _refuse_disabled(file, document)
    version = _version(main, documents[0])
    wanted = _without_defaults(wanted, documents, version)
    change = _changed(main, found, documents, wanted)
    return msgspec.structs.replace(change, notes=notes)


def switched_back(found: Containerd) -> FileChange:
    """Return the change that reverts `switched_on`.

    Raises:
        NotChanged: The file was edited since; that edit would be lost.
        ForeignFile: The drop-in was changed since.
    """
    main = found.main
    if main is not None and found.original is not None:
        original = ConfigFile(main.path, found.original)
        if not is_our_edit(KEYS, original, main.text):
            backup = backup_of(main.path)
            why = f"was changed after NRI was enabled in it; the original is {backup}"
            raise NotChanged(main.path, f"{why}: merge them by hand")
        return FileChange(main.path, main.text, found.original, is_edit=True)
    for file in found.files:
        if file.text.startswith(MARK):
            document = parse(file.path, file.text)
            present = KEYS.values_in(document)
            _refuse_foreign(file, present, document.get("version"))
            return FileChange(file.path, file.text, None)
    return FileChange(MAIN, None, None)


def backup_of(path: str) -> str:
    """Return the path of a file's backup, which no import pattern matches."""
    return f"{path}.before-nri-resmgr"


def _version(file: ConfigFile, document: Mapping[str, object]) -> int:
    version = document.get("version", 1)
    if type(version) is int and version in (0, 1):
        why = "has version 1, which has no table for NRI; convert it with"
        raise NotChanged(file.path, f"{why} `containerd config migrate` first")
    if type(version) is not int or version not in _KNOWN:
        raise NotChanged(file.path, f"has version {version!r}; expected 2, 3 or 4")
    return version


def _refuse_disabled(file: ConfigFile, document: Mapping[str, object]) -> None:
    disabled = document.get("disabled_plugins", [])
    for plugin in _NEEDED:
        if isinstance(disabled, list) and plugin in disabled:
            why = f"has {plugin!r} in disabled_plugins, and NRI needs it"
            raise NotChanged(file.path, f"{why}; remove it there first")


def _without_defaults(
    wanted: Mapping[str, Value],
    documents: Sequence[Mapping[str, object]],
    version: int,
) -> dict[str, Value]:
    key, _ = KEYS.switch
    is_set = any(key in (table_of(one, KEYS.table) or {}) for one in documents)
    if version >= _ON_BY_DEFAULT and not is_set:
        return {name: value for name, value in wanted.items() if name != key}
    return dict(wanted)


def _holder(
    found: Containerd, documents: Sequence[Mapping[str, object]]
) -> ConfigFile | None:
    """Return the last file with the table, which overrides those before."""
    files = zip(found.files, documents, strict=True)
    holders = [file for file, one in files if table_of(one, KEYS.table) is not None]
    return holders[-1] if holders else None


def _first_file(found: Containerd, wanted: Mapping[str, Value]) -> FileChange:
    if found.imported:
        readers = f"only containerd 2.2 and later read {found.imported[0].path}"
        how = f"containerd config default >{MAIN}"
        raise NotChanged(MAIN, f"is missing, so {readers}; create it first: {how}")
    if found.is_on and len(wanted) == 1:  # the default of containerd 2 without a file
        return FileChange(MAIN, None, None)
    return FileChange(MAIN, None, _new_main(wanted))


def _changed(
    main: ConfigFile,
    found: Containerd,
    documents: Sequence[Mapping[str, object]],
    wanted: Mapping[str, Value],
) -> FileChange:
    version = _version(main, documents[0])
    holder = _holder(found, documents)
    if holder is None:
        return _first_table(main, found, wanted, version)
    if holder.text.startswith(MARK):
        return _rewritten(holder, wanted, version, is_main=holder == main)
    if holder == main:
        refuse_generated(main)
        return edited(KEYS, main, found.original, wanted)
    if has_values(table_of(parse(holder.path, holder.text), KEYS.table) or {}, wanted):
        return FileChange(holder.path, holder.text, holder.text)
    raise Overridden(holder.path, ".".join(KEYS.table))


def _first_table(
    main: ConfigFile, found: Containerd, wanted: Mapping[str, Value], version: int
) -> FileChange:
    if not wanted:
        return FileChange(main.path, main.text, main.text)
    for pattern in imports_of(main, only_absolute=True):
        folder, name = posixpath.split(pattern)
        if "*" in name and "*" not in folder and fnmatch.fnmatch(_DROP_IN, name):
            path = posixpath.join(folder, _DROP_IN)
            if any(file.path == path for file in found.imported):
                raise ForeignFile(path)
            return FileChange(path, None, _drop_in(path, wanted, version))
    refuse_generated(main)
    return edited(KEYS, main, found.original, wanted)


def _rewritten(
    file: ConfigFile, wanted: Mapping[str, Value], version: int, *, is_main: bool
) -> FileChange:
    document = parse(file.path, file.text)
    present = KEYS.values_in(document)
    _refuse_foreign(file, present, document.get("version"))
    values = KEYS.ordered({**present, **wanted})
    if is_main:
        return FileChange(file.path, file.text, _new_main(values))
    return FileChange(file.path, file.text, _drop_in(file.path, values, version))


def _refuse_foreign(
    file: ConfigFile, present: Mapping[str, Value], version: object
) -> None:
    texts = [_new_main(present)]
    if version in _KNOWN:
        texts.append(_drop_in(file.path, present, version))
    if file.text not in texts:
        raise ForeignFile(file.path)


def _drop_in(path: str, values: Mapping[str, Value], version: object) -> str:
    # A drop-in without a version would be read as version 1.
    head = f"{MARK}version = {version}\n"
    return with_values(path, head, KEYS.table, values)


def _new_main(values: Mapping[str, Value]) -> str:
    """Return a file that containerd 1.7 and 2 read alike, and that hides no drop-in."""
    head = f'{MARK}version = 2\nimports = ["{DEFAULT_IMPORTS}"]\n'
    return with_values(MAIN, head, KEYS.table, values)
