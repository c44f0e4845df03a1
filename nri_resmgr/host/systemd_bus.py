"""Sets properties of systemd's units, and restarts units, by D-Bus.

This needs the optional dependency jeepney: `systemd_units.load_bus` imports it where
there are units to set.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageFlag,
    MessageType,
    Properties,
    new_method_call,
)
from jeepney.auth import BEGIN, Authenticator
from jeepney.bus import get_connectable_addresses
from jeepney.bus_messages import message_bus
from jeepney.io.asyncio import DBusConnection

from nri_resmgr.host.systemd_units import (
    NoSuchUnit,
    SystemdUnreachable,
    UnitNotActive,
    UnitRejected,
    UnitValues,
)

# systemd is busy for seconds while it reloads many units; callers of D-Bus usually wait
# for 25 s.
_PATIENCE: Final = 25.0  # seconds

# The bus itself answers; a connection that is not read would delay the next try.
_CONNECTS: Final = 5.0  # seconds

_MANAGER: Final = DBusAddress(
    "/org/freedesktop/systemd1",
    bus_name="org.freedesktop.systemd1",
    interface="org.freedesktop.systemd1.Manager",
)
_UNIT: Final = "org.freedesktop.systemd1.Unit"

_NO_JOB: Final = (0, "/")

_LOOK: Final = 0.1  # seconds between two looks at a unit that restarts

# A unit that is to be active; systemd reloads by itself where the unit has that.
_RUNNING: Final = frozenset({"active", "reloading"})

_NO_SUCH_UNIT: Final = "org.freedesktop.systemd1.NoSuchUnit"

# systemd is not on this bus, or leaves it, as while it executes itself again.
_AWAY: Final = frozenset(
    f"org.freedesktop.DBus.Error.{name}"
    for name in ("ServiceUnknown", "NameHasNoOwner", "NoReply", "Disconnected")
)


class SystemdBus:
    """A connection to the bus on which systemd is.

    There is one call at a time, so a reply needs no task that receives it.

    Args:
        connection: Authenticated.
        socket: Of the bus, for errors.
    """

    def __init__(self, connection: DBusConnection, socket: str) -> None:
        self._connection = connection
        self._socket = socket

    @classmethod
    async def connect(cls, address: str) -> SystemdBus:
        """Connect to a bus.

        Args:
            address: As in DBUS_SYSTEM_BUS_ADDRESS; the first unix socket counts.

        Raises:
            SystemdUnreachable: There is no bus, or it refuses the connection.
        """
        try:
            socket = next(get_connectable_addresses(address))
        except (ValueError, RuntimeError) as error:
            raise SystemdUnreachable(address, f"not an address: {error}") from error
        async with _reaching(socket, _CONNECTS):
            connection = await _connected(socket)
        return cls(connection, socket)

    async def set_unit(self, unit: str, values: UnitValues) -> None:
        """Set what a unit may use until the next boot, as runtimes do themselves.

        Raises:
            SystemdUnreachable: Connect again later.
            UnitRejected: Other units may be set.
        """
        properties: list[tuple[str, tuple[str, bytes | int]]] = []
        if values.cpus:
            properties.append(("AllowedCPUs", ("ay", _mask_of(values.cpus.bits))))
        if values.mems:
            mask = _mask_of(values.mems.bits)
            properties.append(("AllowedMemoryNodes", ("ay", mask)))
        if values.weight:
            properties.append(("CPUWeight", ("t", values.weight)))
        is_runtime = True
        body = (unit, is_runtime, properties)
        call = new_method_call(_MANAGER, "SetUnitProperties", "sba(sv)", body)
        await self._called(call, unit)

    async def check_active(self, unit: str) -> None:
        """Check that a unit runs.

        Raises:
            SystemdUnreachable: The bus or systemd does not answer.
            UnitRejected: systemd does not know it, or does not say.
            UnitNotActive: It does not run.
        """
        path = await self._path_of(unit)
        state = str(await self._property(unit, path, "ActiveState"))
        if state not in _RUNNING:
            raise UnitNotActive(unit, state)

    async def restart_unit(self, unit: str) -> None:
        """Restart a unit, and wait until it is active.

        It takes as long as systemd lets the unit start.

        Raises:
            SystemdUnreachable: It may have been restarted.
            UnitRejected: It was not restarted.
            UnitNotActive: It was restarted, and does not run.
        """
        body = (unit, "replace")
        await self._called(new_method_call(_MANAGER, "RestartUnit", "ss", body), unit)
        path = await self._path_of(unit)
        # Until its job is done: the one that was asked for, or one in its place.
        while await self._property(unit, path, "Job") != _NO_JOB:  # noqa: ASYNC110
            # A signal would need a task that receives it.
            await asyncio.sleep(_LOOK)
        await self.check_active(unit)

    async def _path_of(self, unit: str) -> str:
        # Loads it if it is not in memory, as an inactive one is.
        call = new_method_call(_MANAGER, "LoadUnit", "s", (unit,))
        (path,) = (await self._called(call, unit)).body
        return str(path)

    async def _property(self, unit: str, path: str, name: str) -> object:
        address = DBusAddress(path, bus_name=_MANAGER.bus_name, interface=_UNIT)
        call = Properties(address).get(name)
        ((_, value),) = (await self._called(call, unit)).body
        return value

    async def _called(self, call: Message, unit: str) -> Message:
        # Where systemd is not on the bus, the bus need not try to start it.
        call.header.flags |= MessageFlag.no_auto_start
        async with _reaching(self._socket):
            reply = await _reply(self._connection, call)
        if reply.header.message_type is MessageType.error:
            error, why = _error_of(reply)
            if error in _AWAY:
                raise SystemdUnreachable(self._socket, why)
            kind = NoSuchUnit if error == _NO_SUCH_UNIT else UnitRejected
            raise kind(unit, error, why)
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._connection.writer.close()


@asynccontextmanager
async def _reaching(socket: str, patience: float = _PATIENCE) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(patience):
            yield
    # ValueError: what the other side sends is not D-Bus, or a refused authentication.
    except (OSError, EOFError, TimeoutError, ValueError) as error:
        raise SystemdUnreachable(socket, _sentence(error, patience)) from error


async def _connected(socket: str) -> DBusConnection:
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        dialog = Authenticator()
        for request in dialog:
            writer.write(request)
            await writer.drain()
            dialog.feed(await _some(reader))
        writer.write(BEGIN)
        connection = DBusConnection(reader, writer)
        await _reply(connection, message_bus.Hello())
    except BaseException:
        writer.close()
        raise
    return connection


async def _some(reader: asyncio.StreamReader) -> bytes:
    found = await reader.read(1024)
    if not found:
        raise EOFError
    return found


async def _reply(connection: DBusConnection, call: Message) -> Message:
    serial = next(connection.outgoing_serial)
    await connection.send(call, serial=serial)
    while True:
        message: Message = await connection.receive()
        if message.header.fields.get(HeaderFields.reply_serial) == serial:
            return message


def _mask_of(bits: int) -> bytes:
    """Return a set as systemd has it: a bit per number, the lowest byte first.

    Source:
        systemd, src/shared/cpu-set-util.c, ``cpu_set_to_dbus``.
    """
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _error_of(reply: Message) -> tuple[str, str]:
    name = str(reply.header.fields.get(HeaderFields.error_name))
    # The first argument is a text by convention.
    text = str(reply.body[0]) if reply.body else ""
    return name, f"{text} ({name})" if text else name


def _sentence(error: Exception, patience: float) -> str:
    match error:
        case EOFError():
            return "it closed the connection"
        case TimeoutError():
            return f"it did not answer within {patience:.0f} s"
        case OSError() if error.strerror:
            return error.strerror
        case _:
            return str(error)
