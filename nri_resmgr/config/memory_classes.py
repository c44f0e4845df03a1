"""Reads memory classes in the formats of nri-plugins' memory-qos and memory-policy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
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
from nri_resmgr.config.table import Table, read_any_case

_CLASSES: Final = "classes"
_FILES: Final = "unifiedAnnotations"
_RATIO: Final = "swapLimitRatio"
_INJECT: Final = "injectMpolset"

_FILE: Final = re.compile(r"[a-z_]+(?:\.[A-Za-z0-9_-]+)+", re.ASCII)
_LONGEST: Final = 4 << 10  # characters of an annotation; policies are much shorter


class NumaPolicyConfig(msgspec.Struct, frozen=True):
    """Memory policies of a configuration.

    Attributes:
        classes: By name.
        ineffective: Paths of settings without effect.
    """

    classes: Mapping[str, NumaPolicy]
    ineffective: tuple[str, ...] = ()


def read_memory_qos(document: object, path: str = "$") -> MemoryQosConfig:
    """Read a parsed file of memory-qos. Letter case of keys is free.

    Raises:
        BadSetting: The first error.
    """
    top = read_any_case(document, path, _CLASSES, _FILES)
    files = top.texts(_FILES, ())
    for place, file in enumerate(files):
        if not _FILE.fullmatch(file):
            where = f"{top.at(_FILES)}[{place}]"
            why = f"expected a file of cgroup v2 such as memory.high, not {file!r}"
            raise BadSetting(where, why)
    rows = _named(top, "name", _RATIO)
    return MemoryQosConfig(
        {name: MemoryQosClass(_millionths(row, _RATIO)) for name, row in rows}, files
    )


def read_numa_policies(document: object, path: str = "$") -> NumaPolicyConfig:
    """Read a parsed file of memory-policy. Letter case of keys is free.

    ``injectMpolset`` has no effect: policies are set by the runtime, which supports
    this since NRI 0.12, or not at all.

    Raises:
        BadSetting: The first error.
    """
    top = read_any_case(document, path, _CLASSES, _INJECT)
    injects = top.flag(_INJECT, default=False)
    found: dict[str, NumaPolicy] = {}
    for name, row in _named(top, "name", "policy"):
        if "policy" not in row.rows:
            raise BadSetting(row.at("policy"), "missing, expected a mapping")
        found[name] = read_numa_policy(row.rows["policy"], row.at("policy"))
    return NumaPolicyConfig(found, (top.at(_INJECT),) if injects else ())


def read_numa_policy(document: object, path: str = "$") -> NumaPolicy:
    """Read one policy: ``{mode, nodes, flags}``.

    Raises:
        BadSetting: The first error.
    """
    row = read_any_case(document, path, "mode", "nodes", "flags")
    if not row.text("mode", ""):
        modes = " or ".join(PolicyMode)
        raise BadSetting(row.at("mode"), f"missing, expected {modes}")
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

    return read_numa_policy(parse_yaml(text, references=False))


def _named(top: Table, *keys: str) -> Iterator[tuple[str, Table]]:
    """Read the items of the list of classes, each with its name."""
    seen: set[str] = set()
    found = top.rows.get(_CLASSES, [])
    if not isinstance(found, list):
        raise BadSetting(top.at(_CLASSES), "expected a list")
    for place, item in enumerate(found):
        row = read_any_case(item, f"{top.at(_CLASSES)}[{place}]", *keys)
        name = row.name("name")
        if name in seen:
            raise BadSetting(row.at("name"), f"duplicate name {name!r}")
        seen.add(name)
        yield name, row


def _millionths(row: Table, key: str) -> int:
    ratio = row.rows.get(key, 0)
    is_number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
    if not isinstance(ratio, int | float) or not is_number or not 0 <= ratio <= 1:
        raise BadSetting(row.at(key), f"expected 0 to 1, not {ratio!r}")
    return round(ratio * WHOLE)
