"""The command line of ``kubectl nri-resmgr``: its commands and flags."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from nri_resmgr.kubectl.daemons import is_name
from nri_resmgr.kubectl.errors import BAD_INPUT

PROGRAM: Final = "kubectl nri-resmgr"
NAMESPACE_VARIABLE: Final = "NRI_RESMGR_DAEMON_NAMESPACE"

_NAMESPACE: Final = "kube-system"
_OF_KUBECTL: Final = {
    "context": ("NAME", "context of the kubeconfig"),
    "kubeconfig": ("FILE", "kubeconfig; by default the one that kubectl uses"),
    "cluster": ("NAME", "cluster of the kubeconfig"),
    "user": ("NAME", "user of the kubeconfig"),
    "as": ("NAME", "user to impersonate"),
}

# Of the commands that write one.
_FILES: Final = {
    "gather": "archive to write, by default nri-resmgr-NODE-TIME.tar.gz",
    "picture": "file to draw in, by default nri-resmgr-NAME.svg, of the pod or node; "
    "with --all a folder for a file of each node, by default the current one",
}

_DESCRIPTION: Final = """\
Query the nri-resmgr daemon on a pod's node, on a named node, or on all nodes. It runs
kubectl exec in the daemon's pod, with the rights that you have.
"""
_EXAMPLES_BY_COMMAND: Final = {
    "status": """\
examples:
  kubectl nri-resmgr status web -n shop         the node of this pod
  kubectl nri-resmgr status --node node7 -o wide
                                                with all columns
  kubectl nri-resmgr status --node node7 -n shop
                                                containers of one namespace only
  kubectl nri-resmgr status --all -o json       all nodes, as one list
""",
    "explain": """\
examples:
  kubectl nri-resmgr explain web -n shop        why the pod has its CPUs and memory
  kubectl nri-resmgr explain web/nginx -n shop  one container of it
  kubectl nri-resmgr explain 3f2a --node node7  a container by its id
  kubectl nri-resmgr explain 3f2a --all         the same, wherever it is
""",
    "top": """\
examples:
  kubectl nri-resmgr top web -n shop            the node of this pod, until q
  kubectl nri-resmgr top --node node7 --interval 5
                                                a frame each five seconds
  kubectl nri-resmgr top --node node7 --once    one frame, such as for a report
  kubectl nri-resmgr top --all                  one frame of each node
""",
    "events": """\
examples:
  kubectl nri-resmgr events web -n shop         the node of this pod
  kubectl nri-resmgr events --node node7 -f     new ones, too, until Ctrl-C
  kubectl nri-resmgr events --node node7 --since 100 -o json
                                                those after number 100, a line each
""",
    "picture": """\
examples:
  kubectl nri-resmgr picture web -n shop        nri-resmgr-web.svg: its CPUs, and the
                                                pools considered
  kubectl nri-resmgr picture --node node7 --file now.svg
                                                all containers of a node
  kubectl nri-resmgr picture --all --file now   now/nri-resmgr-node7.svg and so on
""",
    "gather": """\
examples:
  kubectl nri-resmgr gather web -n shop         the pod's node and its placement
  kubectl nri-resmgr gather --node node7 --file bug.tar.gz
                                                a node, in this file
  kubectl nri-resmgr gather --all               all nodes with a daemon
""",
}
_EXAMPLES: Final = """\
examples:
  kubectl nri-resmgr explain web -n shop        why the pod has its CPUs and memory
  kubectl nri-resmgr status web -n shop         the node of this pod
  kubectl nri-resmgr status --node node7        a node
  kubectl nri-resmgr status --all -o json       all nodes, as one list
  kubectl nri-resmgr explain 3f2a --all         a container by its id, wherever it is
  kubectl nri-resmgr top --node node7           CPUs and pressure, live
  kubectl nri-resmgr events --node node7 -f     what happens there
  kubectl nri-resmgr status --all -n shop       containers of one namespace, everywhere
  kubectl nri-resmgr picture web -n shop        its CPUs, and the pools considered
  kubectl nri-resmgr gather web -n shop         an archive for a bug report

What follows -- goes to nri-resmgr in the daemon's pod:
  kubectl nri-resmgr status --node node7 -- --help

exit status: that of nri-resmgr there; else 0 done, 1 failed, 2 bad input
"""


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see {self.prog} --help\n")


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Describe the commands.

    Args:
        environment: Has the namespace of the daemon's pods, if it is not the default.
    """
    parser = _Parser(
        prog=PROGRAM,
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", title="commands", dest="command"
    )
    shared = _shared_flags(environment)
    for name, text in (
        ("status", "show the daemon, its pools and its containers"),
        ("explain", "explain a pod's CPUs and memory nodes"),
        ("top", "show CPUs, memory and pressure, live"),
        ("events", "show recent decisions and refusals"),
        ("picture", "draw the CPUs of a pod or of a node, as SVG"),
        ("gather", "write an archive for a bug report, without secrets"),
    ):
        made = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=_EXAMPLES_BY_COMMAND[name],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[shared],
        )
        _add_target(made, name)
        _add_own_flags(made, name)
    return parser


def flags_of_kubectl(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the flags that go to each kubectl."""
    given = ((name, getattr(options, name)) for name in _OF_KUBECTL)
    return tuple(f"--{name}={value}" for name, value in given if value is not None)


def words_of_query(options: argparse.Namespace, *names: str) -> tuple[str, ...]:
    """Return the command and the flags that ``nri-resmgr`` gets there.

    Args:
        options: Those of the user.
        names: What is explained.
    """
    given = vars(options)
    switches = (f"--{one}" for one in ("follow", "once") if given.get(one))
    values = ((one, given.get(one)) for one in ("output", "since", "interval"))
    flags = [f"--{one}={value}" for one, value in values if value is not None]
    if options.command == "status" and not options.pod and options.namespace:
        flags.append(f"--namespace={options.namespace}")
    return (options.command, *names, *switches, *flags, *options.more)


def _shared_flags(environment: Mapping[str, str]) -> _Parser:
    parser = _Parser(add_help=False)
    parser.add_argument(
        *("-n", "--namespace"),
        default="",
        help="namespace of POD, by default that of the context; without POD, status "
        "shows containers of this namespace only",
    )
    parser.add_argument(
        "--daemon-namespace",
        default=environment.get(NAMESPACE_VARIABLE) or _NAMESPACE,
        metavar="NAMESPACE",
        help="namespace of the daemon's pods, by default that of the variable "
        f"{NAMESPACE_VARIABLE}, or {_NAMESPACE}",
    )
    for name, (metavar, text) in _OF_KUBECTL.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=text)
    return parser


def _add_target(parser: argparse.ArgumentParser, command: str) -> None:
    is_explain = command == "explain"
    group = parser.add_mutually_exclusive_group(required=not is_explain)
    if is_explain:
        parser.add_argument(
            "pod",
            metavar="POD[/CONTAINER]",
            help="pod, or container of it; with --node or --all whatever nri-resmgr "
            "explain takes, such as the beginning of an id",
        )
    else:
        group.add_argument(
            "pod", nargs="?", type=_name, metavar="POD", help="a pod, for its node"
        )
    group.add_argument("--node", type=_name, metavar="NODE", help="a node")
    group.add_argument("--all", action="store_true", help="all nodes with a daemon")


def _add_own_flags(parser: argparse.ArgumentParser, command: str) -> None:
    if command in _FILES:
        # Without a short name: -o is a form, and -f is to follow events.
        parser.add_argument("--file", type=Path, metavar="FILE", help=_FILES[command])
        return
    parser.add_argument(
        *("-o", "--output"),
        metavar="FORM",
        help="table, wide, json or yaml, as of nri-resmgr; with --all, the last two "
        "are a list of all answers",
    )
    if command == "top":
        parser.add_argument("--once", action="store_true", help="print one frame only")
        parser.add_argument("--interval", metavar="SECONDS", help="time between frames")
    if command == "events":
        parser.add_argument(
            *("-f", "--follow"), action="store_true", help="continue with new events"
        )
        parser.add_argument("--since", metavar="N", help="only events after number N")


def parsed(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> argparse.Namespace:
    """Parse the arguments; what follows ``--`` becomes ``more``."""
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    parser = build_parser(environment)
    options = parser.parse_args(words[:at])
    has_pod = not (options.node or options.all)
    if options.namespace and not has_pod and options.command != "status":
        parser.error("-n is the namespace of a POD, and there is none")
    options.more = tuple(words[at + 1 :])
    return options


def _name(text: str) -> str:
    if not is_name(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name of Kubernetes")
    return text
