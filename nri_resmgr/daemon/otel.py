"""What exports to a collector of OpenTelemetry share; imports its packages late."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeAlias

from nri_resmgr.app.background.threads import in_thread, start_last_thread
from nri_resmgr.process.tls import import_with_tls
from nri_resmgr.version import our_version

Signal: TypeAlias = Literal["logs", "metrics", "traces"]

_PACKAGE: Final = "opentelemetry"
_EXPORTERS: Final[dict[Signal, tuple[str, str]]] = {
    "logs": ("_log_exporter", "OTLPLogExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "traces": ("trace_exporter", "OTLPSpanExporter"),
}

# An unreachable collector must not delay the end of the process.
_FLUSH_TIMEOUT: Final = 1.0  # seconds


def facts() -> dict[str, str]:
    """Return attributes of the process; OpenTelemetry's variables override them."""
    found = {"service.name": "nri-resmgr", "service.version": our_version()}
    if node := os.environ.get("NODE_NAME"):
        found["k8s.node.name"] = node
    return found


async def new_exporter(signal: Signal, *, by_grpc: bool, **arguments: Any) -> Any:
    """Create the exporter of a signal, in a thread: with imports it takes 0.3 s.

    Args:
        signal: As OpenTelemetry names it.
        by_grpc: Whether the exporter over gRPC, instead of that over HTTP.
        arguments: Of its class; without any it sends to the collector of
            OpenTelemetry's variables.

    Raises:
        ImportError: The extra is not installed.
        ValueError: A variable is invalid.
    """
    module, name = _EXPORTERS[signal]
    protocol = "grpc" if by_grpc else "http"
    path = f"{_PACKAGE}.exporter.otlp.proto.{protocol}.{module}"
    return await in_thread(lambda: getattr(import_with_tls(path), name)(**arguments))


_reasons: ContextVar[list[str] | None] = ContextVar("reasons", default=None)


class _Keeper(logging.Filter):
    """Keeps the records of a call from all else."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is of no call; note its text otherwise."""
        if (found := _reasons.get()) is not None:
            found.append(record.getMessage())
        return found is None


_KEEPER: Final = _Keeper()


@contextmanager
def reasons_of(exporter: object) -> Iterator[list[str]]:
    """Gather what an exporter logs in a call, which goes nowhere else.

    All exporters over gRPC have one logger: each call gets the records of its own
    thread.

    Yields:
        Texts of records; the first one has the reason of a failure, others repeat it.
    """
    for one in type(exporter).__mro__:
        if one.__module__.startswith(_PACKAGE):
            logger = logging.getLogger(one.__module__)
            if _KEEPER not in logger.filters:
                # The first filter: another drops what was logged in the last seconds,
                # the reason of another call. Not in place: a thread may go through it.
                logger.filters = [_KEEPER, *logger.filters]
    found: list[str] = []
    token = _reasons.set(found)
    try:
        yield found
    finally:
        _reasons.reset(token)


async def flush(send: Callable[[], object]) -> None:
    """Call in a thread; wait a second at most, though the libraries would retry."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        try:
            send()
        finally:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(ended.set)

    start_last_thread(end)
    deadline = loop.time() + _FLUSH_TIMEOUT
    # At the end of the process each task around this one cancels it again.
    while not ended.is_set() and (left := deadline - loop.time()) > 0:
        with suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(ended.wait(), left)
