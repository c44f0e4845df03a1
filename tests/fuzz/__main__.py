"""``make fuzz``: readers under a fuzzer that watches which lines are reached."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_LONGEST = 20_000  # bytes of a text

# Of other Pythons, and what none of our readers needs to be seen from the inside.
_WATCHED = ("nri_resmgr.", "json.", "yaml.")


def main() -> int:
    """Fuzz one reader, or all, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", help="all, if none is named")
    parser.add_argument("--seconds", type=int, default=60, help="for each")
    parser.add_argument("--in", dest="folder", help=argparse.SUPPRESS)  # for ourselves
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed (pip install atheris): its part is left out")
        return 0
    if options.folder:
        _fuzz(options.readers[0], Path(options.folder), options.seconds)
    from tests.fuzz.readers import READERS

    names = options.readers or READERS
    return max(_in_a_process(name, options.seconds) for name in names)


def _in_a_process(name: str, seconds: int) -> int:
    print(f"{name}:", flush=True)
    with tempfile.TemporaryDirectory(prefix="nri-fuzz-") as folder:
        command = (sys.executable, "-m", "tests.fuzz", name, "--in", folder)
        done = subprocess.run((*command, "--seconds", str(seconds)), check=False)
    return done.returncode


def _fuzz(name: str, folder: Path, seconds: int) -> None:
    """Fuzz until the time is over, and end the process."""
    atheris: Any = importlib.import_module("atheris")  # which not every venv has
    with atheris.instrument_imports(include=list(_WATCHED)):
        from nri_resmgr.values import ResmgrError
        from tests.fuzz.readers import READERS
    reader = READERS[name]

    def read(data: bytes) -> None:
        with contextlib.suppress(ResmgrError):
            reader.read(data.decode("utf-8", "replace"))

    for number, text in enumerate(reader.samples()):
        (folder / str(number)).write_bytes(text.encode("utf-8", "replace"))
    _run(atheris, read, str(folder), seconds)


def _run(atheris: Any, read: Any, folder: str, seconds: int) -> None:
    import structlog

    # A line per mutant is of no use to anybody.
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    limits = (f"-max_total_time={seconds}", f"-max_len={_LONGEST}", "-timeout=20")
    # What it finds it writes where we are: elsewhere than in the repository.
    where = f"-artifact_prefix={tempfile.gettempdir()}/nri-fuzz-"
    atheris.Setup(
        [sys.argv[0], *limits, where, "-verbosity=0", "-print_final_stats=1", folder],
        read,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
