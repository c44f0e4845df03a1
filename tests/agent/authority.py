"""Certificates for tests, made by the `openssl` program."""

from __future__ import annotations

import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

# `openssl x509 -req` issues no certificate that has expired since OpenSSL 3.5, and has
# no options for dates before 3.4. `openssl ca` has; it keeps a list of what it issued.
_CONFIGURATION: Final = """\
[ca]
default_ca = test
[test]
database = index.txt
new_certs_dir = .
certificate = ca.crt
private_key = ca.key
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
[any]
organizationName = optional
commonName = supplied
"""


class Authority:
    """A CA with its key, in a folder.

    Args:
        folder: Where its files are; made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.ca = folder / "ca.crt"
        (folder / "ca.conf").write_text(_CONFIGURATION)
        (folder / "index.txt").touch()
        _openssl(
            folder,
            "req -x509 -days 2 -subj /CN=test-ca",
            *(*_KEY, "-keyout", "ca.key", "-out", "ca.crt"),
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
            self.folder,
            f"req -new -subj /O=system:nodes/CN={name}",
            *(*_KEY, "-keyout", key.name, "-out", request.name),
        )
        now = datetime.now(UTC)
        begin, end = now - timedelta(days=2), now + timedelta(days=days)
        _openssl(
            self.folder,
            f"ca -batch -config ca.conf -notext -startdate {begin:%Y%m%d%H%M%SZ}",
            *("-enddate", f"{end:%Y%m%d%H%M%SZ}", "-extfile", extensions.name),
            *("-in", request.name, "-out", found.name),
        )
        return found, key

    def server(
        self, alternative: str = "IP:127.0.0.1,IP:::1", days: int = 2
    ) -> ssl.SSLContext:
        """Return what a server serves by, with a new certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue("server", alternative, days))
        return context


def _openssl(folder: Path, command: str, *more: str) -> None:
    subprocess.run(
        ["openssl", *command.split(), *more],
        cwd=folder,
        check=True,
        capture_output=True,
    )
