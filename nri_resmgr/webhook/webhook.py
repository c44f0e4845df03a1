"""The webhook as a process: its parts, its paths, and how it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from time import perf_counter
from typing import Final

import msgspec

from nri_resmgr.app.background.supervisor import Part, Supervisor
from nri_resmgr.app.metrics.text import Series, single
from nri_resmgr.log import Logger
from nri_resmgr.process.endpoint import HttpEndpoint
from nri_resmgr.process.insight import ProcessInsight
from nri_resmgr.webhook.certificate import CertificateFiles, LiveCertificate
from nri_resmgr.webhook.connection import Limits
from nri_resmgr.webhook.metrics import (
    BAD,
    CONNECTIONS,
    ReviewCounters,
    series_of_build,
    series_of_certificate,
)
from nri_resmgr.webhook.pods import Form
from nri_resmgr.webhook.review import Answer, Judge, Request, answer_review, mutate
from nri_resmgr.webhook.server import Server

log = Logger(__name__)

MUTATE: Final = "/mutate"
VALIDATE: Final = "/validate"


class WebhookOptions(msgspec.Struct, frozen=True):
    """Settings of a webhook.

    Attributes:
        endpoint: Where API servers connect.
        files: The certificate and its key.
        form: The form of the annotation.
        linger: Seconds between SIGTERM and the end. Until API servers know that this
            replica ends, they still connect.
        http_endpoint: Address of metrics and health; empty for none.
        health_endpoint: Address of health alone; likewise.
        limits: Limits of clients.
    """

    endpoint: HttpEndpoint
    files: CertificateFiles
    form: Form = Form.NRI_PLUGINS
    linger: float = 5.0
    http_endpoint: str = ""
    health_endpoint: str = ""
    limits: Limits = Limits()


class Webhook:
    """Answers reviews of API servers.

    Args:
        options: Settings.
        validate: Judges objects at ``/validate``; None where that is off.
    """

    def __init__(self, options: WebhookOptions, validate: Judge | None = None) -> None:
        self._options = options
        self._judges: dict[str, Judge] = {MUTATE: self._mutate}
        if validate is not None:
            self._judges[VALIDATE] = validate
        self._certificate = LiveCertificate(options.files)
        self._counters = ReviewCounters()
        self._server = Server(
            options.endpoint, self._certificate.context, self._post, options.limits
        )
        self._supervisor = Supervisor()
        self._insight = ProcessInsight(
            self._supervisor, self._series, self._why_not_ready
        )
        self._is_ending = False

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT, and a little longer.

        Raises:
            PartLost: A part cannot be started again.
        """
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(self._supervisor.run(self._parts()))

        def end() -> None:
            if not self._is_ending:
                self._is_ending = True
                loop.call_later(self._options.linger, task.cancel)

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        log.info("webhook.started", annotation=self._options.form.value)
        try:
            await task
        except asyncio.CancelledError:
            log.info("webhook.ended")

    def _parts(self) -> tuple[Part, ...]:
        return (
            Part("certificate", self._certificate.follow, "a new one is not noticed"),
            Part("reviews", self._serve, "pods are not annotated"),
            Part(
                "insight",
                self._serve_metrics,
                "metrics are not served",
                is_essential=False,
            ),
            Part(
                "probes",
                self._serve_health,
                "liveness and readiness are not served",
                is_essential=False,
            ),
        )

    async def _serve_metrics(self) -> None:
        if endpoint := self._options.http_endpoint:
            await self._insight.serve_metrics(endpoint)

    async def _serve_health(self) -> None:
        if endpoint := self._options.health_endpoint:
            await self._insight.serve_health(endpoint)

    def _why_not_ready(self) -> str:
        if self._is_ending:
            return "ending"
        if self._certificate.validity is None:
            return self._certificate.why_not
        return "" if self._server.address else "not listening"

    def _series(self) -> Iterator[Series]:
        yield series_of_build()
        yield from self._counters.series()
        yield single(CONNECTIONS, self._server.clients)
        yield from series_of_certificate(self._certificate)

    async def _serve(self) -> None:
        # Without a certificate no handshake ends: clients should be refused at once.
        while self._certificate.validity is None:  # noqa: ASYNC110 - of files
            await asyncio.sleep(0.1)
        await self._server.serve()

    def _post(self, path: str, body: bytes) -> bytes | None:
        judge = self._judges.get(path)
        if judge is None:
            return None
        begin = perf_counter()
        result: str = BAD
        try:
            result, answer = answer_review(body, judge)
        finally:
            # InputError is an answer, too.
            self._counters.note(path, result, perf_counter() - begin)
        return answer

    def _mutate(self, request: Request) -> Answer:
        return mutate(request, self._options.form)
