"""``nri-resmgr events``: recent decisions and refusals, and those to come."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Final

from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.output import add_client_flags, is_document, print_each
from nri_resmgr.control.client import AnswerLost, Client
from nri_resmgr.values.counts import count_text
from nri_resmgr.values.documents import JsonObject
from nri_resmgr.values.printable import printable_data

# More containers, as after a synchronization, are counted by their rules, unless the
# wide form is asked for.
_MOST_NAMED: Final = 3

_EXAMPLES: Final = """\
examples:
  nri-resmgr events                        recent ones
  nri-resmgr events --follow               and new ones, until Ctrl-C
  nri-resmgr events --since 120 -o json    those after number 120, for programs
"""


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Show recent events: decisions with their reasons, refusals, sessions, "
        "configurations."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "-f", "--follow", action="store_true", help="continue with new events"
    )
    parser.add_argument(
        "--since",
        type=_event_number,
        default=0,
        metavar="N",
        help="show only events after number N; default all that are kept",
    )
    add_client_flags(parser, wide="the name of each container", each="event")


def run(options: argparse.Namespace) -> int:
    """Print a line per event.

    Raises:
        AnswerLost: The daemon ended while its events were followed.
    """
    path, follow = options.control_socket, "1" if options.follow else "0"
    lines = Client(path).lines("/v1/events", since=str(options.since), follow=follow)
    for line in lines:
        if is_document(options.output):
            print_each(line, options.output)
        elif line["kind"] != "EventList":
            is_wide = options.output == "wide"
            print(event_line(printable_data(line), is_wide=is_wide), flush=True)
    # A daemon that runs never ends this answer.
    if options.follow:
        raise AnswerLost(path, "the daemon has ended")
    return 0


def event_line(event: JsonObject, *, is_wide: bool = False) -> str:
    """Format an event or a gap as one line; the wide form names all containers."""
    if event["kind"] == "gap":
        if event["missed"]:
            return f"... {event['missed']} events are no longer kept"
        return "... the daemon was restarted"
    words = [event["time"], f"#{event['number']}", event["kind"]]
    words += _words(event, is_wide=is_wide)
    return "  ".join(word for word in words if word)


def _words(event: JsonObject, *, is_wide: bool) -> Iterator[str]:
    title, why = event.get("title", ""), event.get("why", "")
    # Sentences often begin with the container that they are about.
    yield "" if title and why.startswith(title) else title
    yield event.get("category", "")
    yield why
    containers = event.get("containers", [])
    if len(containers) > _MOST_NAMED and not is_wide:
        rules = Counter(one["rule"] for one in containers)
        counts = ", ".join(f"{count} {rule}" for rule, count in rules.items())
        yield f"{len(containers)} containers: {counts}"
    else:
        yield from map(_container, containers)
    if updates := event.get("updates", 0):
        yield f"changes {count_text(updates, 'other')}"


def _container(one: JsonObject) -> str:
    title = one.get("title") or one["id"]
    keys = ("cpus", "mems", "pool", "decided", "detail")
    facts = (f"{key}={_quoted(one[key])}" for key in keys if key in one)
    return " ".join((title, one["rule"], *facts))


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text


def _event_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an event")
    return int(text)
