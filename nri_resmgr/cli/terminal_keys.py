"""Keys of a terminal, from the bytes that it sends."""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    # The first form of a cursor key is that of the normal, the second that of the
    # application mode; Home and End differ between terminals.
    **{f"\x1b{mode}A": "up" for mode in "[O"},
    **{f"\x1b{mode}B": "down" for mode in "[O"},
    **{f"\x1b{mode}H": "home" for mode in "[O"},
    **{f"\x1b{mode}F": "end" for mode in "[O"},
    "\x1b[1~": "home",
    "\x1b[7~": "home",
    "\x1b[4~": "end",
    "\x1b[8~": "end",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
}

# A sequence of ECMA-48 with parameters, or SS3 with a character; else one character.
_KEY: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.DOTALL)


def keys_of(data: bytes) -> list[str]:
    r"""Return the keys in the order of *data*: names, or characters that are printable.

    Others are left out, also those that are cut off.

    Source:
        xterm, ctlseqs, "PC-Style Function Keys".

    >>> keys_of(b"q\x1b[A\x1b[5~\x1b\x1b[15~\t")
    ['q', 'up', 'page up', 'escape']
    """
    found = _KEY.findall(data.decode("utf-8", "ignore"))
    names = (_NAMES.get(one) or (one if one.isprintable() else "") for one in found)
    return [name for name in names if name]
