"""Labels of the node for Node Feature Discovery: policy, classes, exclusive CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from nri_resmgr.app.offers.extended_resources import PolicyNow, exclusive_cpus_of
from nri_resmgr.classes.rdt.checks import classes_of, group_of

_PREFIX: Final = "nri-resmgr"

# Of a label, after its domain.
_LONGEST: Final = 63
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def features_of(now: PolicyNow) -> str:
    """Return the file of features: ``NAME=VALUE`` each, of which NFD makes labels.

    Names that no label can have are left out. Nothing in it changes with containers.

    Source:
        Node Feature Discovery, "Customization guide", local feature source.
    """
    rows = [
        f"{name}={value}\n"
        for name, value in _labels(now)
        if len(name) <= _LONGEST and _NAME.fullmatch(name)
    ]
    return "".join(["# Written by nri-resmgr, by publish.nodeFeatures.\n", *rows])


def _labels(now: PolicyNow) -> Iterator[tuple[str, str]]:
    config = now.config
    yield f"{_PREFIX}.policy", config.kind
    if count := exclusive_cpus_of(now):
        yield f"{_PREFIX}.exclusive-cpus", str(count)
    for name in config.cpu_classes.classes if config.cpu_classes else ():
        yield f"{_PREFIX}.cpu-class.{name}", "true"
    if config.rdt is not None and config.rdt.config is not None:
        for _, one in classes_of(config.rdt.config):
            yield f"{_PREFIX}.rdt-class.{group_of(one)}", "true"
