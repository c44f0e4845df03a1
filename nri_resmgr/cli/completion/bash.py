"""The script of bash."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from nri_resmgr.cli.completion.words import CommandWords, Value

# COMP_WORDS has `--flag=value` as three words: = is one of COMP_WORDBREAKS.
_HEAD: Final = """\
# Completion of nri-resmgr for bash, written by: nri-resmgr completion bash

_nri_resmgr_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_nri_resmgr_words() {
    mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_nri_resmgr() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="" path="" word="" i
    COMPREPLY=()
    (( COMP_CWORD > 0 )) && previous="${COMP_WORDS[COMP_CWORD - 1]}"
    if [[ $current == "=" ]]; then
        current=""
    elif [[ $previous == "=" ]]; then
        previous="${COMP_WORDS[COMP_CWORD - 2]}"
    fi
    for (( i = 1; i < COMP_CWORD; i++ )); do
        word="${path:+$path }${COMP_WORDS[i]}"
        case "$word" in
"""
_TAIL: Final = """\
    esac
}

complete -F _nri_resmgr nri-resmgr
"""


def bash_script(commands: Sequence[CommandWords]) -> str:
    """Write a function that sets ``COMPREPLY``, and its registration."""
    paths = [shlex.quote(" ".join(one.path)) for one in commands if one.path]
    found = f'{" " * 12}{"|".join(paths)}) path="$word" ;;'
    lines = [found, "        esac", "    done", '    case "$path" in']
    for one in commands:
        lines += (f"        {line}" for line in _command(one))
    return "\n".join((_HEAD.removesuffix("\n"), *lines, _TAIL))


def _command(one: CommandWords) -> Iterator[str]:
    yield f"{shlex.quote(' '.join(one.path))})"
    cases = [
        f"        {'|'.join(flag.names)}) {_value(flag.value)}return ;;"
        for flag in one.flags
        if flag.value
    ]
    if cases:
        yield '    case "$previous" in'
        yield from cases
        yield "    esac"
    flags = " ".join(name for flag in one.flags for name in flag.names)
    yield f'    if [[ $current == -* ]]; then _nri_resmgr_words "$current" "{flags}"'
    words = (*one.actions, *(word for value in one.arguments for word in value.words))
    if words:
        yield f'    else _nri_resmgr_words "$current" "{" ".join(words)}"'
    elif any(value.is_file for value in one.arguments):
        yield '    else _nri_resmgr_files "$current"'
    yield "    fi ;;"


def _value(value: Value) -> str:
    if value.words:
        return f'_nri_resmgr_words "$current" "{" ".join(value.words)}"; '
    return '_nri_resmgr_files "$current"; ' if value.is_file else ""
