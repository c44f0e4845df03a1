"""``nri-resmgr explain``: why a container is where it is."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any, Final

from nri_resmgr.cli.render_explain import render_explanation
from nri_resmgr.control.client import Client, Refused
from nri_resmgr.values import InputError

_NOBODY: Final = 404
_MOST_PARTS: Final = 3


@dataclass(eq=False)
class BadName(InputError):
    """The argument names no pod."""

    text: str

    def __str__(self) -> str:
        return f"{self.text!r}: [NAMESPACE/]POD[/CONTAINER] is needed"


def explain(options: argparse.Namespace) -> int:
    """Ask and print.

    Raises:
        BadName: The argument has too many parts, or empty ones.
        Refused: Nobody fits, or more than one pod.
    """
    answer = _ask(Client(options.control_socket), options.who)
    if options.output == "json":
        print(json.dumps(answer, indent=2))
    else:
        print(render_explanation(answer))
    return 0


def _ask(client: Client, who: str) -> dict[str, Any]:
    parts = who.split("/")
    if not all(parts) or len(parts) > _MOST_PARTS:
        raise BadName(who)
    if len(parts) == _MOST_PARTS:
        return _explained(client, f"{parts[0]}/{parts[1]}", parts[2])
    if len(parts) == 1:
        return _explained(client, who, "")
    # Pod and container, as the help has it; or else namespace and pod.
    try:
        return _explained(client, *parts)
    except Refused as error:
        if error.status != _NOBODY:
            raise
        return _explained(client, who, "")


def _explained(client: Client, pod: str, container: str) -> dict[str, Any]:
    query = {"pod": pod, "container": container} if container else {"pod": pod}
    return client.get("/v1/explain", **query)
