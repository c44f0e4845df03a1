"""Copies of lines: what they keep, what is lost, and whom they wake."""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.log import Logger
from nri_resmgr.log.copies import (
    BATCH,
    MOST_CHARACTERS,
    MOST_LINES,
    LineCopies,
    line_copies,
)

log = Logger("nri_resmgr.some.module")


class Number(enum.IntEnum):
    """Numbers with names."""

    SEVEN = 7


@contextmanager
def copying() -> Iterator[None]:
    line_copies.switch(is_on=True)
    try:
        yield
    finally:
        line_copies.stop()


def put(copies: LineCopies, number: int, text: str = "") -> None:
    copies.put("some.module", "info", "one", {"number": number, "text": text})


def batches(copies: LineCopies) -> Iterator[list[object]]:
    while taken := copies.take():
        yield [one.fields["number"] for one in taken]


def numbers(copies: LineCopies) -> list[object]:
    return [*chain.from_iterable(batches(copies))]


def fail() -> None:
    raise ValueError("no\x1bway")


def raised() -> Exception:
    try:
        fail()
    except ValueError as error:
        return error
    raise AssertionError


def test_a_line_is_copied_with_its_component_and_fields() -> None:
    with copying():
        log.warning("pod.seen", pod="a\nb", cpus=4, share=0.5, on=True, of=(1, 2))
        (line,) = line_copies.take()

    assert (line.component, line.level, line.event) == (
        "some.module",
        "warning",
        "pod.seen",
    )
    assert line.fields == {
        "pod": r"a\nb",
        "cpus": 4,
        "share": 0.5,
        "on": True,
        "of": "(1, 2)",
    }


def test_an_error_is_copied_with_its_traceback_of_several_lines() -> None:
    with copying():
        log.error("it.failed", exc_info=raised())
        log.error("it.failed", exc_info=None)
        with_error, without = line_copies.take()

    assert with_error.fields["exception.type"] == "ValueError"
    trace = str(with_error.fields["exception.stacktrace"]).splitlines()
    assert (trace[0], trace[-1]) == (
        "Traceback (most recent call last):",
        r"ValueError: no\x1bway",
    )
    assert without.fields == {}


def test_lines_that_are_not_logged_are_not_copied() -> None:
    with copying():
        log.info("one")
        assert line_copies.waiting == 1
    log.info("two")

    assert line_copies.waiting == 0


@pytest.mark.parametrize(
    ("number", "copied"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, str(2**63)),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        (Number.SEVEN, 7),
    ],
)
def test_numbers_beyond_64_bits_become_texts(number: int, copied: object) -> None:
    copies = LineCopies()
    put(copies, number)
    (line,) = copies.take()

    assert line.fields["number"] == copied


def test_a_field_without_a_text_loses_its_line_and_raises_nothing() -> None:
    class Textless:
        def __str__(self) -> str:
            raise MemoryError

    copies = LineCopies()
    copies.put("some.module", "info", "one", {"field": Textless()})

    assert (copies.waiting, copies.lost) == (0, 1)


def test_lines_of_the_reader_are_not_copied() -> None:
    copies = LineCopies()
    copies.read_by("some.reader", lambda: None)
    copies.put("some.reader", "info", "one", {})
    put(copies, 1)

    assert numbers(copies) == [1]


def test_a_reader_is_woken_by_a_first_line_and_by_a_batch() -> None:
    copies, woken = LineCopies(), list[int]()
    copies.read_by("some.reader", lambda: woken.append(copies.waiting))
    for number in range(BATCH + 5):
        put(copies, number)
    taken = [*batches(copies)]
    put(copies, 0)

    assert woken == [1, BATCH, 1]
    assert list(map(len, taken)) == [BATCH, 5]


def test_what_exceeds_the_number_of_lines_is_lost_and_counted() -> None:
    copies = LineCopies()
    for number in range(MOST_LINES + 3):
        put(copies, number)

    assert numbers(copies) == [*range(MOST_LINES)]
    assert copies.lost == 3


@given(
    st.lists(
        st.one_of(
            st.none(), st.sampled_from([1, MOST_CHARACTERS // 3, MOST_CHARACTERS])
        ),
        max_size=20,
    )
)
def test_texts_that_wait_are_bounded(steps: list[int | None]) -> None:
    copies, room = LineCopies(), MOST_CHARACTERS
    expected, lost = list[object](), 0
    for number, step in enumerate(steps):
        if step is None:
            assert numbers(copies) == expected
            expected, room = [], MOST_CHARACTERS
            continue
        put(copies, number, "x" * step)
        if (size := step + len("one")) <= room:
            expected.append(number)
            room -= size
        else:
            lost += 1

    assert numbers(copies) == expected
    assert copies.lost == lost


def test_threads_lose_no_line_and_none_comes_twice() -> None:
    copies = LineCopies()

    def put_all(start: int) -> None:
        for number in range(start, start + 100):
            put(copies, number)

    threads = [
        threading.Thread(target=put_all, args=(start,)) for start in range(0, 400, 100)
    ]
    for one in threads:
        one.start()
    found = list[object]()
    while any(one.is_alive() for one in threads):
        found += numbers(copies)
    for one in threads:
        one.join()
    found += numbers(copies)

    assert sorted(map(str, found)) == sorted(map(str, range(400)))
    assert copies.lost == 0
