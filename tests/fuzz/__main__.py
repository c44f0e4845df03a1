"""``make fuzz``: all targets in turn, guided by coverage where atheris installs."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

# Inputs that reached new lines, and what was found; kept for the next run.
_WORK: Final = Path("build/fuzz")

_LONGEST: Final = 20_000  # bytes of an input

# Of other Pythons, and what none of our readers needs to be seen from the inside.
_WATCHED: Final = ("nri_proto.", "nri_resmgr.", "json.", "yaml.")

_WITHOUT_ATHERIS: Final = (
    "atheris is not installed: mutants of the corpus by Hypothesis instead, "
    "without regard to the lines that they reach"
)


def main() -> int:
    """Fuzz the targets, each in a process of its own; return whether any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="default all")
    parser.add_argument("--minutes", type=float, default=60, help="for all together")
    parser.add_argument(
        "--write-corpus", action="store_true", help="add the seeds to the corpus"
    )
    parser.add_argument("--seconds", type=int, help=argparse.SUPPRESS)  # for ourselves
    options = parser.parse_args()
    has_atheris = importlib.util.find_spec("atheris") is not None
    if options.seconds is not None:
        fuzz = _by_coverage if has_atheris else _by_chance
        fuzz(options.targets[0], options.seconds)
        return 0
    from tests.fuzz.targets import TARGETS, write_corpus

    if options.write_corpus:
        write_corpus()
        return 0
    if not has_atheris:
        print(_WITHOUT_ATHERIS)
    names = options.targets or list(TARGETS)
    seconds = max(1, int(60 * options.minutes / len(names)))
    failed = [name for name in names if _in_a_process(name, seconds)]
    print(f"failed: {', '.join(failed)}" if failed else "nothing found")
    return int(bool(failed))


def _in_a_process(name: str, seconds: int) -> int:
    print(f"{name}, {seconds} s:", flush=True)
    command = (sys.executable, "-m", "tests.fuzz", name, "--seconds", str(seconds))
    # libFuzzer ends the process itself: what is left in here is removed by this one.
    with tempfile.TemporaryDirectory(prefix="nri-fuzz-") as scratch:
        environment = {**os.environ, "TMPDIR": scratch}
        return subprocess.run(command, check=False, env=environment).returncode


def _by_coverage(name: str, seconds: int) -> None:
    """Fuzz until the time is over, and end the process."""
    atheris: Any = importlib.import_module("atheris")  # which not every venv has
    with atheris.instrument_imports(include=list(_WATCHED)):
        from tests.fuzz.targets import CORPUS, TARGETS
    target = TARGETS[name]
    _be_quiet()
    slug = name.strip("/").replace("/", "-").replace(" ", "-")
    found = _WORK / slug
    found.mkdir(parents=True, exist_ok=True)
    limits = (f"-max_total_time={seconds}", f"-max_len={_LONGEST}", "-timeout=20")
    seeds = tempfile.mkdtemp()
    for number, seed in enumerate(target.seeds()):
        Path(seeds, str(number)).write_bytes(seed)
    folders = [str(found), seeds]
    if (CORPUS / name).is_dir():
        folders.append(str(CORPUS / name))
    where = f"-artifact_prefix={_WORK}/{slug}-"
    words = [*limits, where, "-verbosity=0", "-print_final_stats=1", *folders]
    atheris.Setup([sys.argv[0], *words], target.run)
    atheris.Fuzz()


def _by_chance(name: str, seconds: int) -> None:
    from hypothesis import Phase, given, seed, settings
    from hypothesis import strategies as st

    from tests.fuzz.drawn import mutants
    from tests.fuzz.targets import TARGETS, corpus_of

    target = TARGETS[name]
    _be_quiet()
    # Bytes are mutated as if each were a character.
    encoding = "utf-8" if target.is_text else "latin-1"
    inputs = [*target.seeds(), *corpus_of(name)]
    texts = tuple(one.decode(encoding, "replace") for one in inputs)
    end = time.monotonic() + seconds
    tried = 0

    def attempt(text: str) -> None:
        nonlocal tried
        tried += 1
        target.run(text.encode(encoding, "replace"))

    drawn = mutants(texts) | st.text(max_size=40)
    # Without a database: each round begins anywhere.
    how = settings(
        max_examples=200,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(_checks()),
        print_blob=True,
    )
    while time.monotonic() < end:
        seed(int.from_bytes(os.urandom(4)))(how(given(drawn)(attempt)))()
    print(f"{tried} inputs")


def _checks() -> Any:
    from hypothesis import HealthCheck

    return HealthCheck


def _be_quiet() -> None:
    import structlog

    # A line of the log for each mutant is of no use.
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # as in shells
