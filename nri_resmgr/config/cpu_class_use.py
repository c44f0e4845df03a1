"""CPU classes of a document, and which CPUs they are for."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nri_resmgr.classes.cpu.cpu_class import CpuClass, TurboDomain
from nri_resmgr.values.by_content import ByContent
from nri_resmgr.values.declared import frozen


@frozen(kw_only=True)
class CpuClassUse(ByContent):
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

    classes: Mapping[str, CpuClass] = attrs.field(hash=False)
    paths: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    domain: TurboDomain = TurboDomain.PACKAGE
    shared: str = ""
    reserved: str = ""
    exclusive: str = ""
    idle: str = ""
