"""A journal's place in memory, and control over a pretended resctrl."""

from __future__ import annotations

import json
import os

from nri_resmgr.classes.rdt.capabilities import BandwidthMode
from nri_resmgr.host.resctrl import Journal, RdtControl, ResctrlOptions
from nri_resmgr.host.state_dir import StateUnusable
from nri_resmgr.testing.resctrl import Faults, Hardware, Resctrl

CDP = Hardware(options=frozenset({"cdp"}))
MBPS = Hardware(options=frozenset({"mba_MBps"}))


class Kept:
    """Texts that outlive a program, whose writes are steps that may fail."""

    def __init__(self, faults: Faults) -> None:
        self.texts: dict[str, str] = {}
        self._faults = faults

    def read(self, name: str) -> str | None:
        return self.texts.get(name)

    def write(self, name: str, text: str) -> None:
        self._step(name)
        self.texts[name] = text

    def remove(self, name: str) -> None:
        self._step(name)
        self.texts.pop(name, None)

    def set_aside(self, name: str) -> str:
        self._step(name)
        self.texts[f"{name}.bad-1"] = self.texts.pop(name)
        return f"{name}.bad-1"

    @property
    def made(self) -> list[str]:
        text = self.texts.get("resctrl", '{"made": []}')
        made: list[str] = json.loads(text)["made"]
        return made

    def _step(self, name: str) -> None:
        try:
            self._faults.step()
        except OSError as error:
            why = os.strerror(error.errno or 0).lower()
            raise StateUnusable(name, why) from error


class World:
    """A machine that programs of ours are started on, one after the other."""

    def __init__(
        self, hardware: Hardware | None = None, options: ResctrlOptions | None = None
    ) -> None:
        self.resctrl = Resctrl(hardware)
        self.kept = Kept(self.resctrl.faults)
        self.options = options or ResctrlOptions()
        self.control = self.started()

    def started(self) -> RdtControl:
        """Start a program that knows only what is on the machine."""
        hardware = self.resctrl.hardware
        vendor = hardware.throttle.kind if hardware.throttle else ""
        mode = BandwidthMode.AMD if vendor == "AMD" else BandwidthMode.PERCENT
        mode = BandwidthMode.MBPS if hardware.in_mbps else mode
        journal = Journal(self.kept, "this boot")
        self.control = RdtControl(self.resctrl, journal, mode, self.options)
        return self.control

    def others_make(self, name: str, schemata: str = "", mode: str = "") -> None:
        """Let another program make a group."""
        self.resctrl.mkdir(name)
        if schemata:
            self.resctrl.write(f"{name}/schemata", schemata)
        if mode:
            self.resctrl.write(f"{name}/mode", f"{mode}\n")
        self.resctrl.commands.clear()

    @property
    def commands(self) -> list[str]:
        """Return what was done so far, a line each."""
        return [f"{one.what} {one.path}" for one in self.resctrl.commands]

    def schemata(self, name: str) -> str:
        """Return what a group has, without padding."""
        path = f"{name}/schemata" if name else "schemata"
        lines = self.resctrl.read(path).splitlines()
        return "\n".join(line.strip().replace(" ", "") for line in lines)
