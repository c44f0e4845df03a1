"""Keys and certificates of a control plane, made by ``openssl``."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Final

_EC: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_NAMES: Final = "IP:127.0.0.1,IP:::1,DNS:localhost,DNS:kubernetes.default.svc"


class Certificates:
    """Files in a folder; the authority can be replaced while clients run.

    Attributes:
        authority: What clients trust.
        server, server_key: Of the API server.
        account_key: Signs the tokens of service accounts.
    """

    def __init__(self, folder: Path) -> None:
        self.authority = folder / "ca.crt"
        self.server = folder / "server.crt"
        self.server_key = folder / "server.key"
        self.account_key = folder / "accounts.key"
        self._authority_key = folder / "ca.key"
        self._folder = folder

    def create(self) -> None:
        """Write all files."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.replace_authority()
        _openssl("genrsa", "-out", self.account_key, "2048")

    def replace_authority(self) -> None:
        """Make a new authority and a new certificate of the server."""
        _openssl(
            *("req", "-x509", *_EC, "-days", "30", "-subj", "/CN=authority"),
            *("-keyout", self._authority_key, "-out", self.authority),
        )
        self.issue(self.server, self.server_key, "/CN=kube-apiserver")

    def issue(self, certificate: Path, key: Path, subject: str) -> None:
        """Write a certificate of the authority, and its key.

        Args:
            certificate: File for the certificate.
            key: File for the key.
            subject: Such as ``/O=system:masters/CN=admin``; Kubernetes has a client's
                groups and name of it.
        """
        request, extensions = self._folder / "request", self._folder / "extensions"
        extensions.write_text(f"subjectAltName={_NAMES}\n")
        _openssl("req", *_EC, "-subj", subject, "-keyout", key, "-out", request)
        _openssl(
            *("x509", "-req", "-days", "30", "-in", request, "-out", certificate),
            *("-CA", self.authority, "-CAkey", self._authority_key, "-CAcreateserial"),
            *("-extfile", extensions),
        )


def trusting(authority: Path) -> ssl.SSLContext:
    """Return what a client needs that trusts an authority, by Go's rules.

    Python's own from 3.13 on demand extensions that the CAs of many clusters, and those
    of these tests, do not have.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    return context


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
