"""The runtime to emulate: its NRI level, its name and version, its options."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from nri_proto import NriLevel, nri_pb2
from nri_proto.frames import MAX_DATA_OUT
from nri_proto.levels import DEDICATED_CALLS, SPLIT_SYNC, VALIDATION
from nri_resmgr.testing.default_validator import DefaultValidator

_MILLISECONDS: Final = 1000


class RuntimeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that most tests do not change.

    Attributes:
        nri_version: NRI version in Configure from level 0.12; None is ``v`` and the
            level.
        registration_timeout: Seconds from accept until RegisterPlugin.
        request_timeout: Seconds for Configure, for all of Synchronize, for each event.
        sync_objects: Maximum number of pods, and of containers, in a Synchronize
            message; None sends as many as fit.
        sync_limit: Maximum size of a Synchronize message in bytes.
        plugin_folder: Folder of plugins to launch, like ``/opt/nri/plugins``.
        config_folder: Folder of their drop-in files, like ``/etc/nri/conf.d``.
        plugin_output: File for the output of launched plugins; real runtimes use the
            default.
        grace: Seconds that launched plugins have to exit when the runtime stops.
        records: Whether messages are recorded; benchmarks turn that off.
        validator: The runtime's default validator; None where it is not enabled. From
            level 0.10: older runtimes ignore the setting.
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
    validator: DefaultValidator | None = None


class Profile(msgspec.Struct, frozen=True):
    """The runtime that plugins see.

    Attributes:
        level: Its NRI release: decides calls, masks, chunks and fields of Configure.
        name: ``containerd`` or ``cri-o``; they handle some failures differently.
        version: The runtime's own version.
        options: Timeouts, folders of plugins and the like.
    """

    level: NriLevel
    name: str
    version: str
    options: RuntimeOptions

    @property
    def validator(self) -> DefaultValidator | None:
        """The default validator, where the level has one and it is enabled."""
        return self.options.validator if self.level >= VALIDATION else None

    @property
    def is_crio(self) -> bool:
        """True if failures are handled as in CRI-O."""
        return self.name == "cri-o"

    def configure_request(self, config: str) -> nri_pb2.ConfigureRequest:
        """Build a Configure request with the fields of the level."""
        request = nri_pb2.ConfigureRequest(
            config=config, runtime_name=self.name, runtime_version=self.version
        )
        options = self.options
        if self.level >= SPLIT_SYNC:
            request.registration_timeout = _milliseconds(options.registration_timeout)
            request.request_timeout = _milliseconds(options.request_timeout)
        if self.level >= DEDICATED_CALLS:
            version = options.nri_version
            request.NRI_version = f"v{self.level}" if version is None else version
        return request


def _milliseconds(seconds: float) -> int:
    return round(seconds * _MILLISECONDS)
