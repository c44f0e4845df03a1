"""The debug sources of nri-plugins and CRI Resource Manager, as components of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nri_resmgr.config.errors import BadSetting

MOST_ITEMS: Final = 16
_MOST_NAMES: Final = 16  # of an item
_LONGEST: Final = 64  # characters of a pattern, as of the flag --log-debug

_WORDS: Final[Mapping[str, bool]] = {
    "on": True,
    "true": True,
    "enable": True,
    "off": False,
    "false": False,
    "disable": False,
}
_EVERYTHING: Final = ("*", "all")

_PATTERN: Final = re.compile(r"[A-Za-z0-9_.*?\[\]-]+", re.ASCII)

_REQUESTS: Final = "app.observing.request_log"
_DECISIONS: Final = "app.observing.decision_log"

SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "blockio": ("app.classes.blockio",),
    "cache": ("checkpoint", "host.state_dir"),
    "config": ("app.configuration", "daemon.configuration"),
    "cpu": ("app.host_settings", "host.knobs"),
    "cpuallocator": (_DECISIONS,),
    "cpuclass": ("app.host_settings", "host.knobs"),
    "cri-resmgr": ("daemon", _REQUESTS),
    "dump": (_REQUESTS,),
    "events": ("stub", _REQUESTS),
    "expression": ("app.annotations",),
    "http": ("control",),
    "instrumentation": ("control", "daemon.insight"),
    "irq": ("app.host_settings",),
    "libmem": (_DECISIONS, "app.running"),
    "memory": ("app.classes.memory", "app.running"),
    "message": (_REQUESTS,),
    "metrics": ("control", "daemon.insight"),
    "nri-plugin": ("stub", _REQUESTS),
    "policy": ("app.configuration", _DECISIONS),
    "rdt": ("app.classes.rdt", "host.resctrl"),
    "resource-control": ("app.classes", "app.host_settings"),
    "resource-manager": ("app.plugin", "app.verification", "daemon", _REQUESTS),
    "sysfs": ("host.machine", "host.tree"),
    "topology-hints": ("app.plugin",),
}
"""By source: components below ``nri_resmgr``, or packages of them."""

# The packages of the daemon that log, for names that are ours already.
_OURS: Final = (
    "app",
    "checkpoint",
    "cli",
    "control",
    "daemon",
    "host",
    "kubelet",
    "log",
    "process",
    "recordings",
    "stub",
)


def read_log_debug(item: str, path: str) -> tuple[tuple[str, bool], ...]:
    """Read an item of ``log.debug``: names with commas between them.

    A name may have ``:on`` or ``:off`` after it, as in nri-plugins, or ``on:`` or
    ``off:`` before it, as in CRI Resource Manager, which is for the following ones
    as well.

    Returns:
        Patterns of components, each with whether debug of it is on; those of unknown
        names are left out.

    Raises:
        BadSetting: It is not such a list.
    """
    found: list[tuple[str, bool]] = []
    before = True
    names = [one.strip() for one in item.split(",")]
    if len(names) > _MOST_NAMES:
        why = f"expected at most {_MOST_NAMES} names in an item, not {len(names)}"
        raise BadSetting(path, why)
    for name in filter(None, names):
        first, has_colon, last = name.partition(":")
        if has_colon and first in _WORDS:
            source, is_on = last, _WORDS[first]
            before = is_on
        elif has_colon and last not in _WORDS:
            raise BadSetting(path, f"expected NAME, NAME:on or NAME:off, not {name!r}")
        else:
            source, is_on = first, _WORDS[last] if has_colon else before
        if len(source) > _LONGEST or not _PATTERN.fullmatch(source):
            raise BadSetting(path, f"expected the name of a source, not {source!r}")
        found += ((pattern, is_on) for pattern in components_of(source))
    return tuple(found)


def components_of(source: str) -> tuple[str, ...]:
    """Return the patterns of the components of a source; empty if it is unknown."""
    if source in _EVERYTHING:
        return ("*",)
    if known := SOURCES.get(source):
        return known
    return (source,) if re.split(r"[.*?\[]", source, maxsplit=1)[0] in _OURS else ()
