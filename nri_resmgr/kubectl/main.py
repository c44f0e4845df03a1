"""Runs ``kubectl nri-resmgr``: finds daemons, to query them, draw them or gather."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from nri_resmgr.kubectl.all_nodes import report_failures
from nri_resmgr.kubectl.asking import Query, ask, ask_all
from nri_resmgr.kubectl.client import NAME, Kubectl
from nri_resmgr.kubectl.command_line import flags_of_kubectl, parsed, words_of_query
from nri_resmgr.kubectl.daemons import (
    ChosenPod,
    Daemon,
    all_daemons,
    daemon_on,
    is_name,
    pod_named,
)
from nri_resmgr.kubectl.errors import FAILED, BadName, NeedsOneNode, PluginError
from nri_resmgr.kubectl.gather import gather
from nri_resmgr.kubectl.picture import file_of, save_picture, save_pictures
from nri_resmgr.kubectl.pieces import (
    Piece,
    piece_of_error,
    pieces_of_cluster,
    pieces_of_node,
    pieces_of_pod,
)

_INTERRUPTED: Final = 130  # 128 + SIGINT, as in shells


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, on the process' arguments by default; return its status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Answers have characters that a terminal may lack.
            stream.reconfigure(errors="backslashreplace")
    try:
        options = parsed(sys.argv[1:] if arguments is None else arguments, os.environ)
        kubectl = Kubectl(flags_of_kubectl(options))
        status = _COMMANDS.get(options.command, _query)(kubectl, options)
        sys.stdout.flush()
    except PluginError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return error.status
    except BrokenPipeError:
        # The reader, such as `head`, has ended. Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _query(kubectl: Kubectl, options: argparse.Namespace) -> int:
    explained = (options.pod,) if options.command == "explain" else ()
    if options.all:
        if getattr(options, "follow", False):
            raise NeedsOneNode("events --follow")
        if options.command == "top":
            options.once = True
        words = words_of_query(options, *explained)
        query = Query(words, options.output, any_node=bool(explained))
        daemons = all_daemons(kubectl, options.daemon_namespace)
        return ask_all(kubectl, daemons, query)
    pod, container = _chosen_pod(kubectl, options)
    if pod and explained:
        explained = (f"{pod.namespace}/{pod.name}{container}",)
    node = pod.node if pod else options.node
    daemon = daemon_on(kubectl, node, options.daemon_namespace)
    return ask(kubectl, daemon, Query(words_of_query(options, *explained)))


def _chosen_pod(
    kubectl: Kubectl, options: argparse.Namespace
) -> tuple[ChosenPod | None, str]:
    """Return the pod, if one was named for its node, and ``/CONTAINER`` or nothing."""
    if options.node:
        return None, ""
    name, slash, container = options.pod.partition("/")
    if not is_name(name) or (slash and not is_name(container)):
        raise BadName(options.pod, "POD[/CONTAINER]; -n NAMESPACE has the namespace")
    return pod_named(kubectl, name, options.namespace), f"{slash}{container}"


def _picture(kubectl: Kubectl, options: argparse.Namespace) -> int:
    if options.all:
        daemons = all_daemons(kubectl, options.daemon_namespace)
        folder = options.file or Path()
        saved = save_pictures(folder, kubectl, daemons, options.more)
        for path in saved.values():
            if isinstance(path, Path):
                print(path)
        return report_failures(saved)
    pod, _ = _chosen_pod(kubectl, options)
    node, about = (pod.node, pod.name) if pod else (options.node, options.node)
    daemon = daemon_on(kubectl, node, options.daemon_namespace)
    path = options.file or file_of(about)
    save_picture(path, kubectl, daemon, pod, options.more)
    print(path)
    return 0


def _gather(kubectl: Kubectl, options: argparse.Namespace) -> int:
    pod, namespace = None, options.daemon_namespace
    daemons: Mapping[str, Daemon | PluginError]
    if options.all:
        about = "all"
        daemons = all_daemons(kubectl, namespace, must_run=False)
    else:
        pod, _ = _chosen_pod(kubectl, options)
        about = pod.node if pod else options.node
        daemons = {about: daemon_on(kubectl, about, namespace, must_run=False)}
    now = time.time()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    path = options.file or Path(f"{NAME}-{about}-{stamp}.tar.gz")
    count = gather(path, _pieces(kubectl, namespace, daemons, pod), now)
    print(f"{path}: {count} files; look through them before you publish them")
    return 0


def _pieces(
    kubectl: Kubectl,
    namespace: str,
    daemons: Mapping[str, Daemon | PluginError],
    pod: ChosenPod | None,
) -> Iterator[Piece]:
    found = [one for one in daemons.values() if isinstance(one, Daemon)]
    yield from pieces_of_cluster(kubectl, namespace, found)
    for node, daemon in daemons.items():
        if isinstance(daemon, PluginError):
            yield piece_of_error(node, daemon)
            continue
        yield from pieces_of_node(kubectl, daemon)
        if pod:
            yield from pieces_of_pod(kubectl, daemon, pod)


# All others query daemons.
_COMMANDS: Final = {"gather": _gather, "picture": _picture}


if __name__ == "__main__":
    sys.exit(main())
