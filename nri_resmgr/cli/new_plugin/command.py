"""``nri-resmgr new-plugin``: write a folder with a plugin that works, and its tests."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.new_plugin.names import Names
from nri_resmgr.host.bounded import reason
from nri_resmgr.stub.identity import Identity
from nri_resmgr.values.errors import HostError, InputError
from nri_resmgr.version import our_version

_FILES: Final = Path(__file__).with_name("files")
_SUFFIX: Final = ".in"

# As the samples of containerd/nri: before the resource policy.
_INDEX: Final = "10"

_EXAMPLES: Final = """\
examples:
  nri-resmgr new-plugin gpu-env                      a folder gpu-env with a plugin
  nri-resmgr new-plugin gpu-env --index 95           called after the resource policy
  nri-resmgr new-plugin gpu-env --folder src/gpu     in another folder
"""

_NEXT: Final = """\
next:
  cd {folder}
  pip install pytest pytest-asyncio && pytest
  sudo python . --dry-run        what it would do on this node; see README.md
"""


@dataclass(eq=False)
class FolderExists(InputError):
    """The folder of a new plugin is there already."""

    folder: Path

    def __str__(self) -> str:
        return f"{self.folder} exists: choose another name, or another --folder"


@dataclass(eq=False)
class FolderNotMade(HostError):
    """The folder of a new plugin, or a file in it, cannot be written."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Make a folder with a small plugin, tests, a README, a sample of its "
        "configuration and a Containerfile. All of it works unchanged."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "name", help="name to register: small letters, digits, and dashes between them"
    )
    parser.add_argument(
        "--index",
        default=_INDEX,
        help="place among the plugins, 00 to 99, default %(default)s",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="PATH",
        help="folder to make, default NAME in the working folder",
    )


def run(options: argparse.Namespace) -> int:
    """Make the folder, and print what is in it."""
    folder = options.folder or Path(options.name)
    for path in make(options.name, options.index, folder):
        print(f"wrote {folder / path}")
    print(f"\n{_NEXT.format(folder=folder)}", end="")
    return 0


def make(name: str, index: str, folder: Path) -> list[Path]:
    """Write the files of a new plugin.

    Args:
        name: Its name.
        index: Two digits.
        folder: Where to; its parent has to exist.

    Returns:
        The files, relative to the folder.

    Raises:
        BadPluginName: The name cannot be used.
        BadIdentity: The index is none.
        FolderExists: There is something at *folder*; it is left as it is.
        FolderNotMade: The operating system refuses to write; nothing is left behind.
    """
    names, identity = Names.of(name), Identity(name, index)
    words = {
        "@NAME@": names.plugin,
        "@MODULE@": names.module,
        "@CLASS@": names.prefix,
        "@INDEX@": identity.index,
        "@VERSION@": our_version() or "latest",
    }
    texts = dict(sorted(_filled(words)))
    _make_folder(folder)
    try:
        for path, text in texts.items():
            _write(folder / path, text)
    except FolderNotMade:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return list(texts)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError:
        raise FolderExists(folder) from None
    except OSError as error:
        raise FolderNotMade(folder, reason(error)) from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FolderNotMade(path, reason(error)) from None


def _filled(words: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    for file in _FILES.rglob(f"*{_SUFFIX}"):
        path = str(file.relative_to(_FILES)).removesuffix(_SUFFIX)
        yield Path(_replaced(path, words)), _replaced(file.read_text("utf-8"), words)


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
