"""The small program that a runtime starts from its plugin folder."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# uninstall removes only files that carry it.
MARK: Final = "Written by nri-resmgr install"

# Linux reads 127 bytes of a #! line up to 5.0, 255 after (fs/binfmt_script.c).
_MAX_SHEBANG: Final = 127

# Top-level modules the daemon and the SDK need; their folders go on the path.
NEEDED: Final = (
    "nri_resmgr",
    "nri_proto",
    "attr",
    "google",
    "msgspec",
    "structlog",
    "yaml",
)


def launcher_text(program: Path, python: str = sys.executable) -> str:
    """Write a launcher for *program*.

    A runtime gives it no PATH and no HOME, so the interpreter is absolute; ``-I``
    and ``-S`` keep the environment and the site module out, which also saves start
    time.

    Args:
        program: Absolute path of a Python file or of a folder with ``__main__.py``.
        python: Absolute path of the interpreter.
    """
    # What runpy does, without the 15 to 40 million instructions of importing it.
    path = [str(folder) for folder in import_path(NEEDED)]
    main = program
    if program.is_dir():
        main = program / "__main__.py"
        path.insert(0, str(program))
    return (
        f"{_first_lines(python)}"
        f"# {MARK}: for {program}\n"
        "import sys\n"
        f"sys.path[:0] = {path!r}\n"
        f"sys.argv[0] = {str(program)!r}\n"
        f"__file__ = {str(main)!r}\n"
        "with open(__file__, 'rb') as program:\n"
        "    code = compile(program.read(), __file__, 'exec')\n"
        "exec(code)\n"
    )


def import_path(modules: Iterable[str]) -> tuple[Path, ...]:
    """Find the folders from which *modules* are imported, each once."""
    folders: dict[Path, None] = {}
    for module in modules:
        spec = importlib.util.find_spec(module)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            folders[Path(location).absolute().parent] = None
    return tuple(folders)


def packages(modules: Iterable[str]) -> tuple[Path, ...]:
    """Find the folders of *modules* that are packages."""
    specs = (importlib.util.find_spec(module) for module in modules)
    return tuple(
        Path(location).absolute()
        for spec in specs
        for location in ((spec.submodule_search_locations or ()) if spec else ())
    )


def _first_lines(python: str) -> str:
    shebang = f"#!{python} -IS"
    if len(shebang) <= _MAX_SHEBANG and " " not in python:
        return f"{shebang}\n"
    # Both sh and Python read this: sh replaces itself, Python sees a string.
    return f"#!/bin/sh\n'''exec' \"{python}\" -IS \"$0\" \"$@\"\n' '''\n"
