"""Sets resource limits (ulimits) of containers by annotations of their pods."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.sdk.annotations import BadAnnotation
from nri_resmgr.sdk.conversion import InvalidField, convert
from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    InputError,
    Pod,
    ReplyError,
    Rlimit,
    serve,
)
from nri_resmgr.values.shorten import shortened

# The first one that a pod has for the container counts; no key is for all of them.
KEYS: Final = ("ulimits.noderesource.dev", "ulimits.nri.containerd.io")

# Source: setrlimit(2); MSGQUEUE to SIGPENDING are Linux' own.
TYPES: Final = (
    *("AS", "CORE", "CPU", "DATA", "FSIZE", "LOCKS", "MEMLOCK", "MSGQUEUE"),
    *("NICE", "NOFILE", "NPROC", "RSS", "RTPRIO", "RTTIME", "SIGPENDING", "STACK"),
)
INFINITY: Final = 2**64 - 1  # RLIM_INFINITY

SHOWN: Final = 80  # characters of a wrong text


class Ulimit(Settings, frozen=True):
    """An entry of the annotation; `type` in any case, RLIMIT_ may be left out."""

    type: str
    hard: int = 0
    soft: int = 0

    def __post_init__(self) -> None:
        if self.name not in TYPES:
            found = shortened(self.type, SHOWN)
            raise InvalidField("type", f"{found!r} is none of {', '.join(TYPES)}")
        if not 0 <= self.soft <= self.hard <= INFINITY:
            found = f"soft {self.soft} and hard {self.hard}"
            why = f"expected 0 <= soft <= hard <= {INFINITY}, not {found}"
            raise InvalidField("soft", why)

    @property
    def name(self) -> str:
        """The name of the limit without its prefix."""
        return self.type.upper().removeprefix("RLIMIT_")


def adjustment_of(text: str) -> ContainerAdjustment:
    """Return the adjustment that an annotation asks for.

    Raises:
        InputError: It is no list of limits.
        ReplyError: It has a limit twice.
    """
    adjustment = ContainerAdjustment()
    document = parse_yaml(text, references=False) or []
    for one in convert(document, tuple[Ulimit, ...]):
        limit = Rlimit(f"RLIMIT_{one.name}", hard=one.hard, soft=one.soft)
        adjustment = adjustment.set_rlimit(limit)
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
            except (InputError, ReplyError) as error:
                title = f"{pod.namespace}/{pod.name}"
                raise BadAnnotation(
                    title, container.name, key, text, str(error)
                ) from None
        return None


if __name__ == "__main__":
    serve(UlimitAdjuster(), index="10")
