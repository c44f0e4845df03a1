"""Groups of metrics, by which documents choose the ones that are served."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

_POLICY: Final = ("policy",)
_OURS: Final = ("resmgr",)
_RDT: Final = ("rdt",)
_BUILD: Final = ("standard", "buildinfo")
_PROCESS: Final = ("standard", "process")

# The first prefix that matches counts.
_GROUPS: Final = (
    ("nri_policy_", _POLICY),
    ("nri_l3_", _RDT),
    ("nri_resmgr_rdt_", _RDT),
    ("nri_resmgr_build_info", _BUILD),
    ("nri_resmgr_", _OURS),
    ("process_", _PROCESS),
)


def groups_of(metric: str) -> tuple[str, ...]:
    """Return the groups of a metric, the widest first."""
    found = (groups for prefix, groups in _GROUPS if metric.startswith(prefix))
    return next(found, _OURS)


def is_chosen(metric: str, globs: Iterable[str]) -> bool:
    """Return whether one of *globs* matches a metric.

    Args:
        metric: Its name.
        globs: Each matches a group, the metric's name, or both with a slash between
            them: ``policy``, ``nri_policy_cpu_*``, ``standard/process``.
    """
    words = (*groups_of(metric), metric)
    paths = ("/".join(words[:end]) for end in range(2, len(words) + 1))
    names = (*words, *paths)
    return any(fnmatchcase(name, glob) for glob in globs for name in names)
