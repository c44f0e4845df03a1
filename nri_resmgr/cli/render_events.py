"""Events, a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

Data = Mapping[str, Any]

# More than these, after a synchronization, are counted by their rules.
_NAMED: Final = 3


def event_line(event: Data) -> str:
    """Write an event, a gap, or nothing for a heading."""
    if event["kind"] == "gap":
        return _gap(event)
    words = [event["time"], f"#{event['number']}", event["kind"], *_words(event)]
    return "  ".join(word for word in words if word)


def _gap(event: Data) -> str:
    if event["missed"]:
        return f"... {event['missed']} events are no longer kept"
    return "... the daemon has started anew"


def _words(event: Data) -> Iterator[str]:
    title, why = event.get("title", ""), event.get("why", "")
    # Sentences tend to begin with who they are about.
    yield "" if title and why.startswith(title) else title
    yield event.get("word", "")
    yield why
    containers = event.get("containers", [])
    if len(containers) > _NAMED:
        rules = Counter(one["rule"] for one in containers)
        counts = ", ".join(f"{count} {rule}" for rule, count in rules.items())
        yield f"{len(containers)} containers: {counts}"
    else:
        yield from map(_container, containers)
    if updates := event.get("updates", 0):
        yield f"and told {updates} other{'s' if updates > 1 else ''}"


def _container(one: Data) -> str:
    title = one.get("title") or one["id"]
    keys = ("cpus", "mems", "pool", "decided", "detail")
    facts = (f"{key}={_quoted(one[key])}" for key in keys if key in one)
    return " ".join((title, one["rule"], *facts))


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text
