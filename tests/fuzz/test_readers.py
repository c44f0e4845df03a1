"""Whatever others write is read, or refused in a sentence of ours: nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.values import ResmgrError
from tests.fuzz.drawn import mutants
from tests.fuzz.readers import READERS


@pytest.mark.parametrize("name", READERS)
@given(st.data())
def test_it_is_read_or_refused(name: str, data: st.DataObject) -> None:
    reader = READERS[name]
    text = data.draw(mutants(tuple(reader.samples())) | st.text(max_size=40))

    with contextlib.suppress(ResmgrError):
        reader.read(text)
