"""What the user types, and the words that kubectl and the daemon's side get of it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest

from nri_resmgr.cli.main import build_parser as parser_of_nri_resmgr
from nri_resmgr.kubectl.command_line import (
    build_parser,
    flags_of_kubectl,
    parsed,
    words_of_query,
)
from tests.cli.test_examples import parsers_below

PARSER = build_parser({})
OF_COMMANDS = dict(parsers_below(PARSER))


def examples_in(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """Yield the words of each example of a help page."""
    for line in parser.format_help().splitlines():
        if line.startswith("  kubectl nri-resmgr "):
            yield shlex.split(line.strip().split("  ")[0])[2:]


def examples() -> Iterator[tuple[str, ...]]:
    """Yield those of all help pages, each once."""
    pages = (PARSER, *OF_COMMANDS.values())
    yield from dict.fromkeys(tuple(one) for page in pages for one in examples_in(page))


@pytest.mark.parametrize(
    "words", [pytest.param(one, id=" ".join(one)) for one in examples()]
)
def test_an_example_is_one_that_nri_resmgr_accepts(words: tuple[str, ...]) -> None:
    options = parsed(words, {})
    if options.command in ("gather", "picture") or "--help" in words:
        return

    names = (options.pod,) if options.command == "explain" else ()
    there = list(words_of_query(options, *names))

    # It exits where it does not know a flag.
    assert parser_of_nri_resmgr({}, there[0]).parse_args(there)


def test_there_is_an_example_of_each_command() -> None:
    assert {words[0] for words in examples_in(PARSER)} == {
        *("status", "explain", "top", "events", "picture", "gather"),
    }


@pytest.mark.parametrize("name", OF_COMMANDS)
def test_the_help_of_a_command_has_examples_of_it(name: str) -> None:
    assert {words[0] for words in examples_in(OF_COMMANDS[name])} == {name}


def test_flags_are_handed_on() -> None:
    words = "events --node a -f --since 3 -o json --context here --as me -- --more x"

    options = parsed(words.split(), {})

    assert flags_of_kubectl(options) == ("--context=here", "--as=me")
    assert words_of_query(options) == (
        *("events", "--follow", "--output=json", "--since=3", "--more", "x"),
    )


def test_a_namespace_without_a_pod_is_that_of_the_containers_shown() -> None:
    of_node = parsed(["status", "--node", "a", "-n", "shop"], {})
    of_pod = parsed(["status", "web", "-n", "shop"], {})

    assert words_of_query(of_node) == ("status", "--namespace=shop")
    assert words_of_query(of_pod) == ("status",)


def test_the_environment_names_the_namespace_of_the_daemon() -> None:
    environment = {"NRI_RESMGR_DAEMON_NAMESPACE": "infra"}
    words = ["status", "--all"]

    assert parsed(words, {}).daemon_namespace == "kube-system"
    assert parsed(words, environment).daemon_namespace == "infra"
    words += ["--daemon-namespace", "other"]
    assert parsed(words, environment).daemon_namespace == "other"


def test_o_is_a_form_in_all_commands() -> None:
    of_output = {
        (name, action.metavar)
        for name, parser in OF_COMMANDS.items()
        for action in parser._actions  # noqa: SLF001 - argparse shows it in no other way
        if {"-o", "--output"} & set(action.option_strings)
    }

    assert of_output == {
        (name, "FORM") for name in ("status", "explain", "top", "events")
    }


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "status a --all",
        "status a --node b",
        "status --node a,spec.nodeName!=b",
        "status web/nginx",
        "explain --all",
        "top --once",
        "gather",
        "picture",
        "picture a --all",
        "picture --all -n b",
        "top --node a -n b",
        "gather --all -n b",
        "gather --all -o bundle.tgz",
        "picture a -o a.svg",
        "paint a",
        "",
    ],
)
def test_a_mistake_is_one_sentence(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(words.split(), {})

    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("kubectl nri-resmgr")
    assert said.count("\n") == 1
