"""Sets the resctrl group of containers by annotations of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from nri_resmgr.sdk.annotations import BadAnnotation
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Pod,
    serve,
)
from nri_resmgr.values.shorten import shortened

log = structlog.get_logger(__name__)

# The first one counts where a pod has both for a container.
DOMAINS: Final = ("rdt.noderesource.dev", "rdt.nri.io")

SHOWN: Final = 80  # characters of a wrong text

# What Go's strconv.ParseBool reads.
BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class Rdt(CreateContainerHandler):
    """The plugin."""

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Return the group that the pod names for the container."""
        adjustment = ContainerAdjustment()
        for field, key in keys_of(pod, container).items():
            value = pod.annotations[key]
            match field:
                case "closid":
                    adjustment = adjustment.set_rdt_clos_id(value)
                case "schemata":
                    adjustment = adjustment.set_rdt_schemata(value.split(","))
                case "enablemonitoring":
                    if value not in BOOLEANS:
                        title = f"{pod.namespace}/{pod.name}"
                        why = f"{shortened(value, SHOWN)!r} is not true or false"
                        raise BadAnnotation(title, container.name, key, value, why)
                    adjustment = adjustment.set_rdt_monitoring(enable=BOOLEANS[value])
                case _:
                    log.warning("annotation.unknown", key=key)
        return adjustment


def keys_of(pod: Pod, container: Container) -> dict[str, str]:
    """Return the keys that count for a container, by their first word."""
    keys: dict[str, str] = {}
    for domain in reversed(DOMAINS):
        suffix = f".{domain}/container.{container.name}"
        found = [key for key in pod.annotations if key.endswith(suffix)]
        keys |= {key.removesuffix(suffix): key for key in found}
    return keys


if __name__ == "__main__":
    serve(Rdt(), index="10")
