"""The small program that a runtime starts from its plugin folder, and its byte code."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

# `uninstall` removes only files with this text.
MARK: Final = "Written by nri-resmgr install"

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
        # Late, since only a program that fails needs it.
        "def say_why(*found):\n"
        "    from nri_resmgr.log.last_words import log_uncaught\n"
        "    log_uncaught(*found)\n"
        "sys.excepthook = say_why\n"
        "with open(__file__, 'rb') as program:\n"
        "    code = compile(program.read(), __file__, 'exec')\n"
        "exec(code)\n"
    )


def import_path(modules: Iterable[str]) -> tuple[Path, ...]:
    """Find the folders from which those of *modules* that are packages are imported."""
    return tuple(dict.fromkeys(folder.parent for folder in packages(modules)))


def packages(modules: Iterable[str]) -> Iterator[Path]:
    """Find the folders of those of *modules* that are packages."""
    for module in modules:
        if spec := importlib.util.find_spec(module):
            for location in spec.submodule_search_locations or ():
                yield Path(location).absolute()


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
    command = (python, "-I", "-m", "compileall", "-q", *map(str, folders))
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and folders
            command, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{python}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = (done.stdout + done.stderr).split("\n")
    # It prints several lines for a source that cannot be compiled; the last says why.
    why = [line.strip() for line in lines if line.strip()]
    return why[-1] if why else f"{python} ended with status {done.returncode}"


def _first_lines(python: str) -> str:
    shebang = f"#!{python} -IS"
    if len(shebang) <= _MAX_SHEBANG and " " not in python:
        return f"{shebang}\n"
    # sh and Python both read this: sh replaces itself, for Python it is a string.
    return f"#!/bin/sh\n'''exec' \"{python}\" -IS \"$0\" \"$@\"\n' '''\n"
