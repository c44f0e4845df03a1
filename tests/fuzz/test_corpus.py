"""The corpus of the fuzzer, and what it has found: all of it through all targets."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.command import ROOT
from tests.fuzz.targets import CORPUS, CORPUS_SIZE, FIVE, TARGETS, corpus_of

INPUTS = [(name, data) for name in FIVE for data in corpus_of(name)]


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_of_the_corpus_is_a_bug(name: str) -> None:
    # Those of the others, too: they are garbage of another kind.
    for _, data in INPUTS:
        TARGETS[name].run(data)


@pytest.mark.parametrize("name", FIVE)
def test_the_corpus_is_small_and_there(name: str) -> None:
    sizes = [len(data) for data in corpus_of(name)]

    assert len(sizes) >= 3
    assert sum(sizes) <= 2 * CORPUS_SIZE


def test_a_folder_belongs_to_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(FIVE)


@pytest.mark.process
@pytest.mark.timeout(600)
def test_a_second_of_each_way_of_fuzzing() -> None:
    hidden = "import sys; sys.modules['atheris'] = None; "
    run = "import runpy; runpy.run_module('tests.fuzz', run_name='__main__')"
    for before in ("", hidden):
        code = f"import sys; sys.argv[1:] = ['frames', '--seconds', '1']; {before}{run}"
        done = subprocess.run(
            (sys.executable, "-c", code),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stderr
