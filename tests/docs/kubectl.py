"""The reference of the kubectl plugin."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from nri_resmgr.kubectl.command_line import build_parser
from tests.docs.commands import spelled, subparsers
from tests.docs.markdown import code, escaped, table


def kubectl_plugin(_: str) -> str:
    """Write all commands, and all arguments with the commands that have them."""
    [group] = subparsers(build_parser({}))
    commands = group.choices
    found: dict[tuple[str, str], list[str]] = {}
    for name, parser in commands.items():
        for argument in _arguments(parser):
            found.setdefault(argument, []).append(name)
    arguments = (
        (spelling, "" if names == list(commands) else ", ".join(map(code, names)), text)
        for (spelling, text), names in found.items()
    )
    overview = (
        (code(name), escaped(one.description or "")) for name, one in commands.items()
    )
    return "\n\n".join(
        (
            table(("command", "what it does"), overview),
            table(("argument", "only of", "meaning"), arguments),
        )
    )


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:  # noqa: SLF001 - argparse shows them in no other way
        if not isinstance(action, argparse._HelpAction):  # noqa: SLF001 - as above
            yield spelled(action), escaped(action.help or "")
