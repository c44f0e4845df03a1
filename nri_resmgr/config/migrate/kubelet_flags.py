"""Converts flags of the kubelet, from an environment file or a unit of systemd."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

import msgspec

from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.migrate.converted import Converted
from nri_resmgr.config.migrate.kubelet import convert_kubelet
from nri_resmgr.config.migrate.section import Note
from nri_resmgr.values.documents import JsonObject

# Kubernetes, "kubelet" in the reference of command line tools.
_TEXTS: Final = {
    "--cpu-manager-policy": "cpuManagerPolicy",
    "--cpu-manager-reconcile-period": "cpuManagerReconcilePeriod",
    "--memory-manager-policy": "memoryManagerPolicy",
    "--reserved-cpus": "reservedSystemCPUs",
    "--reserved-memory": "reservedMemory",
    "--topology-manager-policy": "topologyManagerPolicy",
    "--topology-manager-scope": "topologyManagerScope",
}
_MAPPINGS: Final = {
    "--cpu-manager-policy-options": "cpuManagerPolicyOptions",
    "--kube-reserved": "kubeReserved",
    "--system-reserved": "systemReserved",
    "--topology-manager-policy-options": "topologyManagerPolicyOptions",
}
_KEYS: Final = _TEXTS | _MAPPINGS
_FLAGS: Final = {key: flag for flag, key in _KEYS.items()}
_CONFIG: Final = "--config"

# kubeadm and packages of distributions name their variables so.
_VARIABLE: Final = re.compile(r"(?:export\s+)?(KUBELET_\w+)=(.*)", re.DOTALL)
_SETTING: Final = re.compile(r"\[\w[\w-]*\]$|(?:export\s+)?[\w-]+\s*=")
_ENVIRONMENT: Final = "Environment="
_START: Final = "ExecStart="
# In front of a command, systemd.service(5).
_PREFIXES: Final = "@-:+!|"

_ORIGIN: Final = (
    "Converted from flags of the kubelet. Remove those of the CPU, memory and topology",
    "managers, and cpu_manager_state and memory_manager_state from /var/lib/kubelet,",
    "before the kubelet is restarted. All its other flags stay.",
)
_CONFIG_TOO: Final = (
    "convert that file as well; flags take precedence over its settings, so that both "
    "results have to be merged by hand"
)


def has_kubelet_flags(text: str) -> bool:
    """Return whether a text is an environment file or a unit of the kubelet."""
    lines = [line for _, line in _lines(text) if line]
    # Manifests may have such files in them.
    return all(map(_SETTING.match, lines)) and any(
        _VARIABLE.match(line)
        or (line.startswith(_ENVIRONMENT) and "KUBELET_" in line)
        or (line.startswith(_START) and "kubelet" in line)
        for line in lines
    )


def convert_kubelet_flags(text: str) -> Converted:
    """Convert the flags of the managers; later ones replace earlier ones.

    Raises:
        BadSyntax: A quotation does not end, or a flag lacks its value.
        BadSetting: A flag of a manager is not as the kubelet documents it.
    """
    found: JsonObject = {}
    notes: list[Note] = []
    for flag, value in _flags(text):
        if flag in _TEXTS:
            found[_TEXTS[flag]] = value
        elif flag in _MAPPINGS:
            found[_MAPPINGS[flag]] = dict(_pairs(flag, value))
        elif flag == _CONFIG:
            notes = [Note(f"{_CONFIG} {value}", _CONFIG_TOO)]
    try:
        made = convert_kubelet(found)
    except BadSetting as error:
        raise BadSetting(_place(error.path), error.why) from None
    notes += (Note(_place(one.path), one.why) for one in made.notes)
    return msgspec.structs.replace(made, origin=_ORIGIN, notes=notes)


def _place(path: str) -> str:
    """Return the flag of a path in a KubeletConfiguration, and what is inside of it."""
    key, _, inner = path.removeprefix("$.").partition(".")
    return f"{_FLAGS.get(key, key)} {inner}".rstrip()


def _pairs(flag: str, value: str) -> Iterator[tuple[str, str]]:
    for pair in filter(None, value.split(",")):
        key, equals, amount = pair.partition("=")
        if not equals:
            raise BadSetting(flag, f"expected NAME=VALUE,..., not {pair!r}")
        yield key.strip(), amount.strip()


def _flags(text: str) -> Iterator[tuple[str, str]]:
    """Yield the known flags and their values."""
    for number, words in _commands(text):
        left = iter(words)
        for word in left:
            flag, equals, value = word.partition("=")
            if flag not in _KEYS and flag != _CONFIG:
                continue
            if not equals and (value := next(left, "")) == "":
                raise BadSyntax(f"{flag} has no value", number)
            yield flag, value


def _commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each command line, with the number of its line."""
    for number, line in _lines(text):
        if variable := _VARIABLE.match(line):
            # One quotation around all of it, or none.
            values = _words(number, variable[2])
        elif line.startswith(_ENVIRONMENT):
            settings = _words(number, line.removeprefix(_ENVIRONMENT))
            values = [one[2] for one in map(_VARIABLE.match, settings) if one]
        elif line.startswith(_START):
            command = line.removeprefix(_START).lstrip(_PREFIXES)
            yield number, _words(number, command)
            continue
        else:
            continue
        yield number, [word for value in values for word in _words(number, value)]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the logical lines, whose parts end with a backslash, and their numbers."""
    parts: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith(("#", ";")):
            continue
        goes_on = bare.endswith("\\")
        parts.append(bare.removesuffix("\\"))
        if not goes_on:
            yield number, " ".join(parts).strip()
            parts = []
    if parts:
        yield len(text.splitlines()), " ".join(parts).strip()


def _words(number: int, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadSyntax(str(error).lower(), number) from None
