"""Sets resource limits (ulimits) of containers by annotations of their pods."""

from __future__ import annotations

import argparse
from typing import Final

import msgspec

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    InputError,
    Pod,
    ReplyError,
    RequestRejected,
    Rlimit,
    serve,
)
from nri_resmgr.values.shorten import shortened

# The first one that a pod has for the container counts.
KEYS: Final = ("ulimits.noderesource.dev", "ulimits.nri.containerd.io")

# Source: setrlimit(2); MSGQUEUE to SIGPENDING are Linux' own.
TYPES: Final = (
    *("AS", "CORE", "CPU", "DATA", "FSIZE", "LOCKS", "MEMLOCK", "MSGQUEUE"),
    *("NICE", "NOFILE", "NPROC", "RSS", "RTPRIO", "RTTIME", "SIGPENDING", "STACK"),
)
INFINITY: Final = 2**64 - 1  # RLIM_INFINITY

SHOWN: Final = 80  # characters of a wrong text


class Ulimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the annotation; `type` in any case, RLIMIT_ may be left out."""

    type: str
    hard: int = 0
    soft: int = 0

    def rlimit(self) -> Rlimit:
        """Return the limit as NRI has it.

        Raises:
            InputError: The type does not exist, or the values are none of a limit.
        """
        name = self.type.upper().removeprefix("RLIMIT_")
        if name not in TYPES:
            found = shortened(self.type, SHOWN)
            raise InputError(f"{found!r} is none of {', '.join(TYPES)}")
        if not 0 <= self.soft <= self.hard <= INFINITY:
            raise InputError(
                f"{name}: expected 0 <= soft <= hard <= {INFINITY}, "
                f"got soft {self.soft} and hard {self.hard}"
            )
        return Rlimit(f"RLIMIT_{name}", hard=self.hard, soft=self.soft)


def adjustment_of(text: str) -> ContainerAdjustment:
    """Return the adjustment that an annotation asks for.

    Raises:
        InputError: It is no list of limits.
        ReplyError: It has a limit twice.
        ValidationError: An entry has another form.
    """
    adjustment = ContainerAdjustment()
    document = parse_yaml(text, references=False) or ()
    for ulimit in msgspec.convert(document, tuple[Ulimit, ...]):
        adjustment = adjustment.set_rlimit(ulimit.rlimit())
    return adjustment


class UlimitAdjuster(CreateContainerHandler):
    """The plugin."""

    def create_container(
        self, pod: Pod, container: Container
    ) -> ContainerAdjustment | None:
        """Return the limits that the pod has for the container."""
        for key in [f"{key}/container.{container.name}" for key in KEYS]:
            if (text := pod.annotations.get(key)) is None:
                continue
            try:
                return adjustment_of(text)
            except (InputError, ReplyError, msgspec.ValidationError) as error:
                raise RequestRejected(f"annotation {key}: {error}") from None
        return None


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("ulimit-adjuster", description=__doc__)
    parser.add_argument("--name", help="name to register with")
    parser.add_argument("--index", help="two digits, the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="socket of the runtime")
    options = parser.parse_args()
    configure_logging()
    plugin = UlimitAdjuster()
    serve(plugin, name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
