"""Which runtime is played: its level, its names, its patience."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from nri_proto import NriLevel, nri_pb2
from nri_proto.frames import MAX_DATA_OUT
from nri_proto.levels import DEDICATED_CALLS, SPLIT_SYNC

_MILLISECONDS: Final = 1000


class RuntimeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is rarely changed.

    Attributes:
        nri_version: Told in Configure from level 0.12; None stands for ``v`` and
            the level.
        registration_timeout: Seconds from accept until RegisterPlugin.
        request_timeout: Seconds for Configure, a whole Synchronize, each event.
        sync_objects: Pods, and containers, per Synchronize message; None sends
            as many as fit.
        sync_limit: Bytes of a Synchronize message that still fit.
        plugin_folder: Plugins to launch, as ``/opt/nri/plugins``.
        config_folder: Their drop-in files, as ``/etc/nri/conf.d``.
        plugin_output: Where launched plugins' output goes; runtimes use the
            default.
        grace: Seconds that launched plugins get to exit when the runtime stops.
        records: Whether messages are kept; a benchmark turns that off.
    """

    nri_version: str | None = None
    registration_timeout: float = 5.0
    request_timeout: float = 2.0
    sync_objects: int | None = None
    sync_limit: int = MAX_DATA_OUT
    plugin_folder: Path | None = None
    config_folder: Path | None = None
    plugin_output: Path = Path("/dev/null")
    grace: float = 5.0
    records: bool = True


class Profile(msgspec.Struct, frozen=True):
    """The runtime as plugins get to know it.

    Attributes:
        level: Decides about calls, masks, chunks and what Configure tells.
        name: ``containerd`` or ``cri-o``; some failures differ between them.
        version: The runtime's own.
        options: What is rarely changed.
    """

    level: NriLevel
    name: str
    version: str
    options: RuntimeOptions

    @property
    def is_crio(self) -> bool:
        """Whether failures are CRI-O's."""
        return self.name == "cri-o"

    def configure_request(self, config: str) -> nri_pb2.ConfigureRequest:
        """Introduce the runtime, as far as its level does."""
        request = nri_pb2.ConfigureRequest(
            config=config, runtime_name=self.name, runtime_version=self.version
        )
        options = self.options
        if self.level >= SPLIT_SYNC:
            request.registration_timeout = _milliseconds(options.registration_timeout)
            request.request_timeout = _milliseconds(options.request_timeout)
        if self.level >= DEDICATED_CALLS:
            told = options.nri_version
            request.NRI_version = f"v{self.level}" if told is None else told
        return request


def _milliseconds(seconds: float) -> int:
    return round(seconds * _MILLISECONDS)
