"""The words that complete a command line: commands, flags, and the values of flags."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.cli.flags import OneOf

# In all help texts, what stands for the path of a file or folder.
_FILES: Final = re.compile(r"\b(FILE|PATH|FOLDER|DIR|DUMP|WORKLOAD)\b")
_VARIABLE: Final = re.compile(r" ?\[NRI_RESMGR_\w+\]$")


class Value(msgspec.Struct, frozen=True):
    """The value of a flag, or an argument.

    Attributes:
        name: Its name in help texts.
        words: All that it can be; none where it can be anything.
        is_file: Whether it can be the path of a file.
    """

    name: str
    words: tuple[str, ...] = ()
    is_file: bool = False


class Flag(msgspec.Struct, frozen=True):
    """A flag.

    Attributes:
        names: All spellings: ``-o``, ``--output``.
        help: A sentence about it.
        value: Its value; None where it takes none.
    """

    names: tuple[str, ...]
    help: str
    value: Value | None


class CommandWords(msgspec.Struct, frozen=True):
    """The words after a command.

    Attributes:
        path: The command, with that of which it is an action.
        actions: Further commands, with what they do.
        flags: Its flags.
        arguments: Its arguments in their order.
        is_repeated: Whether the last argument can be given several times.
    """

    path: tuple[str, ...]
    actions: Mapping[str, str]
    flags: tuple[Flag, ...]
    arguments: tuple[Value, ...]
    is_repeated: bool = False


def words_of(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[CommandWords]:
    """Yield the words of a parser, then those of its commands."""
    actions: dict[str, str] = {}
    below: dict[str, argparse.ArgumentParser] = {}
    flags, arguments, is_repeated = [], [], False
    for action in parser._actions:  # noqa: SLF001 - argparse shows it in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            below = action.choices
            helps = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001 - as above
            actions = {name: helps.get(name, "") for name in below}
        elif action.option_strings:
            value = None if action.nargs == 0 else _value(action)
            flags.append(Flag(tuple(action.option_strings), _help(action), value))
        else:
            arguments.append(_value(action))
            is_repeated = action.nargs in ("+", "*")
    yield CommandWords(path, actions, tuple(flags), tuple(arguments), is_repeated)
    for name, one in below.items():
        yield from words_of(one, (*path, name))


def _value(action: argparse.Action) -> Value:
    name = str(action.metavar or action.dest)
    words = tuple(map(str, action.choices or ()))
    if isinstance(action.type, OneOf):
        words = action.type.words
    is_file = action.type is Path or bool(_FILES.search(name))
    return Value(name, words, is_file and not words)


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    shown = text % {"prog": "nri-resmgr", **vars(action)} if "%" in text else text
    return _VARIABLE.sub("", shown)
