"""The certificate of the server: two files, followed while clients are served."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.host.file_watch import WatchedFile
from nri_resmgr.host.text_file import UnreadableFile
from nri_resmgr.log import Logger
from nri_resmgr.values import HostError
from nri_resmgr.webhook.x509 import BadCertificate, Validity, first_validity

log = Logger(__name__)

LOOK: Final = 2.0
"""Seconds between two looks at the files."""


class CertificateFiles(msgspec.Struct, frozen=True):
    """The files in PEM.

    Attributes:
        certificate: The certificate of the server, and those between it and its CA.
        key: Its key.
    """

    certificate: Path
    key: Path


@dataclass(eq=False)
class BadCertificateFiles(HostError):
    """The files cannot be used, or not together."""

    files: CertificateFiles
    why: str

    def __str__(self) -> str:
        return f"certificate {self.files.certificate}, key {self.files.key}: {self.why}"


class LiveCertificate:
    """A TLS context whose certificate follows its files.

    New connections have the new one, others are not disturbed. What cannot be used is
    logged once, and the one before is kept.

    Attributes:
        context: Of the server.
        validity: Of the certificate in use; None before the first one.
        why_not: Why the files as they are now are not in use; empty if they are.
        changes: How often another certificate was put in use.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        # API servers resume no sessions, and tickets are one more message to a client.
        self.context.num_tickets = 0
        self.validity: Validity | None = None
        self.why_not = "not looked at yet"
        self.changes = 0
        self._in_use: list[str] = []
        self._files = files
        self._watched = [
            WatchedFile(str(one)) for one in (files.certificate, files.key)
        ]

    async def follow(self) -> None:
        """Load what changes until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK)

    def look(self) -> None:
        """Load the certificate if its files have changed."""
        # A list, so that both files are looked at: each look notes what it has seen.
        if not any([one.has_changed() for one in self._watched]):  # noqa: C419
            return
        try:
            self._load()
        except BadCertificateFiles as error:
            if (why := str(error)) != self.why_not:
                log.warning("webhook.bad-certificate", why=why)
            self.why_not = why
        except Exception:
            # A fault of this process, such as no free descriptor: the files are good,
            # and will not change. The next look loads them.
            for one in self._watched:
                one.forget()
            raise

    def _load(self) -> None:
        texts = [self._read(one) for one in self._watched]
        # What was written just before it was read is read again.
        if texts == self._in_use and not self.why_not:
            return
        try:
            validity = first_validity(texts[0])
            # First on another context: a key that does not fit would leave the one in
            # use without any.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
                _load_chain(context, "\n".join(texts))
        except BadCertificate as error:
            raise BadCertificateFiles(self._files, str(error)) from None
        except ssl.SSLError as error:
            why = (error.reason or str(error)).replace("_", " ").lower()
            raise BadCertificateFiles(self._files, why) from None
        self.validity, self.why_not, self._in_use = validity, "", texts
        self.changes += 1
        log.info("webhook.certificate", until=validity.until.isoformat())

    def _read(self, watched: WatchedFile) -> str:
        try:
            return watched.read()
        except UnreadableFile as error:
            raise BadCertificateFiles(self._files, str(error)) from None


def _load_chain(context: ssl.SSLContext, text: str) -> None:
    """Load a chain and its key from a text.

    OpenSSL takes files only. The user's may be replaced between the certificate and the
    key, so it gets one in memory.
    """
    with os.fdopen(os.memfd_create("certificate"), "wb") as file:
        file.write(text.encode())
        file.flush()
        # A call, without which OpenSSL asks on the terminal for an encrypted key.
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=lambda: "")
