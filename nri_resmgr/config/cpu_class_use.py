"""CPU classes of a document, and which CPUs they are for."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nri_resmgr.classes.cpu.cpu_class import CpuClass, TurboDomain


class CpuClassUse(msgspec.Struct, frozen=True, kw_only=True):
    """Classes, and the names of those that policies give to CPUs.

    Attributes:
        classes: By name; not empty.
        paths: Where they are in the document, by name.
        domain: Among whose CPUs classes compete for turbo.
        shared: Of CPUs that no container has to itself.
        reserved: Of the reserved CPUs; empty for as the shared ones.
        exclusive: Of CPUs of containers that ask for no class; empty likewise.
        idle: Of CPUs of no balloon; empty where they are left alone.
    """

    classes: Mapping[str, CpuClass]
    paths: Mapping[str, str] = {}
    domain: TurboDomain = TurboDomain.PACKAGE
    shared: str = ""
    reserved: str = ""
    exclusive: str = ""
    idle: str = ""
