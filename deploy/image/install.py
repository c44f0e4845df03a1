"""Installs the wheels of a folder into an image, compiled."""  # noqa: INP001 - a program

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

# Every module can be imported, and what has to be fast is.
_CHECK = """
import importlib, pkgutil, nri_proto, nri_resmgr, yaml
from google.protobuf.internal import api_implementation

for package in (nri_proto, nri_resmgr):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
if api_implementation.Type() != "upb":
    raise SystemExit(f"protobuf is {api_implementation.Type()}, not upb")
yaml.CSafeLoader
"""

# A build sets all times anew: what is compiled must not count as stale then.
_COMPILE = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash")


def main(wheels: Path, target: Path) -> None:
    """Install all *wheels* into a virtual environment at *target*.

    Raises:
        CalledProcessError: pip refused, or what is installed does not work.
    """
    venv.create(target, symlinks=True)
    python = target / "bin" / "python3"
    (pip,) = wheels.glob("pip-*.whl")
    others = sorted(path for path in wheels.glob("*.whl") if path != pip)
    options = ("--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--quiet")
    _run(python, pip / "pip", "install", *options, *others)
    # Some bases come without compiled code, to be small; nobody could write it later.
    _run(python, *_COMPILE, target / "lib", sysconfig.get_path("stdlib"))
    _run(python, "-c", _CHECK)


def _run(python: Path, *arguments: str | Path) -> None:
    # The order of sets is in compiled code, and has to be the same each time.
    environment = {"PYTHONHASHSEED": "0", "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run(  # noqa: S603 - a command of ours
        (python, "-B", *arguments), check=True, env=os.environ | environment
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
