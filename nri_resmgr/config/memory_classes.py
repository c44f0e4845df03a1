"""Reads memory classes in the formats of nri-plugins' memory-qos and memory-policy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.classes.memory.numa import (
    BadMemoryPolicy,
    NumaPolicy,
    PolicyFlag,
    PolicyMode,
)
from nri_resmgr.classes.memory.qos import WHOLE, MemoryQosClass, MemoryQosConfig
from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table

_CLASSES: Final = "classes"
_FILES: Final = "unifiedAnnotations"
_RATIO: Final = "swapLimitRatio"
_INJECT: Final = "injectMpolset"
_POLICY: Final = ("mode", "nodes", "flags")

_FILE: Final = re.compile(r"[a-z_]+(?:\.[A-Za-z0-9_-]+)+", re.ASCII)
_LONGEST: Final = 4 << 10  # characters of an annotation; policies are much shorter


class NumaPolicyConfig(msgspec.Struct, frozen=True):
    """Memory policies of a configuration.

    Attributes:
        classes: By name.
        injects: Whether ``mpolset`` sets them where the runtime cannot.
    """

    classes: Mapping[str, NumaPolicy]
    injects: bool = False


def read_memory_qos(owner: Table, key: str) -> MemoryQosConfig:
    """Read the content of a file of memory-qos. Letter case of its keys is free."""
    top = owner.table(key, _CLASSES, _FILES, any_case=True)
    files = top.texts(_FILES)
    for place, file in enumerate(files):
        if not _FILE.fullmatch(file):
            where = f"{top.at(_FILES)}[{place}]"
            why = f"expected a file of cgroup v2 such as memory.high, not {file!r}"
            raise BadSetting(where, why)
    rows = top.named(_CLASSES, _RATIO, any_case=True)
    return MemoryQosConfig(
        {
            name: MemoryQosClass(round(row.fraction(_RATIO) * WHOLE))
            for name, row in rows
        },
        files,
    )


def read_numa_policies(owner: Table, key: str) -> NumaPolicyConfig:
    """Read the content of a file of memory-policy. Letter case of its keys is free."""
    top = owner.table(key, _CLASSES, _INJECT, any_case=True)
    found: dict[str, NumaPolicy] = {}
    for name, row in top.named(_CLASSES, "policy", any_case=True):
        row.require("policy", "a mapping")
        found[name] = _numa_policy(row.table("policy", *_POLICY, any_case=True))
    return NumaPolicyConfig(found, top.flag(_INJECT))


def _numa_policy(row: Table) -> NumaPolicy:
    row.require("mode", " or ".join(PolicyMode))
    policy = NumaPolicy(
        PolicyMode(row.choice("mode", tuple(PolicyMode), "")),
        # YAML parses a single node as a number.
        (row.amount("nodes") or "").strip(),
        tuple(PolicyFlag(one) for one in row.choices("flags", tuple(PolicyFlag))),
    )
    try:
        policy.check()
    except BadMemoryPolicy as error:
        raise BadSetting(row.at(error.part), error.why) from None
    return policy


def parse_numa_policy(text: str) -> NumaPolicy:
    """Read one policy from the YAML of an annotation.

    Raises:
        BadSyntax: It is not YAML, or too long.
        BadSetting: It is not a policy.
    """
    if len(text) > _LONGEST:
        raise BadSyntax(f"{len(text)} characters, expected at most {_LONGEST}")

    document = parse_yaml(text, references=False)
    return _numa_policy(Table.read_any_case(document, *_POLICY))
