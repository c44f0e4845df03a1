"""A map with very many entries is read when it is looked at, and equals any other."""

from __future__ import annotations

import pytest

from nri_proto import nri_pb2 as pb
from nri_resmgr.stub.convert import LARGE_MAP, LargeMap, from_message, to_message

LABELS = {f"key-{number}": str(number) for number in range(LARGE_MAP + 1)}


def test_a_large_map_has_the_entries_of_the_message() -> None:
    pod = from_message(pb.PodSandbox(labels=LABELS))

    assert isinstance(pod.labels, LargeMap)
    assert pod.labels == LABELS
    assert repr(pod.labels) == repr(dict(pod.labels))


def test_looking_for_a_missing_key_changes_nothing() -> None:
    labels = from_message(pb.PodSandbox(labels=LABELS)).labels

    assert labels.get("missing") is None
    with pytest.raises(KeyError):
        labels["missing"]
    assert len(labels) == len(LABELS)


def test_a_large_map_is_written_as_it_was() -> None:
    message = pb.PodSandbox(id="p1", labels=LABELS)

    assert to_message(from_message(message)) == message


def test_values_that_are_messages_are_converted() -> None:
    devices = {name: pb.LinuxNetDevice(name=name) for name in LABELS}
    container = pb.Container(linux=pb.LinuxContainer(net_devices=devices))

    linux = from_message(container).linux

    assert linux is not None
    assert linux.net_devices["key-7"].name == "key-7"
