"""The names of a new plugin: its own, and those of its module and classes."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from typing import Final

import msgspec

from nri_resmgr.cli.launcher import NEEDED
from nri_resmgr.values.errors import InputError

# Lines of the files have the name twice at most, and are 88 characters long at most.
_LONGEST: Final = 30

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# Python looks for modules in the folder first: a file there hides another's module.
_IMPORTED: Final = frozenset(
    {*NEEDED, "attrs", "conftest", "packaging", "pluggy", "pytest", "pytest_asyncio"}
)


@dataclass(eq=False)
class BadPluginName(InputError):
    """A new plugin cannot have that name."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"plugin name {self.name!r}: {self.why}"


class Names(msgspec.Struct, frozen=True):
    """The names of a new plugin.

    Attributes:
        plugin: As the runtime knows it, without its index.
        module: The file with its handlers, without ``.py``.
        prefix: What its classes begin with.

    >>> Names.of("gpu-env")
    Names(plugin='gpu-env', module='gpu_env', prefix='GpuEnv')
    """

    plugin: str
    module: str
    prefix: str

    @classmethod
    def of(cls, plugin: str) -> Names:
        """Derive the names from that of the plugin.

        Raises:
            BadPluginName: It is none for NRI, for a Python module, or too long.
        """
        if _NAME.fullmatch(plugin) is None:
            raise BadPluginName(
                plugin,
                "expected words of small letters and digits, with a dash between two, "
                "such as gpu-env",
            )
        if len(plugin) > _LONGEST:
            raise BadPluginName(plugin, f"longer than {_LONGEST} characters")
        module = plugin.replace("-", "_")
        if keyword.iskeyword(module):
            raise BadPluginName(plugin, "a keyword of Python cannot name its module")
        if module in sys.stdlib_module_names or module in _IMPORTED:
            raise BadPluginName(
                plugin, f"its file {module}.py would hide a module of that name"
            )
        prefix = "".join(word.capitalize() for word in plugin.split("-"))
        return cls(plugin, module, prefix)
