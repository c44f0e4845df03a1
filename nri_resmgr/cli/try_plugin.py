"""``nri-resmgr try``: what a plugin does to the pods of manifests."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_proto import NriLevel
from nri_proto.levels import NEWEST, SAFE_UPDATES
from nri_resmgr.cli.flags import Parser, one_of
from nri_resmgr.cli.install import find_program
from nri_resmgr.cli.output import (
    add_output,
    is_document,
    own_document,
    print_document,
)
from nri_resmgr.cli.program_identity import identity_of
from nri_resmgr.cli.render_changes import content_text
from nri_resmgr.cli.render_workload import workload_document, workload_sections
from nri_resmgr.cli.tables import format_table
from nri_resmgr.cli.trial import Outcome, PluginGone, Trial
from nri_resmgr.cli.workload_files import read_texts
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.scenario.manifests import read_workloads
from nri_resmgr.scenario.steps import Scenario
from nri_resmgr.sdk.chain import changes
from nri_resmgr.stub import Identity
from nri_resmgr.testing import PluginEnded, Runtime, plugin_process
from nri_resmgr.values import InputError, ResmgrError
from nri_resmgr.values.documents import JsonObject, to_plain
from nri_resmgr.values.printable import printable

_OLDEST: Final = NriLevel(0, 3)
_LEVELS: Final = ("debug", "info", "warning", "error")
_HEADER: Final = ("request", "changes", "field", "value")

# Updates of a plugin's own are sent after the reply, 50 ms apart.
_DEFAULT_WAIT: Final = 0.2  # seconds
_MOST_WAIT: Final = 3600.0
# The end of a process is noticed after that of its connection.
_LAST_BREATH: Final = 1.0  # seconds
_TO_PRINT: Final = 0.2  # seconds

_EXAMPLES: Final = """\
examples:
  nri-resmgr try ./hello.py pods.yaml                  adjustments and updates
  nri-resmgr try ./hello.py --stop pods.yaml           also of pods that end
  nri-resmgr try ./greeter.py --config greeter.yaml manifests/
  nri-resmgr try rdt --level 0.10 pods.yaml            a shipped plugin, an older NRI
  helm template my-chart | nri-resmgr try ./hello.py -o json -

The plugin is a process that connects to the test runtime: no container runs, no root is
needed, and its Store is in a temporary folder. What the plugin itself writes to the
machine it writes. Its log and its tracebacks are on standard error.

exit status: 0 done; 1 the plugin failed a request, ended or did not answer; 2 bad input
"""


@dataclass(eq=False)
class NoTrial(InputError):
    """A shipped plugin cannot be tried, since its program has other flags."""

    plugin: str

    def __str__(self) -> str:
        return f"{self.plugin}: `nri-resmgr simulate` shows what it does to manifests"


@dataclass(eq=False)
class NeverRegistered(ResmgrError):
    """The plugin has ended, or hangs, before it could get requests."""

    program: Path
    why: str

    def __str__(self) -> str:
        return f"{self.program} {self.why}"


@dataclass(eq=False)
class PluginLost(ResmgrError):
    """The runtime has lost the plugin during a request."""

    program: Path
    request: str
    about: str
    why: str

    def __str__(self) -> str:
        return f"{self.request} of {self.about}: {self.program} {self.why}"


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Run a plugin on the test runtime, and print the adjustments and updates that "
        "it makes for the pods of Kubernetes manifests."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "plugin",
        metavar="PLUGIN",
        help="path of a Python file or of a folder with __main__.py, or name of a "
        "shipped plugin",
    )
    parser.add_argument(
        "workloads",
        type=Path,
        nargs="+",
        metavar="PODS",
        help="Kubernetes manifests: files, folders, and - for standard input",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="configuration of the plugin, passed to it as --config",
    )
    parser.add_argument(
        "--level",
        type=_level,
        default=SAFE_UPDATES,
        metavar="RELEASE",
        help=f"NRI release of the runtime, {_short(_OLDEST)} to {_short(NEWEST)}; "
        "default %(default)s",
    )
    parser.add_argument(
        "--stop", action="store_true", help="stop the pods, too, when all of them run"
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=_DEFAULT_WAIT,
        metavar="SECONDS",
        help="time at the end for updates that the plugin sends by itself, default "
        "%(default)s",
    )
    parser.add_argument(
        "--log-level",
        type=one_of(*_LEVELS),
        default="warning",
        metavar="LEVEL",
        help=f"lowest level of the plugin's log: {', '.join(_LEVELS)}; default "
        "%(default)s",
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Print what the plugin makes of each request; also if it is lost on the way.

    Raises:
        NoSuchPlugin: There is no such program.
        NoTrial: The plugin is the resource policy.
        NotManifests: A file is a scenario.
        NeverRegistered: The plugin has not begun to get requests.
        PluginLost: It has ended, or did not answer.
    """
    program = find_program(options.plugin)
    if program.name == "resource-policy":
        raise NoTrial(options.plugin)
    identity = identity_of(program, None, None)
    if options.config:
        read_text_file(options.config)  # the plugin would report it less clearly
    workload = read_workloads(*read_texts(options.workloads))
    outcomes, failure = asyncio.run(_try(options, program, identity, workload))
    if is_document(options.output):
        found = _document(identity, options.level, outcomes, workload)
        print_document(found, options.output)
    else:
        print("\n\n".join((*_sections(outcomes), *workload_sections(workload))))
    if failure is not None:
        raise failure
    return int(any(one.refused for one in outcomes))


async def _try(
    options: argparse.Namespace, program: Path, identity: Identity, workload: Scenario
) -> tuple[Sequence[Outcome], PluginLost | None]:
    """Run the plugin and the pods; return the outcomes, and how the plugin was lost."""
    with tempfile.TemporaryDirectory(prefix="nri-resmgr-") as name:
        folder = Path(name)
        async with Runtime(folder, options.level) as runtime:
            trial = Trial(runtime, str(identity))
            running = plugin_process(
                runtime,
                *_command(options, program, runtime.socket_path),
                identity=str(identity),
                environment={"STATE_DIRECTORY": str(folder / "state")},
                shows_output=True,
            )
            try:
                async with running as process:
                    gone = await _play(options, trial, workload)
                    why = "" if gone is None else await _why_gone(process)
            except PluginEnded as ended:
                raise NeverRegistered(program, _why_ended(ended.exit_status)) from None
            except TimeoutError:
                why = ": ".join(("has not registered in time", *_last(runtime.dropped)))
                raise NeverRegistered(program, why) from None
    lost = None if gone is None else PluginLost(program, gone.request, gone.about, why)
    return trial.outcomes, lost


def _command(options: argparse.Namespace, program: Path, socket: Path) -> list[str]:
    words = [sys.executable, "-m", "nri_resmgr.cli.author_program", program]
    words += ["--socket", socket, "--log-level", options.log_level]
    words += ["--config", options.config] if options.config else []
    return [str(word) for word in words]


async def _play(
    options: argparse.Namespace, trial: Trial, workload: Scenario
) -> PluginGone | None:
    try:
        await trial.run_pods(workload)
        if options.stop:
            await trial.stop_pods()
        await asyncio.sleep(options.wait)
    except PluginGone as gone:
        return gone
    finally:
        trial.note_own_updates()
    return None


async def _why_gone(process: asyncio.subprocess.Process) -> str:
    """Return how the runtime lost the plugin; end one that hangs."""
    try:
        async with asyncio.timeout(_LAST_BREATH):
            status = await process.wait()
    except TimeoutError:
        process.send_signal(signal.SIGUSR1)  # see `author_program`
        await asyncio.sleep(_TO_PRINT)
        process.kill()
        return "did not answer within 2 s; runtimes disconnect such a plugin"
    return f"ended with status {status}"


def _last(dropped: Sequence[Exception]) -> list[str]:
    return [str(one) for one in dropped[-1:]]


def _why_ended(status: int | None) -> str:
    if status == 0:
        return "has ended without registering: does it call serve()?"
    return f"has ended with status {status} before it registered"


def _sections(outcomes: Sequence[Outcome]) -> Iterator[str]:
    if rows := [row for one in outcomes for row in _rows(one)]:
        yield format_table(_HEADER, rows)
    if refused := [one for one in outcomes if one.refused]:
        lines = (printable(f"  {_title(one)}: {one.refused}") for one in refused)
        yield "\n".join(("refused", *lines))


def _rows(outcome: Outcome) -> Iterator[Sequence[str]]:
    title, count = _title(outcome), 0
    changed = [(outcome.about, outcome.adjustment)]
    changed += [(one.container, one.changes) for one in outcome.updates]
    for container, contents in changed:
        for change in changes({}, contents):
            yield title, container, change.field, content_text(change.after)
            count += 1
    if not count and not outcome.refused:
        yield title, "nothing", "", ""


def _title(outcome: Outcome) -> str:
    return f"{outcome.request} {outcome.about or 'by itself'}"


def _document(
    identity: Identity, level: NriLevel, outcomes: Sequence[Outcome], workload: Scenario
) -> JsonObject:
    content = {
        "plugin": str(identity),
        "nri": str(level),
        "requests": [to_plain(one) for one in outcomes],
        **workload_document(workload),
    }
    return own_document("PluginTrial", content)


def _short(level: NriLevel) -> str:
    return f"{level.major}.{level.minor}"


def _level(text: str) -> NriLevel:
    found = NriLevel.parse(text)
    if found is None or not _OLDEST <= found <= NEWEST:
        expected = f"a release of NRI from {_short(_OLDEST)} to {_short(NEWEST)}"
        raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}")
    return found


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= _MOST_WAIT:
        raise argparse.ArgumentTypeError(f"{text!r}: expected 0 to {_MOST_WAIT:g}")
    return found
