"""What is read of pods at the start of a session, all at once."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.observers.after_reply import Steps
from nri_resmgr.app.observers.observer import DecisionObserver, PolicyDecision
from nri_resmgr.app.plugin.changes.reconfiguration import reconfigure
from nri_resmgr.app.plugin.reading_budget import MOST_READ_IN_ALL
from nri_resmgr.app.plugin.reduced import MOST_READ, reduced_pod
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.requests import LONGEST_REQUESTS
from nri_resmgr.policy.events import Event
from nri_resmgr.stub import Container, Pod
from nri_resmgr.topology.synthetic import parse_spec

OURS = "resource-policy.nri.io"
WEBHOOK = "noderesource.dev/resources"
MANY = {f"k{number:03}.{OURS}/pod": "x" for number in range(1000)}


def read_of(annotations: Mapping[str, str]) -> tuple[Mapping[str, str], list[object]]:
    """Return what is kept of annotations, and the first ones of those logged."""
    with capture_logs() as lines:
        pod = reduced_pod(Pod(id="p", annotations=annotations))
    unread = [line["first"] for line in lines if line["event"] == "annotations.unread"]
    kept = {key: text for key, text in pod.annotations.items() if key in annotations}
    return kept, unread


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({f"{OURS}/affinity": "x" * MOST_READ}, id="one"),
        pytest.param(dict.fromkeys(list(MANY)[:64], "x"), id="many"),
        pytest.param(
            {f"{OURS}/affinity": "x" * MOST_READ, WEBHOOK: "x" * LONGEST_REQUESTS},
            id="beside those of a webhook",
        ),
    ],
)
def test_annotations_up_to_the_limit_are_read(annotations: Mapping[str, str]) -> None:
    assert read_of(annotations) == (annotations, [])


def test_a_long_annotation_is_logged_and_does_not_hide_shorter_ones() -> None:
    long, short = f"affinity.{OURS}/pod", f"cpu.preserve.{OURS}/pod"
    kept, unread = read_of({long: "x" * (MOST_READ + 1), short: "true"})

    assert (kept, unread) == ({short: "true"}, [long])


def test_of_many_annotations_the_first_are_read() -> None:
    # Some more are short enough for expressions.
    long = dict.fromkeys(MANY, "x" * 600) | {f"z.{OURS}/pod": "true"}
    kept, unread = read_of(long)

    assert list(kept) == list(MANY)[: MOST_READ // 600]
    assert unread == [list(MANY)[MOST_READ // 600]]


def test_too_long_requests_are_not_kept() -> None:
    assert read_of({WEBHOOK: "x" * (LONGEST_REQUESTS + 1)}) == ({}, [])


def hostile_node(pods: int, containers: int) -> tuple[list[Pod], list[Container]]:
    """Pods with the longest annotations that are read of one pod."""
    long = {f"{OURS}/affinity": "c0: [" + "a," * (MOST_READ // 2 - 4) + "]"}
    return (
        [Pod(id=f"p{at}", name=f"p{at}", annotations=long) for at in range(pods)],
        [
            # In an order that mixes them, as runtimes do.
            Container(id=f"p{at}c{n}", pod_sandbox_id=f"p{at}", name=f"c{n}")
            for n in range(containers)
            for at in range(pods)
        ],
    )


def with_affinity(policy: ResourcePolicy) -> dict[str, int]:
    """Count the containers with preferences, by their pods."""
    found = [entry.spec for entry in policy.state.ledger.entries.values()]
    return Counter(one.pod for one in found if one.preferences.affinities)


@pytest.mark.usefixtures("thawed")
def test_of_all_pods_together_no_more_is_read_than_fits() -> None:
    pods, containers = hostile_node(20, 50)
    small = Pod(id="z", name="z", annotations={f"{OURS}/affinity": "c0: [c1]"})
    neighbours = [Container(id=n, pod_sandbox_id="z", name=n) for n in ("c0", "c1")]
    policy = ResourcePolicy(parse_spec("1s2c1t"))
    with capture_logs() as lines:
        policy.synchronize([*pods, small], [*containers, *neighbours])
    unread = {x["pod"] for x in lines if x["event"] == "annotations.unread"}
    read = with_affinity(policy)

    # c0 of each pod has rules, and of the small one its neighbour as well.
    assert read.pop("z") == 2
    assert 0 < len(read) * 50 * MOST_READ <= MOST_READ_IN_ALL
    assert unread == {f"/{pod.name}" for pod in pods if pod.id not in read}


@pytest.mark.usefixtures("thawed")
def test_known_annotations_are_not_counted_again() -> None:
    pods, containers = hostile_node(1, 60)
    policy = ResourcePolicy(parse_spec("1s2c1t"))
    policy.synchronize(pods, containers)
    more = [Container(id=f"q{n}", pod_sandbox_id="q", name="c0") for n in range(60)]
    pods.append(Pod(id="q", annotations=pods[0].annotations))
    policy.synchronize(pods, [*containers, *more])

    assert with_affinity(policy) == {"p0": 1, "q": 60}


@pytest.mark.usefixtures("thawed")
def test_requests_of_a_webhook_are_read_once_for_each_pod() -> None:
    pods = [Pod(id=f"p{at}", annotations={WEBHOOK: "{"}) for at in range(20)]
    _, containers = hostile_node(20, 5)
    with capture_logs() as lines:
        ResourcePolicy(parse_spec("1s2c1t")).synchronize(pods, containers)

    assert [x["event"] for x in lines].count("requests.unreadable") == 20


class Keeper(DecisionObserver):
    """Keeps an object for each step."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def decided(self, _event: Event, _decision: PolicyDecision) -> Steps:
        return self._steps()

    def _steps(self) -> Iterator[None]:
        for _ in range(10):
            self.kept.append([object()])
            yield


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_the_collector_skips_what_observers_keep_of_a_node() -> None:
    keeper = Keeper()
    policy = ResourcePolicy(parse_spec("1s2c1t"), observers=[keeper])
    policy.synchronize([Pod(id="p")], [Container(id="c", pod_sandbox_id="p")])
    looked_at = {id(one) for one in gc.get_objects()}

    assert len(keeper.kept) == 10
    assert not looked_at.intersection(map(id, keeper.kept))


@pytest.mark.usefixtures("thawed")
def test_the_collector_tracks_what_observers_keep_of_a_change() -> None:
    keeper = Keeper()
    policy = ResourcePolicy(parse_spec("1s2c1t"), observers=[keeper])
    reconfigure(policy, policy.config)
    looked_at = {id(one) for one in gc.get_objects()}

    assert looked_at.issuperset(map(id, keeper.kept))
