"""``nri-resmgr inspect``: what the plugins of a runtime change, live."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from nri_proto.levels import VALIDATION
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.line_printer import LinePrinter
from nri_resmgr.cli.output import add_output, each_text, is_document, own_document
from nri_resmgr.cli.render_changes import change_text, content_text
from nri_resmgr.control.times import time_text
from nri_resmgr.log.output import configure_logging
from nri_resmgr.sdk.chain import (
    Chain,
    ChainSession,
    Change,
    Passage,
    as_plain,
    changes,
)
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Identity,
    SocketPath,
    Stub,
    StubOptions,
    ValidateContainerAdjustmentHandler,
    Validation,
)
from nri_resmgr.stub.model import AdjustedField, FieldOwners
from nri_resmgr.stub.transport import DEFAULT_SOCKET
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable

NAME: Final = "inspect"
FIRST, LAST = "00", "99"

# Fields of adjustments that the container of a later plugin does not show.
_UNSEEN: Final = ("CDI_devices", "linux.rdt", "linux.memory_policy")

_EXAMPLES: Final = """\
examples:
  nri-resmgr inspect                           until Ctrl-C
  nri-resmgr inspect --changed                 leave out requests that nothing changed
  nri-resmgr inspect --owners                  name the plugin of each field
  nri-resmgr inspect -o json | jq .container   an object per line, for programs

It registers twice, as 00-inspect and 99-inspect, and compares the requests that both
get. It changes nothing, and does not see
  - requests that another plugin fails before they arrive at 99-inspect; a request that
    fails later has a line
  - changes of a plugin with index 00 or 99 that is called before 00-inspect or after
    99-inspect: the order of equal indices is open
  - updates of other containers in replies to UpdateContainer and StopContainer, and
    updates that plugins send by themselves
  - containers that were created before it connected
  - without --owners: CDI devices, RDT settings, memory policies, updates of other
    containers in replies to CreateContainer, and which plugin has set what

A session that hangs, as after Ctrl-Z, delays the next request by two seconds; then the
runtime disconnects it. With --owners that request fails, too, if it is a creation:
the runtime has each adjustment validated, which inspect always approves (NRI 0.10).
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Connect to the runtime before and after all other plugins, and show what they "
        "change in each request, a line for each."
    )
    parser.epilog = _EXAMPLES
    parser.add_flag(
        "--nri-socket",
        metavar="PATH",
        default=DEFAULT_SOCKET,
        help=f"path of the runtime's NRI socket ({DEFAULT_SOCKET})",
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="show only requests that a plugin has changed",
    )
    parser.add_argument(
        "--owners",
        action="store_true",
        help="show also which plugin has set what in a new container; validates "
        "adjustments, which needs NRI 0.10",
    )
    add_output(parser, each="request")


def run(options: argparse.Namespace) -> int:
    """Print a line for each request until a signal.

    Raises:
        SocketUnusable: No runtime listens at the socket.
        OSError: Standard output cannot be written any more.
    """
    configure_logging("info")  # sessions that begin and end
    asyncio.run(_inspect(options))
    return 0


async def _inspect(options: argparse.Namespace) -> None:
    loop, stubs = asyncio.get_running_loop(), list[Stub]()

    def stop() -> None:
        for stub in stubs:
            stub.stop()

    def stop_soon() -> None:
        loop.call_soon_threadsafe(stop)

    printer = LinePrinter(stop_soon)
    lines = Lines(printer, options.output, only_changed=options.changed)
    chain = Chain(lines.see)
    last = (
        Validator(LAST, chain, lines) if options.owners else ChainSession(LAST, chain)
    )
    connector = SocketPath(options.nri_socket)
    # Whatever goes wrong in a handler, the runtime gets an empty reply.
    stub_options = StubOptions(dry_run=True)
    for session in (ChainSession(FIRST, chain), last):
        identity = Identity(NAME, session.index)
        stubs.append(Stub(session, identity, connector, stub_options))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        await asyncio.gather(*(stub.run() for stub in stubs))
    finally:
        lines.flush()
        printer.finish()


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line.

    Attributes:
        time: By RFC 3339, in UTC.
        compared: Whether 00-inspect got the request as well.
        owners: The fields that each plugin has set or removed; None if not asked for.
        updates: The values for other containers, by their ids.
    """

    time: str
    method: str
    container: str
    compared: bool
    changes: tuple[Change, ...]
    owners: Mapping[str, tuple[str, ...]] | None = None
    updates: Mapping[str, JsonObject] | None = None


class Lines:
    """Prints a line for each request that arrives at the last session.

    Attributes:
        await_owners: Whether a creation is printed only when it is validated, with the
            owners of its fields.
    """

    def __init__(
        self, printer: LinePrinter, output: str, *, only_changed: bool
    ) -> None:
        self._printer = printer
        self._output = output
        self._only_changed = only_changed
        self._held: Row | None = None
        self.await_owners = False

    def see(self, passage: Passage) -> None:
        """Print a request, or keep it until its creation is validated."""
        if passage.index != LAST:
            return
        self.flush()  # one that failed before it was validated
        self._held = Row(
            time_text(time.time_ns()),
            passage.method,
            passage.container,
            bool(passage.since),
            passage.changes,
        )
        if not self.await_owners or passage.method != "CreateContainer":
            self.flush()

    def see_validation(self, validation: Validation) -> None:
        """Print the creation that was kept, with what validators learn about it."""
        if self._held is None:
            return
        adjusted = changes({}, as_plain(validation.adjustment))
        unseen = [one for one in adjusted if one.field.startswith(_UNSEEN)]
        self._held = msgspec.structs.replace(
            self._held,
            changes=(*self._held.changes, *unseen),
            owners=_owners(validation),
            updates={
                update.container_id: as_plain(update.linux) if update.linux else {}
                for update in validation.updates
            },
        )
        self.flush()

    def flush(self) -> None:
        """Print the creation that was kept, if there is one."""
        row, self._held = self._held, None
        if row is not None and (row.changes or row.updates or not self._only_changed):
            self._printer.put(_shown(row, self._output))


class Validator(ChainSession, ConfigureHandler, ValidateContainerAdjustmentHandler):
    """The last session with ``--owners``; it approves everything."""

    def __init__(self, index: str, chain: Chain, lines: Lines) -> None:
        super().__init__(index, chain)
        self._lines = lines

    def configure(self, configuration: Configuration) -> None:
        """Expect validations where the runtime has them."""
        runtime = configuration.runtime
        self._lines.await_owners = bool(runtime.level and runtime.level >= VALIDATION)
        if not self._lines.await_owners:
            why = f"{runtime} has NRI {runtime.level or 'of an unknown release'}"
            print(f"nri-resmgr: no owners: {why}, 0.10 has them", file=sys.stderr)

    def validate_container_adjustment(self, validation: Validation) -> None:
        """Print the owners."""
        self._lines.see_validation(validation)


def _owners(validation: Validation) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    owners = validation.owners.owners.get(validation.container.id, FieldOwners())
    for field, plugins in owners.simple.items():
        for plugin in plugins.split(","):  # all plugins that add hooks
            found.setdefault(plugin.removeprefix("-"), []).append(_name_of(field))
    for field, of_keys in owners.compound.items():
        for key, plugin in of_keys.owners.items():
            names = found.setdefault(plugin.removeprefix("-"), [])
            names.append(f"{_name_of(field)} {key}")
    return {plugin: tuple(sorted(names)) for plugin, names in sorted(found.items())}


def _name_of(field: int) -> str:
    try:
        return AdjustedField(field).name.lower()
    except ValueError:  # of a newer runtime
        return f"field {field}"


def _shown(row: Row, output: str) -> str:
    if is_document(output):
        return each_text(own_document("InspectedRequest", to_plain(row)), output)
    return printable("  ".join((row.time, row.method, row.container, *_words(row))))


def _words(row: Row) -> Iterator[str]:
    if row.changes:
        yield "; ".join(map(change_text, row.changes))
    elif row.compared:
        yield "unchanged"
    if not row.compared:
        yield "not compared: 00-inspect was not connected"
    for key, values in (row.updates or {}).items():
        fields = (
            f"{one.field} {content_text(one.after)}" for one in changes({}, values)
        )
        yield f"updates {key}: {'; '.join(fields)}"
    if row.owners:
        by_plugin = (f"{name}: {', '.join(of)}" for name, of in row.owners.items())
        yield f"[{'; '.join(by_plugin)}]"
