"""One plugin's adjustment goes through; two plugins conflict or take over."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.testing.errors import FieldConflict, UpdateDuringCreation
from nri_resmgr.testing.merge import CreationMerge
from tests.test_runtime.adjustments import KINDS

NOTED = 'id: "c0" annotations { key: "note" value: "x" } '
CONTAINER = NOTED + 'env: "HOME=/" env: "TERM=x" mounts { destination: "/data" }'


def container(text: str = CONTAINER) -> nri_pb2.Container:
    return text_format.Parse(text, nri_pb2.Container())


def adjustment(text: str) -> nri_pb2.ContainerAdjustment:
    return text_format.Parse(text, nri_pb2.ContainerAdjustment())


def reply(text: str) -> nri_pb2.CreateContainerResponse:
    return nri_pb2.CreateContainerResponse(adjust=adjustment(text))


def merge(*replies: str, level: NriLevel | None = None) -> CreationMerge:
    """Merge replies of the plugins 00-p, 01-p and so on."""
    merged = (
        CreationMerge(container())
        if level is None
        else CreationMerge(container(), level)
    )
    for number, text in enumerate(replies):
        merged.apply(f"{number:02}-p", reply(text))
    return merged


EACH_KIND = pytest.mark.parametrize(
    ("text", "field"), KINDS.values(), ids=[name.replace("/", "") for name in KINDS]
)


@EACH_KIND
def test_the_adjustment_of_a_single_plugin_is_unchanged(text: str, field: str) -> None:
    merged = merge(text)

    assert merged.adjustment == adjustment(text)


@EACH_KIND
def test_two_plugins_cannot_set_the_same(text: str, field: str) -> None:
    with pytest.raises(FieldConflict) as conflict:
        merge(text, text)

    assert str(conflict.value) == (
        f'plugins "01-p" and "00-p" both tried to set {field}'
    )


@EACH_KIND
def test_a_plugin_is_in_conflict_with_itself(text: str, field: str) -> None:
    merged = CreationMerge(container())
    merged.apply("00-p", reply(text))

    with pytest.raises(FieldConflict):
        merged.apply("00-p", reply(text))


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        pytest.param(
            'annotations { key: "k" value: "1" }',
            'annotations { key: "k" value: "2" } annotations { key: "-k" }',
            'annotations { key: "k" value: "2" } annotations { key: "-k" }',
            id="an annotation, whose mark stays",
        ),
        pytest.param(
            'env { key: "A" value: "1" }',
            'env { key: "A" value: "2" } env { key: "-A" }',
            'env { key: "A" value: "2" }',
            id="a variable",
        ),
        pytest.param(
            'mounts { destination: "/m" source: "/1" }',
            'mounts { destination: "-/m" } mounts { destination: "/m" source: "/2" }',
            'mounts { destination: "/m" source: "/2" }',
            id="a mount",
        ),
        pytest.param(
            'linux { devices { path: "/d" major: 1 } }',
            'linux { devices { path: "-/d" } devices { path: "/d" major: 2 } }',
            'linux { devices { path: "/d" major: 2 } }',
            id="a device",
        ),
        pytest.param(
            'linux { sysctl { key: "a" value: "1" } }',
            'linux { sysctl { key: "a" value: "2" } sysctl { key: "-a" } }',
            'linux { sysctl { key: "a" value: "2" } sysctl { key: "-a" } }',
            id="a sysctl, whose mark stays",
        ),
        pytest.param(
            'linux { net_devices { key: "e" value { name: "1" } } }',
            'linux { net_devices { key: "e" value { name: "2" } }'
            ' net_devices { key: "-e" value { } } }',
            'linux { net_devices { key: "e" value { name: "2" } }'
            ' net_devices { key: "-e" value { } } }',
            id="a net device, whose mark stays",
        ),
        pytest.param('args: "a"', 'args: "" args: "b"', 'args: "b"', id="arguments"),
        pytest.param(
            'linux { rdt { clos_id { value: "a" } schemata { value: "x" } } }',
            'linux { rdt { remove: true clos_id { value: "b" } } }',
            'linux { rdt { remove: true clos_id { value: "b" } } }',
            id="all of RDT",
        ),
    ],
)
def test_a_plugin_takes_over_fields_that_it_removes_first(
    first: str, second: str, result: str
) -> None:
    merged = merge(first, second)

    assert merged.adjustment == adjustment(result)


@pytest.mark.parametrize(
    ("text", "result", "view"),
    [
        pytest.param(
            'env { key: "-TERM" }',
            "",
            NOTED + 'env: "HOME=/" mounts { destination: "/data" }',
            id="a variable's gets lost",
        ),
        pytest.param(
            'linux { devices { path: "-/dev/x" } }',
            "",
            None,
            id="a device's too",
        ),
        pytest.param(
            'mounts { destination: "-/data" }',
            'mounts { destination: "-/data" }',
            NOTED + 'env: "HOME=/" env: "TERM=x"',
            id="a mount's goes through",
        ),
        pytest.param(
            'annotations { key: "-note" }',
            'annotations { key: "-note" }',
            CONTAINER,
            id="an annotation's goes through unseen",
        ),
    ],
)
def test_a_removal_alone(text: str, result: str, view: str | None) -> None:
    merged = merge(text)

    assert merged.adjustment.SerializeToString(deterministic=True) == adjustment(
        result
    ).SerializeToString(deterministic=True)
    if view is not None:
        assert merged.container == container(view)


def test_removing_a_namespace_claims_it() -> None:
    removal = 'linux { namespaces { type: "-network" } }'

    assert merge(removal).adjustment == adjustment(removal)
    with pytest.raises(FieldConflict):
        merge(removal, 'linux { namespaces { type: "network" } }')


def test_hooks_and_device_rules_of_all_plugins_add_up() -> None:
    text = (
        'hooks {{ poststop {{ path: "/{0}" }} }} '
        'linux {{ resources {{ devices {{ type: "{0}" }} }} }}'
    )
    merged = merge(text.format("a"), text.format("b"))

    assert merged.adjustment == adjustment(
        'hooks { poststop { path: "/a" } poststop { path: "/b" } }'
        'linux { resources { devices { type: "a" } devices { type: "b" } } }'
    )
    assert merged.owners.message().owners["c0"].simple == {3: "00-p,01-p"}


def test_the_next_plugin_sees_the_changes_of_the_last_one() -> None:
    merged = merge(
        'env { key: "TERM" value: "y" } args: "sh" linux { cgroups_path: "/c" '
        'resources { cpu { cpus: "3" } } rdt { clos_id { value: "g" } } } '
        'CDI_devices { name: "v/c=d" } mounts { destination: "/data" source: "/s" }'
    )

    assert merged.container == container(
        NOTED + 'env: "HOME=/" env: "TERM=y" '
        'mounts { destination: "/data" source: "/s" } args: "sh" '
        'linux { cgroups_path: "/c" resources { cpu { cpus: "3" } } }'
    )


def test_an_update_of_the_container_being_created_is_an_error() -> None:
    merged = CreationMerge(container())
    update = nri_pb2.ContainerUpdate(container_id="c0", ignore_failure=True)

    with pytest.raises(UpdateDuringCreation, match='"10-x" asked update of "c0"'):
        merged.apply("10-x", nri_pb2.CreateContainerResponse(update=[update]))


@pytest.mark.parametrize(
    ("level", "text", "result"),
    [
        pytest.param(
            NriLevel(0, 3), 'rlimits { type: "x" } args: "a"', "", id="0.3 skips fields"
        ),
        pytest.param(
            NriLevel(0, 6, 1),
            'mounts { destination: "-/m" }',
            "",
            id="0.6 keeps mounts",
        ),
        pytest.param(
            NriLevel(0, 12, 1),
            'linux { sysctl { key: "-a" } }',
            'annotations { key: "-a" }',
            id="0.12 mistakes a removed sysctl for an annotation",
        ),
        pytest.param(
            NriLevel(0, 13),
            'linux { sysctl { key: "-a" } }',
            'linux { sysctl { key: "-a" } }',
            id="0.13 does not",
        ),
    ],
)
def test_an_older_level_reads_less(level: NriLevel, text: str, result: str) -> None:
    assert merge(text, level=level).adjustment == adjustment(result)
