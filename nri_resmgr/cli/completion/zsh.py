"""The script of zsh."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.cli.completion.words import CommandWords, Flag, Value

_HEAD: Final = """\
#compdef nri-resmgr
# Completion of nri-resmgr for zsh, written by: nri-resmgr completion zsh
"""
# As a function of fpath it is called at once; after `source` it is registered.
_TAIL: Final = """\

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _nri-resmgr "$@"
else
    compdef _nri-resmgr nri-resmgr
fi
"""


def zsh_script(commands: Sequence[CommandWords]) -> str:
    """Write a function for each command, by zsh's ``_arguments``.

    Source:
        zshcompsys(1), "Completion Functions", ``_arguments`` and ``_describe``.
    """
    functions = (_function(one) for one in commands)
    return "\n".join((_HEAD, *map("\n".join, functions), _TAIL))


def _function(one: CommandWords) -> Iterator[str]:
    name = "-".join(("_nri-resmgr", *one.path))
    yield f"{name}() {{"
    yield "    local curcontext=$curcontext state line"
    yield "    typeset -A opt_args"
    specs = [spec for flag in one.flags for spec in _flag(flag)]
    if one.actions:
        specs += ["1:command:->command", "*::argument:->argument"]
    else:
        specs += _arguments(one)
    yield "    _arguments -C -s \\"
    yield from (f"        {shlex.quote(spec)} \\" for spec in specs[:-1])
    yield f"        {shlex.quote(specs[-1])}"
    if one.actions:
        yield from _actions(one, name)
    yield "}"


def _actions(one: CommandWords, name: str) -> Iterator[str]:
    yield "    case $state in"
    yield "        command)"
    yield "            local -a commands=("
    for action, text in one.actions.items():
        yield f"                {shlex.quote(f'{action}:{text}')}"
    yield "            )"
    yield "            _describe command commands ;;"
    yield "        argument)"
    cases = "|".join(one.actions)
    yield f"            case $line[1] in ({cases}) {name}-$line[1] ;; esac ;;"
    yield "    esac"


def _flag(flag: Flag) -> Iterator[str]:
    others = " ".join(flag.names)
    for name in flag.names:
        value = _value(flag.value) if flag.value else ""
        # After a long name the value may follow an equals sign.
        equals = "=" if value and name.startswith("--") else ""
        yield f"({others}){name}{equals}[{_escaped(flag.help)}]{value}"


def _arguments(one: CommandWords) -> Iterator[str]:
    last = len(one.arguments) - 1
    for place, value in enumerate(one.arguments):
        number = "*" if place == last and one.is_repeated else ""
        yield f"{number}{_value(value)}"


def _value(value: Value) -> str:
    words = f"({' '.join(value.words)})" if value.words else ""
    return f":{_escaped(value.name)}:{'_files' if value.is_file else words}"


def _escaped(text: str) -> str:
    """Return a text for a specification, whose characters are not its syntax."""
    for one in "\\:[]":
        text = text.replace(one, f"\\{one}")
    return text
