"""The identity of a plugin: its name, and its index in the order of plugins."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Final

import msgspec

from nri_resmgr.log import Logger
from nri_resmgr.stub.errors import BadIdentity

log = Logger(__name__)

NAME_VARIABLE: Final = "NRI_PLUGIN_NAME"
INDEX_VARIABLE: Final = "NRI_PLUGIN_IDX"

# NRI >= 0.12 refuses other names; older runtimes accept more.
_NAME: Final = re.compile(r"[A-Za-z0-9_.+-]+")
_INDEX: Final = re.compile(r"[0-9]{2}", re.ASCII)


class Identity(msgspec.Struct, frozen=True):
    """A valid name and index.

    Attributes:
        name: Letters, digits and ``_.+-``.
        index: Two digits; the runtime calls plugins in the order of their indices.

    Raises:
        BadIdentity: The runtime would refuse one of them.

    >>> str(Identity("logger", "05"))
    '05-logger'
    """

    name: str
    index: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadIdentity(
                f"plugin name {self.name!r}: only letters, digits and _.+- are allowed"
            )
        if not _INDEX.fullmatch(self.index):
            raise BadIdentity(
                f"plugin index {self.index!r}: two digits are needed, 00 to 99"
            )

    @classmethod
    def parse(cls, text: str) -> Identity:
        """Read ``NN-name``; the name may hold further dashes.

        Raises:
            BadIdentity: *text* is not of that form.
        """
        index, dash, name = text.partition("-")
        if not dash:
            raise BadIdentity(f"plugin {text!r}: NN-name is needed, as in 10-{text}")
        return cls(name, index)

    def __str__(self) -> str:
        return f"{self.index}-{self.name}"


def find_identity(
    name: str | None,
    index: str | None,
    environment: MutableMapping[str, str],
    program: str,
) -> Identity:
    """Determine the identity from arguments, environment and program name.

    A runtime that launched the plugin knows it by the name and index of its file, and
    has priority: the administrator chose them when installing it.

    Args:
        name: From the plugin's code or the command line.
        index: Likewise.
        environment: Has the two variables of a runtime that launched the plugin.
            They are removed, so that children do not inherit them.
        program: ``sys.argv[0]``, perhaps ``NN-name``.

    Raises:
        BadIdentity: There is no index, or one of the values is not valid.
    """
    launched_name = environment.pop(NAME_VARIABLE, None)
    launched_index = environment.pop(INDEX_VARIABLE, None)
    _note_overruled("name", name, launched_name)
    _note_overruled("index", index, launched_index)
    name = name if launched_name is None else launched_name
    index = index if launched_index is None else launched_index
    stem = program_name(program)
    if index is None:
        parsed = Identity.parse(stem)
        return Identity(parsed.name if name is None else name, parsed.index)
    return Identity(re.sub(r"^[0-9]{2}-", "", stem) if name is None else name, index)


def program_name(program: str) -> str:
    """Return the name of a program by its path: ``hello`` for ``./hello.py``."""
    folder, _, file = program.rpartition("/")
    if file == "__main__.py":  # python -m package, or python folder/
        return folder.rpartition("/")[2]
    return file.removesuffix(".py")


def _note_overruled(what: str, ours: str | None, launched: str | None) -> None:
    if launched is not None and ours not in (None, launched):
        log.info("identity.overruled", what=what, ours=ours, runtime=launched)
