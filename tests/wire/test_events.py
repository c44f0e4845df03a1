"""Events, their bits, and masks as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_proto import (
    ALL_EVENTS,
    PLUGIN_METHODS,
    STATE_CHANGES,
    Event,
    events_of,
    mask_of,
    nri_pb2,
    parse_mask,
)
from tests.wire.streams import unhurried


def test_bits_and_names_are_those_of_nri() -> None:
    assert [(event.method, event.bit) for event in Event] == [
        ("RunPodSandbox", 0x0001),
        ("StopPodSandbox", 0x0002),
        ("RemovePodSandbox", 0x0004),
        ("CreateContainer", 0x0008),
        ("PostCreateContainer", 0x0010),
        ("StartContainer", 0x0020),
        ("PostStartContainer", 0x0040),
        ("UpdateContainer", 0x0080),
        ("PostUpdateContainer", 0x0100),
        ("StopContainer", 0x0200),
        ("RemoveContainer", 0x0400),
        ("UpdatePodSandbox", 0x0800),
        ("PostUpdatePodSandbox", 0x1000),
        ("ValidateContainerAdjustment", 0x2000),
    ]


def test_the_events_are_the_schemas_without_its_sentinels() -> None:
    assert {event.name: event.value for event in Event} == {
        name: number
        for name, number in nri_pb2.Event.items()
        if name not in ("UNKNOWN", "LAST")
    }


def test_every_event_is_a_method_of_the_plugin_service() -> None:
    unsubscribable = {"Configure", "Synchronize", "Shutdown", "StateChange"}

    assert {event.method for event in Event} == PLUGIN_METHODS.keys() - unsubscribable


def test_nine_events_come_as_state_changes_in_old_runtimes() -> None:
    assert {
        Event.RUN_POD_SANDBOX,
        Event.STOP_POD_SANDBOX,
        Event.REMOVE_POD_SANDBOX,
        Event.POST_CREATE_CONTAINER,
        Event.START_CONTAINER,
        Event.POST_START_CONTAINER,
        Event.POST_UPDATE_CONTAINER,
        Event.REMOVE_CONTAINER,
        Event.POST_UPDATE_POD_SANDBOX,
    } == STATE_CHANGES


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        pytest.param("all", 0x3FFF, id="all"),
        pytest.param("pod", 0x1807, id="pod"),
        pytest.param("podsandbox", 0x1807, id="podsandbox means pod"),
        pytest.param("container", 0x27F8, id="container holds the validation, too"),
        pytest.param("CreateContainer", 0x8, id="one event"),
        pytest.param("createCONTAINER", 0x8, id="in any case"),
        pytest.param("POD,All", 0x3FFF, id="groups in any case"),
        pytest.param(" RunPodSandbox ,\tStopContainer", 0x201, id="space around"),
        pytest.param("StopContainer,StopContainer", 0x200, id="twice is once"),
        pytest.param("pod,CreateContainer", 0x180F, id="a group and an event"),
        pytest.param("", 0, id="nothing"),
        pytest.param(" , ,", 0, id="commas alone"),
    ],
)
def test_masks_as_users_write_them(text: str, mask: int) -> None:
    assert parse_mask(text) == mask


@pytest.mark.parametrize(
    ("text", "word"),
    [
        pytest.param("Create", "Create", id="half a name"),
        pytest.param("pod,Configure", "Configure", id="a call without a bit"),
        pytest.param("CREATE_CONTAINER", "CREATE_CONTAINER", id="the schema's name"),
        pytest.param("0x7ff", "0x7ff", id="a number"),
        pytest.param("pod container", "pod container", id="a missing comma"),
    ],
)
def test_an_unknown_word_is_reported_with_those_that_are_known(
    text: str, word: str
) -> None:
    known = ", ".join(
        ["all", "pod", "podsandbox", "container", *(event.method for event in Event)]
    )

    with pytest.raises(ValueError, match="unknown event") as raised:
        parse_mask(text)

    assert str(raised.value) == f"unknown event {word!r}; known are {known}"


@unhurried
@given(st.lists(st.sampled_from(Event)))
def test_masks_split_into_their_events(events: list[Event]) -> None:
    assert events_of(mask_of(events)) == tuple(sorted(set(events)))
    assert parse_mask(",".join(event.method for event in events)) == mask_of(events)


@unhurried
@given(st.integers(0, 2**31 - 1))
def test_bits_of_no_event_are_left_out(mask: int) -> None:
    assert mask_of(events_of(mask)) == mask & 0x3FFF == mask & ALL_EVENTS
