"""Laws of the ledger: its index by pod and slot finds the same as a full scan."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.policy.events import NO_PIN, ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry, Ledger
from nri_resmgr.values import CpuSet

IDS = "abcdef"
PODS = ("web", "db")

SPECS = st.builds(
    ContainerSpec,
    id=st.sampled_from(IDS),
    pod=st.sampled_from(PODS),
    slot=st.sampled_from(("", "main", "sidecar")),
)
PINS = st.builds(
    Pin,
    cpus=st.integers(0, 3).map(CpuSet),
    shares=st.sampled_from((0, 2, 1024)),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(SPECS, PINS), st.lists(st.sampled_from(IDS), max_size=2).map(tuple)
    ),
    max_size=12,
)


def history(steps: list[tuple[object, ...]]) -> tuple[Ledger, dict[str, Entry]]:
    """Put and drop entries in a ledger and in a plain dictionary."""
    ledger, plain = Ledger.of(), dict[str, Entry]()
    for step in steps:
        match step:
            case (ContainerSpec() as spec, Pin() as sent):
                ledger = ledger.put(spec, sent)
                plain[spec.id] = Entry(spec, sent)
            case gone:
                ids = [str(one) for one in gone]
                ledger = ledger.drop(*ids)
                plain = {key: one for key, one in plain.items() if key not in ids}
    return ledger, plain


@given(STEPS)
def test_a_ledger_holds_what_was_put_last_and_not_dropped(
    steps: list[tuple[object, ...]],
) -> None:
    ledger, plain = history(steps)

    assert list(ledger.entries.items()) == list(plain.items())


@given(STEPS)
def test_a_pod_has_the_containers_that_name_it(steps: list[tuple[object, ...]]) -> None:
    ledger, plain = history(steps)

    found = {pod: set(ledger.in_pod(pod)) for pod in PODS}

    assert found == {
        pod: {key for key, one in plain.items() if one.spec.pod == pod} for pod in PODS
    }
    assert set(ledger.pods) == {one.spec.pod for one in plain.values()}


@given(STEPS, SPECS)
def test_the_same_id_and_the_same_slot_of_a_pod_come_before(
    steps: list[tuple[object, ...]], spec: ContainerSpec
) -> None:
    ledger, plain = history(steps)

    found = ledger.preceding(spec)

    slots = {
        key
        for key, one in plain.items()
        if spec.slot and (one.spec.pod, one.spec.slot) == (spec.pod, spec.slot)
    }
    assert sorted(found) == sorted(slots | ({spec.id} & plain.keys()))


@given(STEPS, st.dictionaries(st.sampled_from(IDS), PINS))
def test_settling_reports_each_what_differs_and_remembers_it(
    steps: list[tuple[object, ...]], wishes: dict[str, Pin]
) -> None:
    ledger, plain = history(steps)
    wanted = {key: pin for key, pin in wishes.items() if key in plain}

    after, updates = ledger.settle(wanted)

    news = {key: pin.since(plain[key].last_sent) for key, pin in wanted.items()}
    assert [(one.container, one.pin) for one in updates] == [
        (key, pin) for key, pin in news.items() if pin != NO_PIN
    ]
    sent = {key: pin.over(plain[key].last_sent) for key, pin in wanted.items()}
    assert dict(after.entries) == plain | {
        key: Entry(plain[key].spec, pin) for key, pin in sent.items()
    }
    assert after.settle(wanted) == (after, ())
