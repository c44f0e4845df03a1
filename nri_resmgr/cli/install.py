"""``nri-resmgr install``: write a plugin's launcher, or remove it."""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.launcher import (
    MARK,
    NEEDED,
    compile_folders,
    launcher_text,
    packages,
)
from nri_resmgr.cli.program_identity import identity_of
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.stub.errors import BadIdentity
from nri_resmgr.stub.identity import Identity
from nri_resmgr.values.errors import HostError, InputError

# A launcher has its mark in its first lines; other plugins are large binaries.
_LAUNCHER_HEAD: Final = 4096  # bytes

_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

_EXAMPLES: Final = """\
examples:
  nri-resmgr install                          the resource policy, as 90-resource-policy
  nri-resmgr install --config my.yaml         with this configuration
  nri-resmgr install logger --index 99        another plugin that is shipped
  nri-resmgr install ./hello.py --index 10    one of your own
"""


@dataclass(eq=False)
class NoSuchPlugin(InputError):
    """No program has that name or path."""

    plugin: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"no plugin {self.plugin!r}: give the path of a Python file, of a folder "
            f"with __main__.py, or one of {', '.join(self.known) or 'nothing shipped'}"
        )


@dataclass(eq=False)
class AlreadyInstalled(InputError):
    """A launcher of that name is in the folder."""

    path: Path

    def __str__(self) -> str:
        return f"{self.path} exists: uninstall it first, or choose another name"


@dataclass(eq=False)
class NotInstalled(InputError):
    """No launcher written by `install` has that name."""

    plugin: str
    folder: Path

    def __str__(self) -> str:
        return f"no plugin {self.plugin!r} that nri-resmgr installed in {self.folder}"


@dataclass(eq=False)
class WouldBreakRuntime(HostError):
    """The plugin folder has executables with which NRI refuses to start."""

    paths: tuple[Path, ...]

    def __str__(self) -> str:
        names = ", ".join(str(path) for path in self.paths)
        return (
            f"{names}: an executable without an NN-name makes the runtime's NRI, and "
            "with it the runtime, fail to start; remove it or its x bits first"
        )


@dataclass(eq=False)
class FolderUnusable(HostError):
    """A folder or file of the installation cannot be written."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why.lower()}; is this process root?"


class Installation(msgspec.Struct, frozen=True):
    """An installed plugin.

    Attributes:
        launcher: The program that the runtime starts.
        config: The path of its configuration, which may be missing.
        config_is_new: Whether that file was written.
        not_compiled: Why some byte code could not be written; empty if all is there.
    """

    launcher: Path
    config: Path
    config_is_new: bool
    not_compiled: str = ""


class Folders(msgspec.Struct, frozen=True):
    """The runtime's ``plugin_path`` and ``plugin_config_path``."""

    plugins: Path
    configs: Path


def add_arguments(parser: Parser) -> None:
    """Describe ``install``."""
    parser.description = "Write a launcher of a plugin to the runtime's plugin folder."
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "plugin",
        nargs="?",
        default=DEFAULT_NAME,
        help=f"name of a shipped plugin, or path of a program; default {DEFAULT_NAME}",
    )
    parser.add_argument("--name", help="name to register, default the program's name")
    parser.add_argument(
        "--index",
        help="place among the plugins, 00 to 99, default the program's own, "
        f"or {DEFAULT_INDEX}",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration to install, default a sample",
    )
    add_folder_flags(parser)


def add_folder_flags(parser: Parser) -> None:
    """Add the flags of the runtime's folders."""
    parser.add_argument(
        "--plugin-dir",
        type=Path,
        default=Path("/opt/nri/plugins"),
        help="the runtime's plugin_path, default %(default)s",
    )
    parser.add_argument(
        "--config-dir",
        type=Path,
        default=Path("/etc/nri/conf.d"),
        help="the runtime's plugin_config_path, default %(default)s",
    )


def run(options: argparse.Namespace) -> int:
    """Install a plugin."""
    program = find_program(options.plugin)
    identity = identity_of(program, options.name, options.index)
    folders = Folders(options.plugin_dir, options.config_dir)
    done = install(options.plugin, identity, folders, options.config)
    print(f"installed {done.launcher}")
    if done.config.exists():
        state = "written" if done.config_is_new else "unchanged"
        print(f"configuration {done.config}: {state}")
    if done.not_compiled:
        print(f"byte code not written, starts are slower: {done.not_compiled}")
    print("restart the runtime to start the plugin")
    return 0


def install(
    plugin: str, identity: Identity, folders: Folders, config: Path | None = None
) -> Installation:
    """Write the launcher and, if it is missing, the configuration file.

    Byte code of all modules that the launcher imports is written first.

    Args:
        plugin: A shipped plugin's name, or the path of a program.
        identity: The name and index under which the runtime launches it.
        folders: Created if they are missing.
        config: A document to copy; None takes the shipped sample, if any.

    Raises:
        NoSuchPlugin: *plugin* names no program.
        UnreadableFile: *config* cannot be read.
        AlreadyInstalled: There is a launcher of that name, under any index.
        WouldBreakRuntime: The runtime could not start with the files in the folder.
        FolderUnusable: The operating system refuses to write.
    """
    program = find_program(plugin)
    config_path = folders.configs / f"{identity}.conf"
    launcher = folders.plugins / str(identity)
    with _writing():
        folders.plugins.mkdir(parents=True, exist_ok=True)
        folders.configs.mkdir(parents=True, exist_ok=True)
        _check_folder(folders.plugins, identity)
        text = _config_text(plugin, config)
        # Before the launcher: a runtime that starts now would compile as well.
        # The launcher itself compiles a program that is one file, at each start.
        own = [program] if program.is_dir() else []
        not_compiled = compile_folders([*packages(NEEDED), *own])
        is_new = text is not None and not config_path.exists()
        if is_new and text is not None:
            _write_whole(config_path, text)
        _write_whole(launcher, launcher_text(program))
        # Last, after the rename: until then the runtime does not see the file.
        launcher.chmod(0o755)
    return Installation(launcher, config_path, is_new, not_compiled)


def uninstall(plugin: str, folders: Folders, *, purge: bool = False) -> list[Path]:
    """Remove the launchers of ``NN-name``, or of a name under any index.

    Returns:
        The removed files; with *purge* also its configuration.

    Raises:
        NotInstalled: No launcher written by `install` has that name.
        FolderUnusable: The operating system refuses to remove it.
    """
    with _writing():
        found = [one for one in _installed(folders.plugins) if _is_called(one, plugin)]
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

    They are data of the distribution; in a checkout they are next to the package.
    """
    checkout = Path(__file__).parents[2] / kind
    if checkout.is_dir():
        return checkout
    return Path(sysconfig.get_path("data")) / "share" / "nri-resmgr" / kind


def find_program(plugin: str) -> Path:
    """Return the program of a shipped plugin's name or of a path.

    Raises:
        NoSuchPlugin: Neither names a program.
    """
    known = shipped("plugins")
    # A shipped plugin has precedence over a file of that name in the working folder.
    for path in (known / plugin, Path(plugin).absolute()):
        if path.is_file() or (path / "__main__.py").is_file():
            return path
    names = sorted(path.parent.name for path in known.glob("*/__main__.py"))
    raise NoSuchPlugin(plugin, tuple(names))


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
    # As in Go: a link is not a folder, whatever its target, and has all x bits.
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


def _installed(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    return [path for path in files if _is_ours(path)]


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK.encode() in file.read(_LAUNCHER_HEAD)


def _config_text(plugin: str, config: Path | None) -> str | None:
    # A path has no sample: only plugins named without a path are shipped.
    sample = shipped("conf.d") / f"{Path(plugin).name}.conf"
    if config is None and (Path(plugin).name != plugin or not sample.is_file()):
        return None
    return read_text_file(config or sample)


def _write_whole(path: Path, text: str) -> None:
    # Without x bits and with a leading dot: a runtime that starts now skips the file.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o644)
    draft.rename(path)
