"""How often a container is repaired, and when that is abandoned."""

from __future__ import annotations

from collections.abc import Iterable

from nri_resmgr.app.background.repairs import FORGIVEN, MOST_ATTEMPTS, Repairs

PAUSE = 60.0


class Sent:
    """Records the containers to update."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, containers: Iterable[str]) -> None:
        """See `nri_resmgr.app.running.delivery.PinDelivery.send`."""
        self.calls.append(list(containers))


def given_up_at(times: Iterable[float]) -> tuple[Repairs, Sent]:
    sent = Sent()
    repairs = Repairs(sent, PAUSE)
    for now in times:
        repairs.repair(["a"], now)
    return repairs, sent


def test_between_two_attempts_there_is_a_pause() -> None:
    _, sent = given_up_at([0.0, PAUSE / 2, PAUSE])

    assert sent.calls == [["a"], ["a"]]


def test_after_a_few_attempts_it_is_abandoned() -> None:
    times = [number * PAUSE for number in range(MOST_ATTEMPTS)]
    repairs, sent = given_up_at(times)
    at_last = repairs.repair(["a"], 100 * PAUSE)
    later = repairs.repair(["a"], 200 * PAUSE)

    assert (at_last, later) == ((("a",), False), ((), False))
    assert (len(sent.calls), repairs.sent, repairs.abandoned) == (5, 5, 1)
    assert repairs.is_abandoned("a")


def test_after_a_long_time_without_drift_attempts_start_at_zero() -> None:
    repairs, _ = given_up_at([0.0])
    repairs.well("a", 1.0)
    repairs.well("a", FORGIVEN)
    not_yet = repairs.attempts_of("a")
    repairs.well("a", 1.0 + FORGIVEN)

    assert (not_yet, repairs.attempts_of("a")) == (1, 0)


def test_drift_in_between_restarts_the_time() -> None:
    repairs, _ = given_up_at([0.0])
    repairs.well("a", 1.0)
    repairs.repair(["a"], 2.0)
    repairs.well("a", 3.0)
    repairs.well("a", 1.0 + FORGIVEN)

    assert repairs.attempts_of("a") == 1


def test_containers_with_fewer_attempts_go_first() -> None:
    sent = Sent()
    repairs = Repairs(sent)
    for now in (0.0, 1.0):
        repairs.repair(["a"], now)
    repairs.repair(["a", "b"], 2.0)

    assert sent.calls[-1] == ["b", "a"]


def test_only_updates_by_the_runtime_are_limited() -> None:
    sent = Sent()
    repairs = Repairs(sent, PAUSE, 2, lambda key: key.startswith("runtime"))
    keys = [f"{way}-{number}" for number in range(3) for way in ("runtime", "cgroup")]
    rounds = [repairs.repair(keys, now) for now in (0.0, 1.0)]

    assert rounds == [((), True), ((), False)]
    assert sent.calls == [
        ["runtime-0", "cgroup-0", "runtime-1", "cgroup-1", "cgroup-2"],
        ["runtime-2"],
    ]


def test_nothing_is_kept_of_removed_containers() -> None:
    repairs, _ = given_up_at([0.0])
    repairs.keep_only(["b"])

    assert repairs.attempts_of("a") == 0
