"""A bus of its own, and a service on it that takes properties as systemd does."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs
from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    new_error,
    new_method_call,
    new_method_return,
)
from jeepney.io.asyncio import DBusConnection, open_dbus_connection

from nri_resmgr.values import CpuSet
from tests.real_host.absent import give_up
from tests.real_host.patience import wait_until

SOCKET: Final = "run/dbus/system_bus_socket"

_CONFIG: Final = """
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""

# Source: org.freedesktop.systemd1(5), "Scope Unit Objects".
_KINDS: Final = {"AllowedCPUs": "ay", "AllowedMemoryNodes": "ay", "CPUWeight": "t"}

_SYSTEMD: Final = "org.freedesktop.systemd1"


@attrs.define(eq=False)
class Bus:
    """A dbus-daemon that can be stopped and started again."""

    root: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """As in DBUS_SYSTEM_BUS_ADDRESS."""
        return f"unix:path={self.root / SOCKET}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        program = shutil.which("dbus-daemon")
        if program is None:
            give_up("dbus-daemon is not installed")
        link = self.root / SOCKET
        link.parent.mkdir(parents=True, exist_ok=True)
        # A bus takes shorter paths than pytest's folders have.
        path = Path(tempfile.mkdtemp(prefix="bus-")) / "socket"
        link.symlink_to(path)
        config = self.root / "bus.conf"
        config.write_text(_CONFIG.format(socket=path))
        self.process = subprocess.Popen(
            [program, f"--config-file={config}", "--nofork", "--nopidfile"],
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: _listens(path), "a bus")
        except Exception:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it; all connections end."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None
            link = self.root / SOCKET
            shutil.rmtree(link.readlink().parent)
            link.unlink()


def _listens(path: Path) -> bool:
    # It is there before connections are accepted.
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextmanager
def bus_below(root: Path) -> Iterator[Bus]:
    """Start a bus whose socket is where a host with this root has it."""
    bus = Bus(root)
    bus.start()
    try:
        yield bus
    finally:
        bus.stop()


@attrs.define(eq=False)
class SystemdDouble:
    """What a systemd on a bus was asked for.

    Attributes:
        calls: Unit, whether at runtime only, and properties with sets of numbers.
        missing: Units that it does not know.
        refuses: Whether it rejects all calls.
        answers: Cleared while it does not answer.
        clients: The connections from which calls came.
    """

    connection: DBusConnection
    calls: list[tuple[str, bool, dict[str, str]]] = attrs.field(factory=list)
    missing: set[str] = attrs.field(factory=set)
    refuses: bool = False
    answers: asyncio.Event = attrs.field(factory=asyncio.Event)
    clients: set[str] = attrs.field(factory=set)

    def values(self, unit: str) -> list[dict[str, str]]:
        """Return the properties of each call for a unit."""
        return [values for name, _, values in self.calls if name == unit]

    async def serve(self) -> None:
        """Answer calls until the connection ends."""
        with suppress(EOFError, OSError):
            while True:
                call = await self.connection.receive()
                if call.header.message_type is MessageType.method_call:
                    await self.answers.wait()
                    await self.connection.send(self._answer(call))

    def _answer(self, call: Message) -> Message:
        fields = call.header.fields
        self.clients.add(fields[HeaderFields.sender])
        assert fields[HeaderFields.interface] == f"{_SYSTEMD}.Manager"
        assert fields[HeaderFields.member] == "SetUnitProperties"
        assert fields[HeaderFields.signature] == "sba(sv)"
        unit, is_runtime, properties = call.body
        if self.refuses:
            denied = "org.freedesktop.DBus.Error.AccessDenied"
            return new_error(call, denied, "s", ("Permission denied",))
        if unit in self.missing:
            text = f"Unit {unit} not found."
            return new_error(call, f"{_SYSTEMD}.NoSuchUnit", "s", (text,))
        values = {}
        for name, (kind, value) in properties:
            assert kind == _KINDS[name]
            values[name] = str(value) if kind == "t" else decoded(bytes(value))
        self.calls.append((unit, is_runtime, values))
        return new_method_return(call)


def decoded(mask: bytes) -> str:
    """Return the numbers in a set as systemd's ``cpu_set_from_dbus`` reads it."""
    numbers = [
        8 * at + bit
        for at, one in enumerate(mask)
        for bit in range(8)
        if one >> bit & 1
    ]
    return str(CpuSet.of(*numbers))


@asynccontextmanager
async def systemd_on(bus: Bus) -> AsyncIterator[SystemdDouble]:
    """Have a systemd on a bus; it answers at once."""
    connection = await open_dbus_connection(bus.address)
    double = SystemdDouble(connection)
    double.answers.set()
    this_bus = DBusAddress(
        "/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus"
    )
    call = new_method_call(this_bus, "RequestName", "su", (_SYSTEMD, 0))
    await connection.send(call)
    while (await connection.receive()).header.message_type is MessageType.signal:
        pass
    serving = asyncio.create_task(double.serve())
    try:
        yield double
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        connection.writer.close()
