from __future__ import annotations

import pytest

from tests.real_host.retries import with_retries


def test_a_call_that_fails_twice_is_tried_a_third_time() -> None:
    answers = iter([None, None, "all of it"])

    def fetch() -> str:
        if (answer := next(answers)) is None:
            raise ConnectionError
        return answer

    assert with_retries(fetch, OSError, (0.0, 0.0)) == "all of it"


def test_the_last_failure_is_reported() -> None:
    failures = iter(["first", "second", "third"])

    def fetch() -> None:
        raise ConnectionError(next(failures))

    with pytest.raises(ConnectionError, match="second"):
        with_retries(fetch, OSError, (0.0,))


def test_other_errors_are_not_tried_again() -> None:
    calls: list[None] = []

    def fetch() -> None:
        calls.append(None)
        raise KeyError("odd")

    with pytest.raises(KeyError, match="odd"):
        with_retries(fetch, OSError, (0.0,))
    assert len(calls) == 1
