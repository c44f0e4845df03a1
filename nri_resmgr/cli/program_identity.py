"""The name and index of a plugin's program, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from nri_resmgr.daemon.defaults import DEFAULT_INDEX
from nri_resmgr.host.bounded import DOCUMENT, read_file, reason
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.stub.errors import BadIdentity
from nri_resmgr.stub.identity import Identity, program_name


def identity_of(program: Path, name: str | None, index: str | None) -> Identity:
    """Return the identity to install a program under.

    Args:
        program: A Python file, or a folder with ``__main__.py``.
        name: Overrides the name of the file or folder, ``NAME`` or ``NN-NAME``.
        index: Overrides the program's own: what it passes to ``serve(index=...)``,
            else ``NN`` of the file's name, else 90.

    Raises:
        BadIdentity: The runtime would refuse it.
        UnreadableFile: The program cannot be read.
    """
    file = program / "__main__.py" if program.is_dir() else program
    stem = program_name(str(file.absolute()))
    try:
        of_file: Identity | None = Identity.parse(stem)
    except BadIdentity:
        of_file = None
    if index is None:
        index = _index_in(_read(file))
    if index is None:
        index = of_file.index if of_file else DEFAULT_INDEX
    if name is None:
        name = of_file.name if of_file else stem
    return Identity(name, index)


def _read(file: Path) -> bytes:
    # Bytes: a program may declare an encoding of its own.
    try:
        return read_file(file, DOCUMENT)
    except OSError as error:
        raise UnreadableFile(file, reason(error)) from None


def _index_in(text: bytes) -> str | None:
    """Return the ``index`` of a call of ``serve``, where it is text or a constant."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None  # the runtime will have its error in the log
    constants = dict(_constants(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_serve(node.func):
            for one in node.keywords:
                if one.arg == "index":
                    return _text(one.value, constants)
    return None


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(str(text))):
                yield name, text
            case ast.AnnAssign(ast.Name(name), value=ast.Constant(str(text))):
                yield name, text


def _is_serve(function: ast.expr) -> bool:
    match function:
        case ast.Name("serve") | ast.Attribute(attr="serve"):
            return True
    return False


def _text(value: ast.expr, constants: Mapping[str, str]) -> str | None:
    match value:
        case ast.Constant(str(text)):
            return text
        case ast.Name(name):
            return constants.get(name)
    return None
