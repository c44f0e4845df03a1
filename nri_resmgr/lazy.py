"""Modules that others import at their start and a plugin hardly ever touches."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from threading import RLock
from types import ModuleType
from typing import Final

# In millions of instructions, of some 500 from the start of a process to registered.
UNTOUCHED: Final = (
    "ssl",  # 26 with the next: asyncio's transports that are no unix sockets
    "asyncio.sslproto",
    "google.protobuf.internal.python_message",  # 26: upb does all that in C
    "attr.validators",  # 18 with the next: attrs generates them for itself
    "attrs.validators",
    "tokenize",  # 6 with the next: tracebacks with their source
    "textwrap",
)

# Whoever imports the first wants an ImportError at once if there is no second.
_NEEDED: Final = {"ssl": "_ssl"}


def import_when_touched(names: Iterable[str]) -> None:
    """Put modules into `sys.modules` that run when their first name is looked up.

    The standard library's `LazyLoader` runs them at the second ``import`` of their
    name. Modules that are imported already, or cannot be found, are left alone. The
    packages of the others are imported.
    """
    untouched: dict[str, ModuleType] = {}
    for name in names:
        if name not in sys.modules and _find(_NEEDED.get(name, name)) is not None:
            spec = _find(name)
            if spec is not None and spec.loader is not None:
                untouched[name] = sys.modules[name] = _untouched(spec)
    for name, module in untouched.items():
        package, _, last = name.rpartition(".")
        if package:  # import binds only what it has run itself
            setattr(import_module(package), last, module)


def _find(name: str) -> ModuleSpec | None:
    """Find a module without importing the packages that it is in."""
    spec: ModuleSpec | None = None
    path: Sequence[str] | None = None
    whole = ""
    for part in name.split("."):
        whole = f"{whole}.{part}" if whole else part
        spec = PathFinder.find_spec(whole, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return spec


def _untouched(spec: ModuleSpec) -> ModuleType:
    module = module_from_spec(spec)
    names = vars(module)
    lock = RLock()
    waits = True

    def look_up(name: str) -> object:
        nonlocal waits
        # Who looks through all modules, as warnings do, asks for names like these.
        if not name.startswith("__") or name == "__all__":
            with lock:  # another thread may be running it
                if waits:
                    waits = False
                    spec.loader.exec_module(module)  # type: ignore[union-attr] # asked for above
                    names.pop("__getattr__", None)
            if name in names:
                return names[name]
        raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")

    names["__getattr__"] = look_up
    return module
