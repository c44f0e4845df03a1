"""Export of the log by OpenTelemetry, an optional dependency; imported for it only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.daemon.observability import ExportUse
from nri_resmgr.daemon.otel import facts, flush, new_exporter, reasons_of
from nri_resmgr.log import Logger
from nri_resmgr.log.copies import BATCH, LineCopy, line_copies
from nri_resmgr.log.levels import levels
from nri_resmgr.log.output import plain_fields
from nri_resmgr.version import our_version

log = Logger(__name__)

_SEVERITIES: Final = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
}
_TRACE: Final = "exception.stacktrace"


async def send_log(use: ExportUse) -> None:
    """Send lines that wait until cancelled, then remaining ones for up to a second.

    Args:
        use: How to send them, and the period from a first line to the export of all
            that have come since; a `BATCH` goes at once.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    changed.set()  # lines may wait already
    export = LogExport(await new_exporter("logs", by_grpc=use.by_grpc))
    line_copies.read_by(
        levels.component(__name__).name, lambda: loop.call_soon_threadsafe(changed.set)
    )
    log.info("log.sent", period=use.period)
    try:
        while True:
            await changed.wait()
            changed.clear()
            if line_copies.waiting < BATCH:
                with suppress(TimeoutError):
                    async with asyncio.timeout(use.period):
                        await changed.wait()
            while lines := line_copies.take():
                await in_thread(partial(export.send, lines))
    finally:
        await flush(export.send_rest)
        line_copies.unread()
        export.close()


class LogExport:
    """The way to the collector that OpenTelemetry's variables name.

    Args:
        exporter: Sends there.
    """

    def __init__(self, exporter: LogRecordExporter) -> None:
        self._resource = Resource.create(facts())
        self._exporter: Any = exporter  # not all of it has types
        self._lost = 0  # since it failed

    def send(self, lines: Sequence[LineCopy]) -> None:
        """Send lines; in a thread, for as long as OpenTelemetry's variables allow.

        That it fails is logged once, and that it works again. Lines that cannot be sent
        are counted, and not sent later: a collector may reject them for what they are.
        """
        records = [self._record(one) for one in lines]
        with reasons_of(self._exporter) as reasons:
            result = self._exporter.export(records)
        has_failed = result is not LogRecordExportResult.SUCCESS
        if has_failed:
            line_copies.note_lost(len(lines))
            if not self._lost:
                log.warning("log.not-sent", why=next(iter(reasons), ""))
            self._lost += len(lines)
        elif self._lost:
            log.info("log.sent-again", lost=self._lost)
            self._lost = 0

    def send_rest(self) -> None:
        """Send all lines that wait."""
        while lines := line_copies.take():
            self.send(lines)

    def close(self) -> None:
        """End; a call in progress does not try again."""
        self._exporter.shutdown()

    def _record(self, line: LineCopy) -> ReadableLogRecord:
        shown = {key: one for key, one in line.fields.items() if key != _TRACE}
        record: Any = LogRecord(
            timestamp=line.time,
            observed_timestamp=line.time,
            severity_text=line.level,
            severity_number=_SEVERITIES[line.level],
            body=f"{line.event} {plain_fields(shown)}".rstrip(),
            attributes=dict(line.fields),
            event_name=line.event,
        )
        scope = InstrumentationScope(f"nri_resmgr.{line.component}", our_version())
        return ReadableLogRecord(record, self._resource, scope)
