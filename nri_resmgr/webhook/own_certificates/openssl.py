"""Makes keys and certificates by the program ``openssl``.

Not by a library: `cryptography` takes 18 MiB on disk and 17 MiB of memory, for
something that happens every two months, and has an OpenSSL of its own to be kept
current.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from nri_resmgr.values import HostError
from nri_resmgr.values.shorten import shortened
from nri_resmgr.webhook.own_certificates.plan import Pair

_SECONDS: Final = 30.0
_LONGEST: Final = 300  # characters of what it prints

_KEY: Final = ("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")

# What is not said here would be read from the system's file.
_CONFIG: Final = """\
[req]
prompt = no
distinguished_name = name
[name]
CN = {name}
[ca]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = {names}
"""


@dataclass(eq=False)
class OpensslFailed(HostError):
    """The program is missing, or failed."""

    why: str

    def __str__(self) -> str:
        return f"openssl, which makes certificates: {self.why}"


def make_pair(names: Sequence[str], days: int) -> Pair:
    """Make a CA and a certificate of a server; the CA's key is forgotten.

    Args:
        names: The server's DNS names.
        days: The life of the certificate.

    Raises:
        OpensslFailed: It cannot be made.
    """
    authority_key, key = _openssl(_KEY), _openssl(_KEY)
    alternatives = ", ".join(f"DNS:{name}" for name in names)
    config = _CONFIG.format(name="nri-resmgr-webhook", names=alternatives)
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(_in_memory(content))
            for name, content in (
                ("config", config),
                ("ca", authority_key),
                ("key", key),
            )
        }
        request = ("req", "-new", "-x509", "-sha256", "-config", _path(files["config"]))
        # It is valid for a day longer than what it signs.
        authority = _openssl(
            (*request, "-extensions", "ca", "-days", str(days + 1)),
            ("-key", _path(files["ca"])),
            files=files.values(),
        )
        signer = stack.enter_context(_in_memory(authority))
        certificate = _openssl(
            (*request, "-extensions", "server", "-days", str(days)),
            ("-key", _path(files["key"])),
            ("-CA", _path(signer), "-CAkey", _path(files["ca"])),
            files=(*files.values(), signer),
        )
    return Pair(authority, certificate, key)


def _path(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


@contextmanager
def _in_memory(content: str) -> Iterator[int]:
    """Keep a text where it has no name: keys are in no file system."""
    fd = os.memfd_create("openssl")
    try:
        os.write(fd, content.encode())
        yield fd
    finally:
        os.close(fd)


def _openssl(*words: Sequence[str], files: Iterable[int] = ()) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and no argument of others
            ["openssl", *(one for some in words for one in some)],  # noqa: S607 - where PATH has it
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_SECONDS,
            check=False,
            pass_fds=tuple(files),
        )
    except OSError as error:
        raise OpensslFailed(os.strerror(error.errno or 0).lower()) from None
    except subprocess.TimeoutExpired:
        raise OpensslFailed(f"no end within {_SECONDS:g} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise OpensslFailed(shortened(lines[-1], _LONGEST))
    return done.stdout
