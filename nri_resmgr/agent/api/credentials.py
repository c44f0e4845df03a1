"""Tokens, certificates and CAs: read, and read again when they are rotated."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.host.bounded import Bound, read_file, reason
from nri_resmgr.values import InputError

# A bundle of CAs has some KiB for each; the CAs of all the web are 220 KiB.
CREDENTIAL: Final = Bound(1 << 20, "a credential", "check that it is the intended file")
_PERIOD: Final = 60.0


class Source(msgspec.Struct, frozen=True):
    """A credential: its text, or the file that has it and may be rotated.

    Attributes:
        text: Used where there is no path.
        path: Of the file.
    """

    text: bytes = b""
    path: Path | None = None

    def __str__(self) -> str:
        return str(self.path) if self.path else "the kubeconfig"

    def __repr__(self) -> str:
        return f"Source({self})"  # a token is in no log and no traceback

    def read(self) -> bytes:
        """Return the text; raises `OSError`."""
        return self.text if self.path is None else read_file(self.path, CREDENTIAL)


class Access(msgspec.Struct, frozen=True):
    """Address and credentials of an API server.

    Attributes:
        server: A URL, such as ``https://[fd00::1]:443``; it may have a path.
        ca: Certificates of CAs; none for those of the system.
        token: A bearer token.
        certificate: A client certificate, with its chain.
        key: Of the certificate.
        is_verified: Whether the server's certificate is checked. Only a kubeconfig can
            switch that off.
        server_name: The name in the server's certificate, where it is not the host.
        namespace: That of the ServiceAccount, or of the kubeconfig's context; empty if
            neither says.
    """

    server: str
    ca: Source | None = None
    token: Source | None = None
    certificate: Source | None = None
    key: Source | None = None
    is_verified: bool = True
    server_name: str = ""
    namespace: str = ""


@dataclass(eq=False)
class BadCredentials(InputError):
    """A token, certificate, key or CA cannot be read or used."""

    what: str
    source: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} of {self.source}: {self.why}"


class _TlsFiles(msgspec.Struct, frozen=True):
    """Files of a TLS context."""

    ca: bytes | None
    certificate: bytes | None
    key: bytes | None


class Credentials:
    """The credentials of an `Access`, at most a minute old.

    A file that cannot be read, or is half-written, is read again later; what was read
    before stays in use.

    Args:
        access: Where they are.
        period: The seconds for which what was read counts.
        clock: Monotonic.

    Raises:
        BadCredentials: They cannot be read now, or are not usable.
    """

    def __init__(
        self,
        access: Access,
        period: float = _PERIOD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._period = period
        self._clock = clock
        self._token = self._read_token()
        self._files = self._read_files()
        self._context = self._make_context(self._files)
        self._token_read = self._files_read = clock()
        self._reloaded: float | None = None

    @property
    def described(self) -> str:
        """The kind of credentials, for a sentence."""
        access = self._access
        if access.token is not None:
            return f"the token of {access.token}"
        if access.certificate is not None:
            return f"the client certificate of {access.certificate}"
        return "a request without credentials"

    def token(self) -> str:
        """Return the bearer token, which may be empty."""
        if self._clock() - self._token_read >= self._period:
            self.renew()
        return self._token

    def renew(self) -> None:
        """Read the token again, as after a 401."""
        self._token_read = self._clock()
        try:
            self._token = self._read_token()
        except BadCredentials:
            return  # the server says what it thinks of the one there is

    def context(self) -> ssl.SSLContext:
        """Return what to make TLS connections by; another object after a rotation."""
        if self._clock() - self._files_read >= self._period:
            self._reload()
        return self._context

    def refused(self) -> bool:
        """Take notice that a certificate was refused.

        Returns:
            Whether files have changed, so that another attempt makes sense. They are
            looked at once a minute at most.
        """
        now = self._clock()
        if self._reloaded is not None and now - self._reloaded < self._period:
            return False
        self._reloaded = now
        before = self._context
        self._reload()
        return self._context is not before

    def _reload(self) -> None:
        self._files_read = self._clock()
        try:
            files = self._read_files()
            if files != self._files:
                self._context = self._make_context(files)
                self._files = files
        except BadCredentials:
            return  # half-written, or not yet complete

    def _read_token(self) -> str:
        source = self._access.token
        text = _read("token", source)
        if source is None or text is None:
            return ""
        token = text.decode(errors="replace").strip()
        # It becomes a header: nothing may follow in another line.
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise BadCredentials("token", str(source), "it is empty or no token")
        return token

    def _read_files(self) -> _TlsFiles:
        access = self._access
        return _TlsFiles(
            ca=_read("CA", access.ca),
            certificate=_read("client certificate", access.certificate),
            key=_read("key", access.key),
        )

    def _make_context(self, files: _TlsFiles) -> ssl.SSLContext:
        access = self._access
        context = unverified_context()
        if access.is_verified:
            context.verify_mode = ssl.CERT_REQUIRED
            context.check_hostname = True
            _load_ca(context, files.ca, str(access.ca))
        if files.certificate and files.key:
            _load_chain(context, files, str(access.certificate))
        return context


def unverified_context() -> ssl.SSLContext:
    """Return a context that accepts any server."""
    # Not `create_default_context`: from Python 3.13 on it demands extensions that the
    # CAs of many clusters do not have.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _read(what: str, source: Source | None) -> bytes | None:
    if source is None:
        return None
    try:
        return source.read()
    except OSError as error:
        raise BadCredentials(what, str(source), reason(error)) from None


def _load_ca(context: ssl.SSLContext, ca: bytes | None, source: str) -> None:
    if ca is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=ca.decode("ascii", errors="replace"))
    except (ssl.SSLError, ValueError) as error:
        why = f"it has no certificate in PEM form ({error})"
        raise BadCredentials("CA", source, why) from None


def _load_chain(context: ssl.SSLContext, files: _TlsFiles, source: str) -> None:
    # OpenSSL reads them from files only, and a key of a kubeconfig must not get onto a
    # disk.
    try:
        with _in_memory(files.certificate) as chain, _in_memory(files.key) as key:
            # Without a password: OpenSSL would ask for one on the terminal.
            context.load_cert_chain(chain, key, password="")
    except (ssl.SSLError, ValueError) as error:
        why = f"certificate and key are not usable ({error})"
        raise BadCredentials("client certificate", source, why) from None


@contextmanager
def _in_memory(text: bytes | None) -> Iterator[str]:
    fd = os.memfd_create("credential", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(text or b"")
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
