"""SHA-256 without OpenSSL, which takes 3 MiB of memory."""

from __future__ import annotations

from importlib import import_module
from typing import Final

# Python's own implementation, which `hashlib` uses where there is no OpenSSL; the names
# are those of Python 3.12 and later, and of 3.11.
_MODULES: Final = ("_sha2", "_sha256")


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal."""
    for name in _MODULES:
        try:
            # Late: neither a start nor a request needs it.
            module = import_module(name)
        except ImportError:
            continue
        return str(module.sha256(content).hexdigest())
    import hashlib  # a build of Python without an implementation of its own

    return hashlib.sha256(content).hexdigest()
