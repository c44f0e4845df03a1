"""Globs of Go's, which are those of `fnmatch` but for the sign of a negated set."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import translate

from nri_resmgr.values.errors import InputError


@dataclass(eq=False)
class BadGlob(InputError):
    """A set of signs in a glob has no end."""

    glob: str

    def __str__(self) -> str:
        return f"not a glob: {self.glob!r} (a set begins with [ and ends with ])"


def check_glob(glob: str) -> None:
    """Complain about a set that does not end, which is unlikely to be meant.

    Raises:
        BadGlob: It has one.

    Source:
        Go, path/filepath, ``Match``.
    """
    at = 0
    while (at := glob.find("[", at)) >= 0:
        first = at + 2 if glob[at + 1 : at + 2] in ("^", "!") else at + 1
        at = glob.find("]", first + 1)  # the first sign may be a bracket itself
        if at < 0:
            raise BadGlob(glob)


def glob_pattern(glob: str) -> str:
    """Write a glob as a regular expression for whole texts.

    >>> import re
    >>> [name for name in ("a1", "b1", "a11") if re.match(glob_pattern("[^b]?"), name)]
    ['a1']
    """
    return translate(glob.replace("[^", "[!"))
