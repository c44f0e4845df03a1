"""Put a plugin's launcher where the runtime starts it from, and take it away."""

from __future__ import annotations

import contextlib
import os
import stat
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.cli.byte_code import compile_folders
from nri_resmgr.cli.install_errors import (
    AlreadyInstalled,
    FolderUnusable,
    NoSuchPlugin,
    NotInstalled,
    WouldBreakRuntime,
)
from nri_resmgr.cli.launcher import MARK, NEEDED, launcher_text, packages
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.stub.errors import BadIdentity
from nri_resmgr.stub.identity import Identity

_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class Installation(msgspec.Struct, frozen=True):
    """What was installed.

    Attributes:
        launcher: The program that the runtime starts.
        config: Where its configuration belongs; it may be absent.
        config_is_new: Whether it was written.
        not_compiled: Why some byte code could not be written; empty if all is there.
    """

    launcher: Path
    config: Path
    config_is_new: bool
    not_compiled: str = ""


class Folders(msgspec.Struct, frozen=True):
    """The runtime's two folders, `plugin_path` and `plugin_config_path`."""

    plugins: Path
    configs: Path


def install(
    plugin: str, identity: Identity, folders: Folders, config: Path | None = None
) -> Installation:
    """Write the launcher and, unless there is one, the configuration file.

    Byte code of all that the launcher imports is written first.

    Args:
        plugin: A shipped plugin's name, or the path of a program.
        identity: As which the runtime shall launch it.
        folders: Made if they are missing.
        config: A document to copy; None takes the shipped sample, if any.

    Raises:
        NoSuchPlugin: *plugin* names no program.
        UnreadableFile: *config* cannot be read.
        AlreadyInstalled: A launcher of that name is there, under any index.
        WouldBreakRuntime: The runtime could not start with what is there.
        FolderUnusable: The system refuses to write.
    """
    program = find_program(plugin)
    config_path = folders.configs / f"{identity}.conf"
    launcher = folders.plugins / str(identity)
    with _writing():
        folders.plugins.mkdir(parents=True, exist_ok=True)
        folders.configs.mkdir(parents=True, exist_ok=True)
        _check_folder(folders.plugins, identity)
        text = _config_text(plugin, config)
        # Before the launcher: a runtime that starts right now would compile as well.
        not_compiled = compile_folders(_imported(program))
        is_new = text is not None and not config_path.exists()
        if is_new and text is not None:
            _write_whole(config_path, text)
        _write_whole(launcher, launcher_text(program))
        # Last and after the rename: until then the runtime does not see it.
        launcher.chmod(0o755)
    return Installation(launcher, config_path, is_new, not_compiled)


def uninstall(plugin: str, folders: Folders, *, purge: bool = False) -> list[Path]:
    """Remove the launchers of a plugin.

    Args:
        plugin: ``NN-name``, or a name under any index.
        folders: Where to look.
        purge: Whether to remove its configuration, too.

    Returns:
        What was removed.

    Raises:
        NotInstalled: Nothing of ours has that name.
        FolderUnusable: The system refuses to remove it.
    """
    with _writing():
        found = [path for path in _ours(folders.plugins) if _is_called(path, plugin)]
        if not found:
            raise NotInstalled(plugin, folders.plugins)
        if purge:
            configs = [folders.configs / f"{path.name}.conf" for path in found]
            found += [path for path in configs if path.exists()]
        for path in found:
            path.unlink()
    return found


def shipped(kind: str) -> Path:
    """Return the folder of shipped ``plugins`` or ``conf.d``.

    They are data of the distribution; in a checkout they stand beside the package.
    """
    checkout = Path(__file__).parents[2] / kind
    if checkout.is_dir():
        return checkout
    return Path(sysconfig.get_path("data")) / "share" / "nri-resmgr" / kind


def find_program(plugin: str) -> Path:
    """Find what to run for a shipped plugin's name or a path.

    Raises:
        NoSuchPlugin: Neither names a program.
    """
    known = shipped("plugins")
    for path in (known / plugin, Path(plugin).absolute()):
        if path.is_file() or (path / "__main__.py").is_file():
            return path
    names = sorted(path.parent.name for path in known.glob("*/__main__.py"))
    raise NoSuchPlugin(plugin, tuple(names))


def default_name(plugin: str) -> str:
    """Name a plugin after its program: ``hello`` for ``./hello.py``."""
    return Path(plugin).absolute().name.removesuffix(".py")


def _imported(program: Path) -> list[Path]:
    # A program that is one file is compiled by the launcher, each time.
    own = [program] if program.is_dir() else []
    return [*packages(NEEDED), *own]


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderUnusable(str(error.filename), str(error.strerror)) from None


def _check_folder(folder: Path, identity: Identity) -> None:
    programs = [path for path in folder.iterdir() if _is_executable(path)]
    if bad := tuple(path for path in programs if not _has_legal_name(path)):
        raise WouldBreakRuntime(bad)
    for path in programs:
        if _is_called(path, identity.name):
            raise AlreadyInstalled(path)


def _is_executable(path: Path) -> bool:
    # As Go does it: a link is no folder, whatever it leads to, and has all x bits.
    mode = path.lstat().st_mode
    return not stat.S_ISDIR(mode) and bool(mode & _EXECUTABLE)


def _has_legal_name(path: Path) -> bool:
    try:
        Identity.parse(path.name)
    except BadIdentity:
        return False
    return True


def _is_called(path: Path, plugin: str) -> bool:
    return plugin in (path.name, path.name.partition("-")[2])


def _ours(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return [path for path in files if MARK in path.read_text(errors="replace")[:4096]]


def _config_text(plugin: str, config: Path | None) -> str | None:
    # A program's path has no sample: only names are shipped.
    sample = shipped("conf.d") / f"{Path(plugin).name}.conf"
    if config is None and (Path(plugin).name != plugin or not sample.is_file()):
        return None
    return read_text_file(config or sample)


def _write_whole(path: Path, text: str) -> None:
    # No x bit and a dot in front: a runtime that starts right now skips it.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o644)
    draft.rename(path)
