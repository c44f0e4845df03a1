"""Expressions ask for words; manifests and books stay in the pod."""

from __future__ import annotations

from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.annotations.queryable import (
    LONGEST,
    MOST,
    PRIVATE,
    memory_of,
    queryable,
)

TEXTS = st.dictionaries(
    st.text(max_size=4) | st.sampled_from(sorted(PRIVATE)),
    st.text(max_size=4) | st.sampled_from(["x" * LONGEST, "x" * (LONGEST + 1)]),
    max_size=60,
)


@given(TEXTS)
def test_texts_that_fit_are_kept_once(texts: dict[str, str]) -> None:
    words = {k: v for k, v in texts.items() if len(v) <= LONGEST and k not in PRIVATE}
    fits = sum(memory_of(k, v) for k, v in words.items()) <= MOST

    found = queryable(texts)

    assert not fits or found == words
    assert queryable(dict(texts)) is found


@given(TEXTS)
def test_the_kept_texts_do_not_depend_on_their_order(texts: dict[str, str]) -> None:
    reverse = dict(reversed(texts.items()))

    assert queryable(texts) == queryable(reverse)
    assert sum(memory_of(k, v) for k, v in queryable(texts).items()) <= MOST


def test_the_kept_texts_cannot_be_changed() -> None:
    assert type(queryable(dict.fromkeys(PRIVATE, "hidden"))) is MappingProxyType
