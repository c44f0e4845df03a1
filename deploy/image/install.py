"""Installs the wheels in a folder into an image, with byte code."""  # noqa: INP001 - a program

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

# Checks that every module can be imported, and that the fast C libraries are used.
_CHECK = """
import importlib, pkgutil, nri_proto, nri_resmgr, yaml
from google.protobuf.internal import api_implementation

# These need the extra "otel", and pytest.
absent = {
    "nri_resmgr.daemon.log_export",
    "nri_resmgr.daemon.metrics_export",
    "nri_resmgr.daemon.tracing",
    "nri_resmgr.pytest_plugin",
}
for package in (nri_proto, nri_resmgr):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name not in absent:
            importlib.import_module(module.name)
if api_implementation.Type() != "upb":
    raise SystemExit(f"protobuf is {api_implementation.Type()}, not upb")
yaml.CSafeLoader
"""

# The build changes file times: byte code must not become stale by that.
_COMPILE = ("-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash")


def main(wheels: Path, target: Path) -> None:
    """Install all *wheels* into a virtual environment at *target*.

    Raises:
        CalledProcessError: pip failed, or the installed packages do not work.
    """
    venv.create(target, symlinks=True)
    python = target / "bin" / "python3"
    (pip,) = wheels.glob("pip-*.whl")
    others = sorted(path for path in wheels.glob("*.whl") if path != pip)
    options = ("--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--quiet")
    _run(python, pip / "pip", "install", *options, *others)
    # Some base images lack byte code, and it cannot be written at run time.
    _run(python, *_COMPILE, target / "lib", sysconfig.get_path("stdlib"))
    _run(python, "-c", _CHECK)


def _run(python: Path, *arguments: str | Path) -> None:
    # Byte code has the order of sets, which must be the same in each build.
    environment = {"PYTHONHASHSEED": "0", "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run(  # noqa: S603 - a fixed command
        (python, "-B", *arguments), check=True, env=os.environ | environment
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
