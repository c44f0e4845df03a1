"""Sets the resctrl group of containers by annotations of their pods."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

import structlog

from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Pod,
    RequestRejected,
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
                    enable = read_boolean(key, value)
                    adjustment = adjustment.set_rdt_monitoring(enable=enable)
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


def read_boolean(key: str, value: str) -> bool:
    """Return the value of an annotation that is true or false.

    Raises:
        RequestRejected: It is neither.
    """
    if value not in BOOLEANS:
        found = shortened(value, SHOWN)
        raise RequestRejected(f"annotation {key}: {found!r} is not true or false")
    return BOOLEANS[value]


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("rdt", description=__doc__)
    parser.add_argument("--name", help="name to register with")
    parser.add_argument("--index", help="two digits, the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="socket of the runtime")
    options = parser.parse_args()
    configure_logging()
    serve(Rdt(), name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
