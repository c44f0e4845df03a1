"""Whatever is desired, and wherever it is cut off: what is not desired is as it was."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.host.knobs.journal import KnobJournal
from nri_resmgr.host.knobs.knobs import Knobs
from nri_resmgr.host.state_dir import StateDir
from tests.host.knob_kernel import (
    DEFAULT,
    GOVERNOR,
    IRQ,
    MAX,
    MIN,
    STEP,
    Died,
    Kernel,
    Mortal,
    MortalFiles,
    mortal_state,
    raised,
)

FREQUENCIES = st.integers(4, 40).map(lambda tens: tens * 25)
LISTS = st.sampled_from(["0", "0-3", "0,1,2,3", "1,3", "2-3"])
MASKS = st.sampled_from(["f", "0000000f", "00000000,00000003", "c"])
GOVERNORS = st.sampled_from(["performance", "powersave", "schedutil"])


@st.composite
def limits(draw: st.DrawFn) -> dict[str, str]:
    low, high = sorted((draw(FREQUENCIES), draw(FREQUENCIES)))
    pair = {MIN: str(low), MAX: str(high)}
    return dict(draw(st.permutations(list(pair.items()))))


def rounded(files: Mapping[str, str]) -> dict[str, str]:
    return {
        path: str(int(text) // STEP * STEP) if path in (MIN, MAX) else text
        for path, text in files.items()
    }


@st.composite
def mappings(draw: st.DrawFn, *, whole: bool = False) -> dict[str, str]:
    parts = [
        draw(limits()),
        {GOVERNOR: draw(GOVERNORS)},
        {IRQ: draw(LISTS)},
        {DEFAULT: draw(MASKS)},
    ]
    kept = parts if whole else draw(st.lists(st.sampled_from(parts), unique_by=id))
    return {path: text for part in kept for path, text in part.items()}


def meaning(files: Mapping[str, str]) -> dict[str, object]:
    """Sets of CPUs as sets, by arithmetic of this test's own."""
    found: dict[str, object] = dict(files)
    if IRQ in files:
        ends = [part.split("-") for part in files[IRQ].split(",")]
        found[IRQ] = {n for e in ends for n in range(int(e[0]), int(e[-1]) + 1)}
    if DEFAULT in files:
        found[DEFAULT] = int(files[DEFAULT].replace(",", ""), 16)
    return found


STEPS = st.lists(
    st.tuples(mappings(), st.integers(-1, 12), st.booleans()), min_size=1, max_size=5
)


@given(mappings(whole=True).map(rounded), STEPS)
def test_after_any_crashes_an_empty_mapping_gives_the_original_files(
    originals: dict[str, str], steps: list[tuple[dict[str, str], int, bool]]
) -> None:
    kernel = Kernel(dict(originals))
    with tempfile.TemporaryDirectory() as folder:
        for desired, left, is_late in steps:
            mortal = Mortal(left, is_late, raised)
            state = mortal_state(folder, mortal)
            try:
                knobs = Knobs(MortalFiles(kernel, mortal), KnobJournal(state, "boot"))
                report = knobs.apply(desired)
            except Died:
                state.close()
                continue
            state.close()
            assert report.failed == ()
            assert meaning(kernel.files) == meaning(originals | rounded(desired))
        state_dir = StateDir.open(folder)
        knobs = Knobs(kernel, KnobJournal(state_dir, "boot"))
        report = knobs.apply({})
        left_over = state_dir.read("host-changes")
        state_dir.close()

    assert meaning(kernel.files) == meaning(originals)
    assert (report.failed, left_over) == ((), None)


@given(mappings(whole=True).map(rounded), st.lists(mappings(), min_size=1, max_size=6))
def test_only_changed_files_are_written(
    originals: dict[str, str], wishes: list[dict[str, str]]
) -> None:
    kernel = Kernel(dict(originals))  # which takes no value that it has already
    with tempfile.TemporaryDirectory() as folder:
        state = StateDir.open(folder)
        knobs = Knobs(kernel, KnobJournal(state, "boot"))
        for desired in wishes:
            knobs.apply(desired)
            writes = len(kernel.writes)
            again = knobs.apply(dict(desired))

            assert meaning(kernel.files) == meaning(originals | rounded(desired))
            assert len(kernel.writes) == writes
            assert (again.written, again.failed) == ((), ())
            assert knobs.verify(desired) == ()
            assert knobs.originals.keys() == desired.keys()
        state.close()
