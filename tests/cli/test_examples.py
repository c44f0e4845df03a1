"""Examples in help texts: each command has some, and they parse."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile

import pytest

from nri_resmgr.cli.commands import COMMANDS
from nri_resmgr.cli.main import build_parser


def parsers_below(
    parser: argparse.ArgumentParser, before: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command and its parser, and those of its own actions."""
    for action in parser._actions:  # noqa: SLF001 - argparse shows it in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for name, one in action.choices.items():
                yield f"{before}{name}", one
                yield from parsers_below(one, f"{before}{name} ")


PARSERS = dict(parsers_below(build_parser({})))


def examples_in(page: str) -> Iterator[list[str]]:
    """Yield the arguments of each example of a help page."""
    lines = page.partition("\nexamples:\n")[2].splitlines()
    for line in takewhile(str.strip, lines):
        if line.startswith(" " * 3):  # what the line above is about
            continue
        shown = re.split(r" {2,}", line.strip())[0]
        for part in shown.split(" | "):
            program, *words = shlex.split(part)
            if program == "nri-resmgr":
                yield list(takewhile(lambda word: word != ">", words))


def parses(words: list[str]) -> bool:
    try:
        build_parser({}, words[0]).parse_args(words)
    except SystemExit:
        return False
    return True


def test_there_are_parsers_of_all_commands() -> None:
    assert PARSERS.keys() > {command.name for command in COMMANDS}


@pytest.mark.parametrize("name", PARSERS)
def test_the_examples_of_a_command_parse(name: str) -> None:
    examples = list(examples_in(PARSERS[name].format_help()))
    own = [words for words in examples if set(name.split()) <= set(words)]

    assert [words for words in examples if not parses(words)] == []
    assert own != []


def test_the_examples_of_the_whole_command_line_parse() -> None:
    examples = list(examples_in(build_parser({}, "--help").format_help()))

    assert [words for words in examples if not parses(words)] == []
    assert {words[0] for words in examples} >= {"run", "demo", "check", "install"}


@pytest.mark.parametrize(
    "words", [["status", "--nonsense"], ["explain"], ["fly"], ["top", "--interval=0"]]
)
def test_an_example_that_does_not_parse_is_found(words: list[str]) -> None:
    assert not parses(words)
