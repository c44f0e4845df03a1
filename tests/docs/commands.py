"""The reference of the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.main import build_parser
from tests.docs.markdown import code, escaped, table

_VARIABLE: Final = re.compile(r" ?\[(NRI_RESMGR_\w+)\]$")


def command_line(_: str) -> str:
    """Write a section for each command: its arguments, flags and variables."""
    parser = build_parser({})
    sections = ["\n".join(_overview(parser))]
    sections += ["\n".join(_section(name, one)) for name, one in _commands(parser)]
    return "\n\n".join(sections)


def _overview(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = []
    for group in subparsers(parser):
        for choice in group._choices_actions:  # noqa: SLF001 - argparse shows help in no other way
            text = escaped(_expanded(choice.help or "", None))
            rows.append((f"[`{choice.dest}`](#{choice.dest})", text))
    yield table(("command", "what it does"), rows)


def _section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    level = "##" if " " not in name else "###"
    yield f"{level} {name}\n"
    if parser.description:
        yield f"{_prose(parser.description)}\n"
    if rows := list(_arguments(parser)):
        yield table(("argument", "variable", "default", "meaning"), rows)
    if parser.epilog:
        yield f"\n```text\n{parser.epilog.strip()}\n```"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, ...]]:
    for action in parser._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):  # noqa: SLF001 - as above
            continue
        text = _expanded(action.help or "", action)
        variable = found[1] if (found := _VARIABLE.search(text)) else ""
        default = _default(action)
        # The default has a separate column.
        text = _VARIABLE.sub("", text).removesuffix(f" ({default.strip('`')})")
        yield spelled(action), code(variable), default, escaped(text)


def spelled(action: argparse.Action) -> str:
    """Write an argument as it is typed, with a word for its value."""
    if not action.option_strings:
        return code(escaped(str(action.metavar or action.dest)))
    takes = action.nargs != 0
    metavar = action.metavar or (action.choices and "FORM") or action.dest.upper()
    value = f" {metavar}" if takes else ""
    return ", ".join(code(escaped(f"{flag}{value}")) for flag in action.option_strings)


def _default(action: argparse.Action) -> str:
    default = action.default
    if default in (None, False, "", argparse.SUPPRESS) or default == []:
        return ""
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    return code(escaped(shown))


def _expanded(text: str, action: argparse.Action | None) -> str:
    values = vars(action) if action is not None else {}
    return text % {"prog": "nri-resmgr", **values} if "%" in text else text


def _prose(text: str) -> str:
    return " ".join(text.split())


def subparsers(
    parser: argparse.ArgumentParser,
) -> Iterator[argparse._SubParsersAction[argparse.ArgumentParser]]:
    """Yield the groups of commands that a parser has."""
    for action in parser._actions:  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            yield action


def _commands(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for group in subparsers(parser):
        for name, one in group.choices.items():
            yield f"{before}{name}", one
            yield from _commands(one, f"{before}{name} ")
