"""Keeps the webhook's certificates: a round each minute in each replica."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Final

import msgspec

from nri_resmgr.agent.api import ApiClient, Ref
from nri_resmgr.agent.api.errors import Conflict
from nri_resmgr.host.bounded import has_text, reason
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError
from nri_resmgr.webhook.own_certificates.cluster import (
    Found,
    publish,
    read_secret,
    write_secret,
)
from nri_resmgr.webhook.own_certificates.openssl import make_pair
from nri_resmgr.webhook.own_certificates.plan import (
    Pair,
    Step,
    Stored,
    after,
    next_step,
)

log = Logger(__name__)

_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_MAKES: Final = (Step.MAKE_CURRENT, Step.MAKE_FOLLOWING)


class KeeperOptions(msgspec.Struct, frozen=True):
    """Settings of a keeper.

    Attributes:
        secret: The Secret; it has to exist.
        configurations: Webhook configurations that name the service.
        names: DNS names of the service.
        folder: Where the server finds its certificate.
        days: Life of a certificate.
        wait: Seconds from one step of a rotation to the next, in which all replicas
            have had some rounds, and API servers have noticed other CAs.
        pause: Seconds between two rounds.
        retry: Seconds after a round that failed.
    """

    secret: Ref
    configurations: Sequence[Ref]
    names: Sequence[str]
    folder: Path
    days: int = 90
    wait: float = 600.0
    pause: float = 60.0
    retry: float = 5.0


@dataclass(eq=False)
class FolderUnusable(HostError):
    """The folder for the certificate cannot be written."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"cannot write {self.path}: {self.why}"


class CertificateKeeper:
    """Makes certificates, publishes their CAs, and rotates them without a gap.

    Args:
        api: The client of the API server.
        options: Settings.
        now: The clock by which certificates expire.

    Attributes:
        problem: Why the last round failed; empty if it did not.
        is_kept: Whether a round has written the certificate to the folder.
        steps: Number of steps that were done.
    """

    def __init__(
        self,
        api: ApiClient,
        options: KeeperOptions,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._options = options
        self._now = now
        self._version = ""
        self._known_since: float | None = None
        self.problem = ""
        self.is_kept = False
        self.steps = 0

    async def run(self) -> None:
        """Keep certificates until cancelled."""
        while True:
            try:
                is_done = await self.round()
            except Conflict:
                is_done = False  # another replica was first
            except HostError as error:
                is_done = False
                self._note(str(error))
            else:
                self._note("")
                # A step only changes the Secret: the round after it writes the files.
                self.is_kept = self.is_kept or is_done
            await asyncio.sleep(self._options.pause if is_done else self._options.retry)

    async def round(self) -> bool:
        """Do the next step, if there is one; return whether there was none.

        Raises:
            Conflict: Another replica did a step meanwhile.
            ApiError: The API server cannot be asked.
            HostError: A certificate cannot be made, or not be written.
        """
        found = await read_secret(self._api, self._options.secret)
        step = next_step(found.stored, self._now(), is_known=self._is_known(found))
        if step is not Step.NOTHING:
            await self._do(step, found)
            return False
        # API servers first: a certificate whose CA they do not know is refused.
        were_published = [
            await publish(self._api, one, found.stored.bundle)
            for one in self._options.configurations
        ]
        if not all(were_published) or self._version != found.version:
            self._known_since = monotonic()
        self._version = found.version
        self._write(found.stored)
        return True

    def _is_known(self, found: Found) -> bool:
        """Return whether what is stored has been published for long enough."""
        if self._known_since is None or self._version != found.version:
            return False
        return monotonic() - self._known_since >= self._options.wait

    async def _do(self, step: Step, found: Found) -> None:
        made: Pair | None = None
        if step in _MAKES:
            options = self._options
            made = await asyncio.to_thread(make_pair, options.names, options.days)
        stored = after(step, found.stored, made)
        await write_secret(self._api, self._options.secret, stored, found.version)
        self.steps += 1
        self._known_since = None
        log.info("webhook.certificates", step=step.name.lower().replace("_", "-"))

    def _write(self, stored: Stored) -> None:
        if stored.current is None:
            raise AssertionError("without one, the next step is to make it")
        # The server waits for a key that fits.
        for name, text in (
            (_KEY, stored.current.key),
            (_CERTIFICATE, stored.current.certificate),
        ):
            self._write_file(self._options.folder / name, text)

    def _write_file(self, path: Path, text: str) -> None:
        try:
            if path.exists() and has_text(path, text):
                return
            new = path.with_suffix(".new")
            new.unlink(missing_ok=True)
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "w") as file:
                file.write(text)
            new.replace(path)
        except OSError as error:
            raise FolderUnusable(path, reason(error)) from None

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("webhook.certificates-failed", why=problem)
        elif self.problem and not problem:
            log.info("webhook.certificates-recovered")
        self.problem = problem
