"""A host of files whose settings follow what a test wants."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from nri_resmgr.app.background.reconciler import Reconciler
from nri_resmgr.app.host_settings.report import HostReport
from nri_resmgr.app.host_settings.settings import HostAccess, HostSettings
from nri_resmgr.app.host_settings.wanted import Wanted
from nri_resmgr.app.observing.history import History
from nri_resmgr.classes.cpu.cpu_class import CpuClass
from nri_resmgr.classes.irq.requests import ContainerCpus, IrqAffinity
from nri_resmgr.config.cpu_classes import CpuClassUse
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.policy.host_use import HostUse
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, KiloHertz
from tests.daemon.host_nodes import KERNEL, contents
from tests.host.cpu_trees import MACHINE, intel_pstate, write

QUIET: Final = CpuClass(name="quiet", max=KiloHertz(1_200_000), epp="power")
CLASSES: Final = CpuClassUse(classes={"quiet": QUIET})
NOTHING: Final = HostUse()
SOON: Final = 1e-9  # seconds between two repairs


def quiet(cpus: str, *wishes: ContainerCpus) -> HostUse:
    """CPUs that are in the class of `CLASSES`, and wishes about interrupts."""
    return HostUse(
        {"quiet": CpuSet.parse(cpus)}, wishes, available=CpuSet.of(*range(8))
    )


def wish(
    cpus: str, claim: tuple[str, ...], mask: tuple[str, ...] = ()
) -> ContainerCpus:
    return ContainerCpus(CpuSet.parse(cpus), IrqAffinity(claim, mask))


@attrs.define(eq=False)
class Host:
    """A host, what it was like at first, and what sets it.

    Attributes:
        root: Of its files.
        before: All of them.
        access: How it is set.
        state: Where it is kept how all was.
        wanted: What a policy wants of it.
        reconciler: Sets it.
    """

    root: Path
    before: Mapping[str, str]
    access: HostAccess
    state: StateDir
    wanted: Wanted = attrs.field(init=False)
    reconciler: Reconciler[HostSettings] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.wanted = Wanted(NOTHING, CLASSES, ("*",), MACHINE)
        self.reconciler = Reconciler("host")
        report = HostReport(History())
        self.reconciler.applier = HostSettings(self.access, lambda: self.wanted, report)

    @property
    def report(self) -> HostReport:
        assert self.reconciler.applier is not None
        return self.reconciler.applier.report

    def changed(self) -> dict[str, str]:
        found = contents(self.root)
        return {path: t for path, t in found.items() if self.before.get(path) != t}

    def set(self, path: str, text: str) -> None:
        file = self.root / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    async def follow(
        self,
        use: HostUse,
        classes: CpuClassUse = CLASSES,
        machine: Machine = MACHINE,
        *,
        looks: bool = False,
    ) -> None:
        self.wanted = Wanted(use, classes, ("*",), machine)
        await self.reconciler.reconcile(looks=looks)

    def successor(self, **more: Any) -> Host:
        """Return what comes after a kill; *more* is of `HostAccess`."""
        access = _access(self.root, self.state, more)
        return Host(self.root, self.before, access, self.state)


def _access(root: Path, state: StateDir | None, more: Mapping[str, Any]) -> HostAccess:
    return HostAccess(HostTree(root), state, **{"verify_interval": SOON, **more})


@contextmanager
def host(files: Mapping[str, str] | None = None, **access: Any) -> Iterator[Host]:
    """Write a host out, below a short path: sockets have no long ones.

    Args:
        files: Besides those of the drivers and the kernel.
        access: Of `HostAccess`; without a ``state`` there is one.
    """
    with tempfile.TemporaryDirectory(prefix="hst") as folder:
        root = Path(folder) / "host"
        write(root, intel_pstate() | KERNEL | dict(files or {}))
        with contextlib.closing(StateDir.open(f"{folder}/state")) as state:
            made = _access(root, access.pop("state", state), access)
            yield Host(root, contents(root), made, state)
