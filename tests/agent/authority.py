"""Certificates for tests, made by the `openssl` program."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """A CA with its key, in a folder.

    Args:
        folder: Where its files are; made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.ca = folder / "ca.crt"
        _openssl(
            "req -x509 -days 2 -subj /CN=test-ca",
            *(*_KEY, "-keyout", folder / "ca.key", "-out", self.ca),
        )

    def issue(
        self, name: str, alternative: str = "", days: int = 2
    ) -> tuple[Path, Path]:
        """Return certificate and key.

        Args:
            name: Of the files, and of the subject.
            alternative: Names of a server, such as ``IP:127.0.0.1``.
            days: How long it is valid; -1 for one that has expired.
        """
        key, request, found, extensions = (
            self.folder / f"{name}.{end}" for end in ("key", "csr", "crt", "ext")
        )
        extensions.write_text(f"subjectAltName={alternative}\n" if alternative else "")
        _openssl(
            f"req -new -subj /O=system:nodes/CN={name}",
            *(*_KEY, "-keyout", key, "-out", request),
        )
        _openssl(
            f"x509 -req -days {days} -CAcreateserial",
            *("-CA", self.ca, "-CAkey", self.folder / "ca.key"),
            *("-in", request, "-out", found, "-extfile", extensions),
        )
        return found, key

    def server(
        self, alternative: str = "IP:127.0.0.1,IP:::1", days: int = 2
    ) -> ssl.SSLContext:
        """Return what a server serves by, with a new certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue("server", alternative, days))
        return context


def _openssl(command: str, *more: str | Path) -> None:
    subprocess.run(
        ["openssl", *command.split(), *more], check=True, capture_output=True
    )
