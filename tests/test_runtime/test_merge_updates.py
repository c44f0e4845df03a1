"""Updates of several plugins become one per container."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.protobuf import text_format

from nri_proto import nri_pb2
from nri_resmgr.testing.errors import FieldConflict
from nri_resmgr.testing.merge import (
    Owners,
    UpdateMerge,
    apply_resources,
    overlay_resources,
)


def update(text: str) -> nri_pb2.ContainerUpdate:
    return text_format.Parse(text, nri_pb2.ContainerUpdate())


def resources(text: str) -> nri_pb2.LinuxResources:
    return text_format.Parse(text, nri_pb2.LinuxResources())


def merge(*replies: Sequence[str]) -> UpdateMerge:
    """Merge updates of 00-p, 01-p, ... while c0 is updated to 100 shares."""
    merged = UpdateMerge(
        Owners(), updating="c0", requested=resources("cpu { shares { value: 100 } }")
    )
    for number, texts in enumerate(replies):
        merged.apply(f"{number:02}-p", [update(text) for text in texts])
    return merged


CPUS = 'container_id: "c1" linux { resources { cpu { cpus: "1" } } }'
MEMS = 'container_id: "c1" linux { resources { cpu { mems: "0" } } }'


def test_updates_of_one_container_become_one() -> None:
    merged = merge([CPUS], [MEMS])

    assert merged.updates == [
        update('container_id: "c1" linux { resources { cpu { cpus: "1" mems: "0" } } }')
    ]


def test_two_plugins_cannot_update_the_same() -> None:
    with pytest.raises(FieldConflict) as conflict:
        merge([CPUS], [CPUS])

    assert str(conflict.value) == (
        'plugins "01-p" and "00-p" both tried to set CPUSetCPUs'
    )


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        pytest.param(
            CPUS,
            'container_id: "c1" ignore_failure: true '
            'linux { resources { cpu { mems: "1" cpus: "2" } } }',
            CPUS,
            id="the conflicting one is dropped as a whole",
        ),
        pytest.param(
            CPUS + " ignore_failure: true",
            MEMS + " ignore_failure: true",
            'container_id: "c1" ignore_failure: true '
            'linux { resources { cpu { cpus: "1" mems: "0" } } }',
            id="the mark stays when both have it",
        ),
        pytest.param(
            CPUS + " ignore_failure: true",
            MEMS,
            'container_id: "c1" linux { resources { cpu { cpus: "1" mems: "0" } } }',
            id="the mark goes when one lacks it",
        ),
    ],
)
def test_ignored_failures(first: str, second: str, result: str) -> None:
    assert merge([first], [second]).updates == [update(result)]


def test_pids_and_device_rules_of_an_update_get_lost() -> None:
    merged = merge(
        ['container_id: "c1" linux { resources { pids { limit: 77 } devices { } } }']
    )

    assert merged.updates == [update('container_id: "c1" linux { resources { } }')]


def test_changes_of_the_pending_update_are_merged_over_the_request() -> None:
    merged = merge(
        ['container_id: "c0" linux { resources { cpu { cpus: "4" } } }', CPUS]
    )

    wanted = 'cpu { cpus: "4" shares { value: 100 } }'
    assert merged.requested == resources(wanted)
    assert merged.updates == [
        update(CPUS),
        update(f'container_id: "c0" linux {{ resources {{ {wanted} }} }}'),
    ]


def test_without_changes_the_request_stays_as_it_is() -> None:
    merged = merge([CPUS])

    assert merged.requested == resources("cpu { shares { value: 100 } }")
    assert merged.applied == merged.requested
    assert merged.updates == [update(CPUS)]


def test_an_update_without_resources_takes_the_place_of_the_request() -> None:
    merged = merge(['container_id: "c0"'])
    later = merge(
        ['container_id: "c0"'], ['container_id: "c0" linux { resources { } }']
    )

    assert merged.requested == resources("cpu { shares { value: 100 } }")
    assert merged.applied == resources("")
    assert later.applied == later.requested == merged.requested


def test_an_update_without_container_id_changes_nothing() -> None:
    merged = merge(['linux { resources { cpu { cpus: "4" } } }'])

    assert merged.requested == resources("cpu { shares { value: 100 } }")


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        pytest.param(
            "cpu { shares { } } memory { limit { } }",
            'cpu { cpus: "0" shares { value: 2 } }',
            id="zero is unchanged",
        ),
        pytest.param(
            'cpu { cpus: "1" mems: "1" quota { value: -1 } }',
            'cpu { cpus: "1" mems: "1" shares { value: 2 } quota { value: -1 } }',
            id="what is set replaces",
        ),
        pytest.param(
            'rdt_class { value: "x" } pids { limit: 1 } '
            "memory { limit { value: 9 } reservation { value: 8 } }",
            'cpu { cpus: "0" shares { value: 2 } } '
            "memory { limit { value: 9 } swap { value: 9 } }",
            id="what CRI has no word for gets lost",
        ),
    ],
)
def test_an_update_is_applied_as_containerd_does(changes: str, after: str) -> None:
    target = resources('cpu { cpus: "0" shares { value: 2 } }')

    apply_resources(resources(changes), target)

    assert target == resources(after)


def test_an_update_of_a_plugin_is_applied_whole_on_crio() -> None:
    target = resources(
        'cpu { cpus: "0" shares { value: 2 } } '
        'hugepage_limits { page_size: "2MB" limit: 1 }'
    )
    changes = resources(
        'cpu { mems: "1" shares { } } pids { limit: 7 } '
        'hugepage_limits { page_size: "2MB" limit: 2 }'
    )

    overlay_resources(changes, target)

    assert target == resources(
        'cpu { cpus: "0" mems: "1" shares { } } pids { limit: 7 } '
        'hugepage_limits { page_size: "2MB" limit: 2 }'
    )
