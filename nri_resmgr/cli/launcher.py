"""The small program that a runtime starts from its plugin folder, and its byte code."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

# `uninstall` removes only files with this text.
MARK: Final = "Written by nri-resmgr install"

# Prints several lines for a source that cannot be compiled; the last says why.
_COMPILE: Final = ("compileall", "-q")

# Linux reads 127 bytes of a #! line up to 5.0, 255 after (fs/binfmt_script.c).
_MAX_SHEBANG: Final = 127

# Top-level modules that the daemon and the SDK need; their folders go on the path.
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
    """Return the text of a launcher for *program*.

    A runtime starts plugins without PATH and HOME, so the interpreter is absolute;
    ``-I`` and ``-S`` keep the environment and the site module out, which also saves
    start time.

    Args:
        program: Absolute path of a Python file or of a folder with ``__main__.py``.
        python: Absolute path of the interpreter.
    """
    # The same as runpy, without the 15 to 40 million instructions of importing it.
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


def compile_folders(folders: Sequence[Path], python: str = sys.executable) -> str:
    """Write byte code next to all modules in *folders* that have none.

    Without it, importing the daemon takes about ten times as long. On a busy node
    that is more than the five seconds in which a launched plugin has to register.

    Args:
        folders: Packages, and folders of programs.
        python: The interpreter that will import them: byte code is of one version.

    Returns:
        Why some of it could not be written; empty if all is there. A site-packages
        that is not writable is not an error: the plugin works, and starts more
        slowly.
    """
    # -I, as in the launcher: PYTHONPYCACHEPREFIX would move the byte code.
    command = (python, "-I", "-m", *_COMPILE, *map(str, folders))
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and folders
            command, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{python}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).split("\n")
    why = [line.strip() for line in lines if line.strip()]
    return why[-1] if why else f"{python} ended with status {done.returncode}"


def _first_lines(python: str) -> str:
    shebang = f"#!{python} -IS"
    if len(shebang) <= _MAX_SHEBANG and " " not in python:
        return f"{shebang}\n"
    # sh and Python both read this: sh replaces itself, for Python it is a string.
    return f"#!/bin/sh\n'''exec' \"{python}\" -IS \"$0\" \"$@\"\n' '''\n"
