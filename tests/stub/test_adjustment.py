"""Builders lead to the messages they promise and refuse contradictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.convert import to_message
from nri_resmgr.stub.errors import (
    DuplicateKey,
    EmptyText,
    InvalidKey,
    ReplyError,
)
from nri_resmgr.stub.fields import FIELDS, content_at
from nri_resmgr.stub.model import (
    Device,
    Hook,
    Hooks,
    LinuxContainerUpdate,
    Mount,
    Namespace,
    Rlimit,
)
from nri_resmgr.stub.update import ContainerUpdate
from tests.stub.adjustment_samples import ACCUMULATING, RESOURCES, SAMPLES, Call

NEW = ContainerAdjustment()


def printed(value: Any) -> dict[str, Any]:
    return MessageToDict(to_message(value), preserving_proto_field_name=True)


# Parts of the schema that the table looks into.
DIVIDED = {
    "LinuxContainerAdjustment",
    "LinuxResources",
    "LinuxMemory",
    "LinuxCPU",
    "LinuxRdt",
}


def schema_paths(message: Descriptor, prefix: str = "") -> Iterator[str]:
    for field in message.fields:
        path = f"{prefix}{field.name.lower()}"
        part = field.message_type
        if part is not None and part.name in DIVIDED:
            yield from schema_paths(part, f"{path}.")
        else:
            yield path


def test_samples_cover_all_public_methods() -> None:
    methods = {
        name
        for name in dir(ContainerAdjustment)
        if name.startswith(("set_", "add_", "remove_", "replace_"))
    }

    assert methods == SAMPLES.keys()


@pytest.mark.parametrize("method", SAMPLES)
def test_a_method_leads_to_its_message(method: str) -> None:
    call, expected = SAMPLES[method]

    assert printed(call(NEW)) == expected
    assert ContainerAdjustment() == NEW


@pytest.mark.parametrize("method", RESOURCES)
def test_an_update_has_the_same_setters_for_resources(method: str) -> None:
    call, expected = RESOURCES[method]
    update: Any = ContainerUpdate("c1")

    assert printed(call(update)) == {
        "container_id": "c1",
        "linux": {"resources": expected},
    }


@pytest.mark.parametrize("method", sorted(SAMPLES.keys() - ACCUMULATING))
def test_a_second_call_is_a_contradiction(method: str) -> None:
    call, _ = SAMPLES[method]

    with pytest.raises(DuplicateKey):
        call(call(NEW))


@pytest.mark.parametrize("method", sorted(ACCUMULATING))
def test_hooks_and_device_rules_accumulate(method: str) -> None:
    call, _ = SAMPLES[method]
    once, twice = printed(call(NEW)), printed(call(call(NEW)))

    assert repr(twice).count("'/h'") == 2 * repr(once).count("'/h'")
    assert repr(twice).count("'allow'") == 2 * repr(once).count("'allow'")


def test_hooks_keep_the_order_of_the_calls() -> None:
    first, second = Hook("/1"), Hook("/2")
    adjustment = NEW.add_hooks(Hooks(poststop=(first,))).add_hooks(
        Hooks(prestart=(first,), poststop=(second,))
    )

    assert adjustment.hooks == Hooks(prestart=(first,), poststop=(first, second))


def test_different_keys_and_fields_go_together() -> None:
    adjustment = (
        NEW.set_env("A", "1").set_env("B", "2").set_cpus("0").set_mems("1")
    ).remove_env("C")

    assert printed(adjustment) == {
        "env": [{"key": "A", "value": "1"}, {"key": "B", "value": "2"}, {"key": "-C"}],
        "linux": {"resources": {"cpu": {"cpus": "0", "mems": "1"}}},
    }


def test_settings_of_resctrl_may_follow_its_removal() -> None:
    adjustment = NEW.remove_rdt().set_rdt_clos_id("gold")

    assert printed(adjustment) == {
        "linux": {"rdt": {"remove": True, "clos_id": {"value": "gold"}}}
    }


KEYED: dict[str, Any] = {
    "set_annotation": lambda key: NEW.set_annotation(key, "v"),
    "remove_annotation": NEW.remove_annotation,
    "set_env": lambda key: NEW.set_env(key, "v"),
    "remove_env": NEW.remove_env,
    "set_mount": lambda key: NEW.set_mount(Mount(key)),
    "remove_mount": NEW.remove_mount,
    "set_rlimit": lambda key: NEW.set_rlimit(Rlimit(key)),
    "add_cdi_device": NEW.add_cdi_device,
    "set_device": lambda key: NEW.set_device(Device(key)),
    "remove_device": NEW.remove_device,
    "set_namespace": lambda key: NEW.set_namespace(Namespace(key)),
    "remove_namespace": NEW.remove_namespace,
    "set_sysctl": lambda key: NEW.set_sysctl(key, "v"),
    "remove_sysctl": NEW.remove_sysctl,
    "set_net_device": NEW.set_net_device,
    "remove_net_device": NEW.remove_net_device,
    "set_hugepage_limit": lambda key: NEW.set_hugepage_limit(key, 1),
    "set_unified": lambda key: NEW.set_unified(key, "1"),
}


@pytest.mark.parametrize("method", KEYED)
@pytest.mark.parametrize("key", ["", "-x"])
def test_a_key_is_neither_empty_nor_a_mark(method: str, key: str) -> None:
    with pytest.raises(InvalidKey) as caught:
        KEYED[method](key)

    assert caught.value.key == key


@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param(
            lambda a: a.set_cpus(""),
            EmptyText("linux.resources.cpu.cpus"),
            id="no CPUs",
        ),
        pytest.param(
            lambda a: a.set_mems(""),
            EmptyText("linux.resources.cpu.mems"),
            id="no nodes",
        ),
        pytest.param(
            lambda a: a.set_cgroups_path(""),
            EmptyText("linux.cgroups_path"),
            id="no path",
        ),
        pytest.param(lambda a: a.set_args([]), EmptyText("args"), id="no command"),
        pytest.param(
            lambda a: a.set_args(["", "sh"]),
            InvalidKey("args", ""),
            id="a first word that is the mark of replacement",
        ),
    ],
)
def test_ambiguous_arguments_are_refused(call: Call, error: ReplyError) -> None:
    with pytest.raises(type(error)) as caught:
        call(NEW)

    assert str(caught.value) == str(error)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda a: a.set_args("sh"), id="arguments"),
        pytest.param(lambda a: a.replace_args("sh"), id="arguments taken over"),
        pytest.param(lambda a: a.set_rdt_schemata("sh"), id="schemata"),
    ],
)
def test_a_bare_string_is_not_a_list_of_letters(call: Call) -> None:
    with pytest.raises(TypeError, match="expected several strings, got one: 'sh'"):
        call(NEW)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_the_table_names_the_field_of_each_setter(field: Any) -> None:
    call, _ = SAMPLES[field.setter]
    found = [row.path for row in FIELDS if content_at(call(NEW), row.path) is not None]

    assert found == [field.path]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_the_level_is_that_of_the_field(field: Any) -> None:
    call, _ = SAMPLES[field.setter]

    assert call(NEW).needs_level == field.level


def test_the_table_has_every_field_of_the_schema() -> None:
    schema = nri_pb2.DESCRIPTOR.message_types_by_name["ContainerAdjustment"]
    paths = set(schema_paths(schema))

    # A removal of resctrl is a mark and no field of its own.
    assert {field.path for field in FIELDS} == paths - {"linux.rdt.remove"}


@pytest.mark.parametrize(
    ("change", "level"),
    [
        pytest.param(NEW, NriLevel(0, 2), id="nothing"),
        pytest.param(NEW.set_mount(Mount("/m")), NriLevel(0, 2), id="a mount"),
        pytest.param(NEW.remove_mount("/m"), NriLevel(0, 7), id="a removed mount"),
        pytest.param(NEW.remove_rdt(), NriLevel(0, 11), id="no resctrl"),
        pytest.param(
            NEW.set_args(["sh"]).set_cpus("0").set_oom_score_adj(0),
            NriLevel(0, 10),
            id="the newest of several fields",
        ),
        pytest.param(
            ContainerUpdate("c1").set_pids_limit(0), NriLevel(0, 7), id="an update"
        ),
        pytest.param(
            ContainerUpdate("c1", LinuxContainerUpdate()),
            NriLevel(0, 2),
            id="an empty update",
        ),
    ],
)
def test_the_level_is_the_newest_that_is_needed(change: Any, level: NriLevel) -> None:
    assert change.needs_level == level


def test_an_update_may_ignore_its_failure() -> None:
    update = ContainerUpdate("c1").ignoring_failure()

    assert printed(update) == {"container_id": "c1", "ignore_failure": True}
