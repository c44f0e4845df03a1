"""What a plugin knows of its runtime once Configure has come."""

from __future__ import annotations

from typing import Final

import msgspec

from nri_proto import NriLevel, infer_level, nri_pb2
from nri_resmgr.stub.runner import DEFAULT_REQUEST_TIMEOUT

DEFAULT_REGISTRATION_TIMEOUT: Final = 5.0  # seconds, NRI's own default

_MILLISECONDS: Final = 1000


class RuntimeInfo(msgspec.Struct, frozen=True):
    """The runtime as it introduced itself.

    Attributes:
        name: ``containerd`` or ``cri-o`` (containerd 2.0.0 to 2.0.3 say ``v2``).
        version: The runtime's own, in its own spelling.
        level: Its NRI release, told or inferred; None when nothing tells.
        registration_timeout: Seconds.
        request_timeout: Seconds within which every request must be answered.
    """

    name: str = ""
    version: str = ""
    level: NriLevel | None = None
    registration_timeout: float = DEFAULT_REGISTRATION_TIMEOUT
    request_timeout: float = DEFAULT_REQUEST_TIMEOUT

    @classmethod
    def of(cls, request: nri_pb2.ConfigureRequest) -> RuntimeInfo:
        """Read a Configure request; timeouts that were not told are defaults."""
        registration = request.registration_timeout / _MILLISECONDS
        timeout = request.request_timeout / _MILLISECONDS
        return cls(
            name=request.runtime_name,
            version=request.runtime_version,
            level=infer_level(
                request.runtime_name,
                request.runtime_version,
                nri_version=request.NRI_version,
                tells_timeouts=request.request_timeout > 0,
            ),
            registration_timeout=registration or DEFAULT_REGISTRATION_TIMEOUT,
            request_timeout=timeout or DEFAULT_REQUEST_TIMEOUT,
        )

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip() or "the runtime"


class Configuration(msgspec.Struct, frozen=True):
    """The argument of the ``configure`` handler.

    Attributes:
        text: The plugin's drop-in file, verbatim; empty for external plugins.
        runtime: Who sent it.
    """

    text: str
    runtime: RuntimeInfo
