"""Whatever a document holds, it is read, or refused with a place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.classes.blockio import (
    BlockIoConfig,
    Features,
    MatchedDevices,
    patterns_of,
    resolve,
)
from nri_resmgr.classes.memory import MemoryQosConfig
from nri_resmgr.config import BadSetting
from nri_resmgr.config.blockio import read_block_io_classes
from nri_resmgr.config.memory_classes import (
    NumaPolicyConfig,
    read_memory_qos,
    read_numa_policies,
)
from nri_resmgr.config.table import Table

WORDS = (
    *("Classes", "classes", "name", "policy", "mode", "nodes", "flags", "a", ""),
    *("Devices", "Weight", "weight", "ThrottleReadBps", "swapLimitRatio"),
    *("unifiedannotations", "injectMpolset", "MPOL_BIND", "MPOL_LOCAL", "all"),
    *("max-dist:11", "/dev/sd[a]", "/dev/[", "10M", "1e999", "memory.high"),
)
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS)
)
documents = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)
# Most of what is drawn above stops at the first key; these get further.
sets = st.dictionaries(
    st.sampled_from(["Devices", "Weight", "ThrottleReadBps"]),
    leaves | st.lists(leaves, max_size=2),
)
rows = st.dictionaries(
    st.sampled_from(["name", "policy", "swapLimitRatio"]),
    leaves
    | st.dictionaries(
        st.sampled_from(["mode", "nodes", "flags"]),
        leaves | st.lists(leaves, max_size=2),
    ),
)
nearly = st.fixed_dictionaries(
    {
        "classes": st.lists(rows, max_size=2)
        | st.dictionaries(st.sampled_from("ab"), st.lists(sets, max_size=2), max_size=2)
    }
)


def read_block_io(document: object) -> BlockIoConfig:
    return read_block_io_classes(Table.read(document, "classes"), "classes")


def read_qos(document: object) -> MemoryQosConfig:
    return read_memory_qos(Table("$", {"memoryQos": document}), "memoryQos")


def read_policies(document: object) -> NumaPolicyConfig:
    return read_numa_policies(Table("$", {"memoryPolicy": document}), "memoryPolicy")


def complaint_about(read: Callable[[object], object], document: object) -> str | None:
    try:
        read(document)
    except BadSetting as error:
        return str(error)
    return None


@pytest.mark.parametrize("read", [read_qos, read_policies, read_block_io])
@given(document=documents | nearly)
def test_a_document_is_read_or_refused(
    read: Callable[[object], object], document: object
) -> None:
    complaint = complaint_about(read, document)

    assert complaint is None or complaint.startswith("$")
    assert complaint is None or "\n" not in complaint


@given(nearly)
def test_a_document_that_was_read_can_be_resolved(document: object) -> None:
    if complaint_about(read_block_io, document):
        return
    config = read_block_io(document)
    found = resolve(
        config, {pattern: MatchedDevices() for pattern in patterns_of(config)}
    )

    assert found.keys() == config.keys()
    for one in found.values():
        one.files(Features(is_v2=True, weight_file="io.weight"))
        one.oci()
