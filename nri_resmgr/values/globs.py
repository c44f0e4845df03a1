"""Go's globs: those of `fnmatch`, except that ``[^]`` negates a set."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import translate

from nri_resmgr.values.errors import InputError


@dataclass(eq=False)
class BadGlob(InputError):
    """A set of characters in a glob is not closed."""

    glob: str

    def __str__(self) -> str:
        return f"not a glob: {self.glob!r} (a set begins with [ and ends with ])"


def check_glob(glob: str) -> None:
    """Check that all sets of a glob are closed; `fnmatch` would take ``[`` literally.

    Raises:
        BadGlob: A set is not closed.

    Source:
        Go, path/filepath, ``Match``.
    """
    at = 0
    while (at := glob.find("[", at)) >= 0:
        first = at + 2 if glob[at + 1 : at + 2] in ("^", "!") else at + 1
        at = glob.find("]", first + 1)  # the first character may be a bracket itself
        if at < 0:
            raise BadGlob(glob)


def glob_pattern(glob: str) -> str:
    """Return a glob as a regular expression that matches whole strings.

    >>> import re
    >>> [name for name in ("a1", "b1", "a11") if re.match(glob_pattern("[^b]?"), name)]
    ['a1']
    """
    return translate(glob.replace("[^", "[!"))
