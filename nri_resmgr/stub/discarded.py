"""A warning where the result of a builder's method is thrown away.

Adjustments and updates are values: `adjustment.set_env("A", "1")` as a statement, as
one writes it in Go, changes nothing. The byte code of the caller shows it: the
instruction after the call removes its result. That is looked at in each call, which
takes some 0.5 µs and allocates nothing that stays; all else here is for mistakes.
"""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from itertools import islice
from opcode import opmap
from types import FrameType
from typing import Final

_CALL: Final = opmap["CALL"]
_POP_TOP: Final = opmap["POP_TOP"]
_INSTRUCTION: Final = 2  # bytes

# Modules of builders, which call each other: the ids of their globals, which stay.
_ours: Final[set[int]] = set()


class DiscardedResult(UserWarning):
    """The result of a builder's method was thrown away, so that it had no effect."""


def has_builders(module: str) -> None:
    """Note that *module*, which is imported, has builders."""
    _ours.add(id(vars(sys.modules[module])))


def _after(code: bytes, call: int) -> int:
    """Return the place of the instruction after the one at *call*."""
    call += _INSTRUCTION
    while not code[call]:  # room for the interpreter's own notes
        call += _INSTRUCTION
    return call


def _length_of_call() -> int:
    code = compile("f()\ng()", "", "exec").co_code
    call = next(at for at in range(0, len(code), _INSTRUCTION) if code[at] == _CALL)
    return _after(code, call) - call


_CALL_LENGTH: Final = _length_of_call()


def warn_if_discarded() -> None:
    """Warn if the statement that called the builder throws its result away.

    To be called by a function that a builder calls.
    """
    frame: FrameType | None = sys._getframe(3)  # noqa: SLF001 - there is no other way
    while frame is not None and id(frame.f_globals) in _ours:
        frame = frame.f_back
    if frame is None:
        return
    call, code = frame.f_lasti, frame.f_code.co_code
    after = call + _CALL_LENGTH if code[call] == _CALL else _after(code, call)
    if code[after] == _POP_TOP:
        _warn(frame)


def _warn(caller: FrameType) -> None:
    builder = _builder_under(caller)
    code = caller.f_code
    at = caller.f_lasti // _INSTRUCTION
    first, last, _, _ = next(islice(code.co_positions(), at, None))
    first = first or caller.f_lineno
    lines = range(first, (last or first) + 1)
    source = "".join(linecache.getline(code.co_filename, line) for line in lines)
    # In `updates.extend(map(builder, items))` another call throws its own result away.
    if re.search(rf"\b{builder}\b(?!\s*\()", source):
        return
    warnings.warn_explicit(
        f"the result of {builder}() is thrown away, so it has no effect: values are "
        f"immutable, write `x = x.{builder}(...)`",
        DiscardedResult,
        code.co_filename,
        first,
        module=str(caller.f_globals.get("__name__")),
        registry=caller.f_globals.setdefault("__warningregistry__", {}),
    )


def _builder_under(caller: FrameType) -> str:
    """Return the name of the builder that *caller* called."""
    frame = sys._getframe(1)  # noqa: SLF001 - as above
    while frame.f_back is not None and frame.f_back is not caller:
        frame = frame.f_back
    return frame.f_code.co_name
