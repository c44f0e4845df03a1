"""Reads requests for static pools from environments and command lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from nri_resmgr.policy.pool_request import NO_POOL_REQUEST, PoolRequest

POOL: Final = "STP_POOL"
SOCKET: Final = "STP_SOCKET_ID"
NO_AFFINITY: Final = "STP_NO_AFFINITY"
LISTS: Final = "CMK_NUM_CORES"
ASSIGNED: Final = "CMK_CPUS_ASSIGNED"

_NAMES: Final = frozenset((POOL, SOCKET, NO_AFFINITY, LISTS, ASSIGNED))

_COMMAND: Final = "cmk"

# Programs were called by name, or where CMK installed them: /opt/bin/cmk.
_ISOLATE: Final = re.compile(r"\s*(?:\S*/)?cmk\s+isolate(?=\s|$)")
_WORD: Final = re.compile(r"\S+")
_SEPARATOR: Final = "--"

# Options of `cmk isolate` that have a value; --no-affinity has none.
_VALUED: Final = ("pool", "socket-id", "conf-dir")
_NO_AFFINITY: Final = "no-affinity"


class IsolatedCommand(msgspec.Struct, frozen=True):
    """A command line with ``cmk isolate``.

    Attributes:
        request: What its options ask for.
        args: The command line without it; empty if it has no command.
    """

    request: PoolRequest
    args: tuple[str, ...]


def read_pool_request(
    env: Sequence[str], args: Sequence[str], *, is_new: bool = True
) -> PoolRequest:
    """Read the request of a container.

    The command line wins over the environment, option by option.

    Args:
        env: Its environment, ``NAME=value`` each; the last one of a name counts.
        args: Its command line.
        is_new: Whether it is being created: then it was assigned nothing yet.

    Source:
        CRI Resource Manager, the policy ``static-pools``; CMK, ``cmk isolate``.
    """
    text = "\n".join(env)
    found = NO_POOL_REQUEST
    if "STP_" in text or "CMK_" in text:  # in all of our names, and in few others
        found = _of_environment(env, is_new=is_new)
    command = isolated_command(args)
    if command is not None:
        asked = command.request
        found = msgspec.structs.replace(
            found,
            pool=asked.pool,
            socket=asked.socket or found.socket,
            is_pinned=asked.is_pinned and found.is_pinned,
            by_command=True,
        )
    return found


def isolated_command(args: Sequence[str]) -> IsolatedCommand | None:
    """Take ``cmk isolate`` out of a command line; None if there is none.

    It is at the beginning, or at that of one argument: ``bash -c "cmk isolate ..."``.
    Without ``--pool`` it is none.
    """
    if not any(_COMMAND in one for one in args):
        return None
    if len(args) > 1 and _ISOLATE.fullmatch(f"{args[0]} {args[1]}"):
        options, command, rest = _split(args[2:])
        return _isolated(options, (*args[2:][command], *args[2:][rest]))
    for place, one in enumerate(args):
        if start := _ISOLATE.match(one):
            found = _isolated(*_of_text(one[start.end() :]))
            if found is not None:
                whole = (*args[:place], *found.args, *args[place + 1 :])
                return IsolatedCommand(found.request, whole if found.args else ())
    return None


def _of_environment(env: Sequence[str], *, is_new: bool) -> PoolRequest:
    values = dict(_named(env))
    return PoolRequest(
        pool=values.get(POOL, ""),
        socket=values.get(SOCKET, ""),
        is_pinned=NO_AFFINITY not in values,
        lists=values.get(LISTS, ""),
        assigned="" if is_new else values.get(ASSIGNED, ""),
    )


def _named(env: Sequence[str]) -> Iterator[tuple[str, str]]:
    for entry in env:
        name, _, value = entry.partition("=")
        if name in _NAMES:
            yield name, value


def _of_text(text: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Split the text after ``cmk isolate`` into options, and the text of a command."""
    words = list(_WORD.finditer(text))
    options, command, rest = _split([word[0] for word in words])
    if not words[command]:
        return options, ()
    # The text itself, not its words: a shell reads its quotes.
    first = text[words[command.start].start() : words[command.stop - 1].end()]
    if not words[rest]:
        return options, (first,)
    if command.stop == rest.start:
        return options, (text[words[command.start].start() :],)
    return options, (f"{first} {text[words[rest.start].start() :]}",)


def _split(words: Sequence[str]) -> tuple[dict[str, str], slice, slice]:
    """Return the options before a command, and the places of its name and arguments.

    A separator stands before the name, as in CRI Resource Manager, or after it, as in
    CMK; it is not for the command itself.
    """
    found: dict[str, str] = {}
    place, end = 0, len(words)
    while place < end and words[place].startswith("-"):
        word = words[place]
        place += 1
        if word == _SEPARATOR:
            return found, slice(place, place + 1), slice(place + 1, end)
        name, equals, value = word.lstrip("-").partition("=")
        if name in _VALUED and not equals and place < end:
            value = words[place]
            place += 1
        # CRI Resource Manager ignored options that it did not know.
        found[name] = value
    after = place + 1
    is_separated = after < end and words[after] == _SEPARATOR
    return found, slice(place, after), slice(after + is_separated, end)


def _isolated(options: dict[str, str], args: tuple[str, ...]) -> IsolatedCommand | None:
    if not options.get("pool"):
        return None
    request = PoolRequest(
        pool=options["pool"],
        socket=options.get("socket-id", ""),
        is_pinned=options.get(_NO_AFFINITY, "false").lower() in ("false", "0"),
        by_command=True,
    )
    return IsolatedCommand(request, args)
