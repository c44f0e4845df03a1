"""``nri-resmgr enable-runtime``: enable NRI in the runtime's configuration."""

from __future__ import annotations

import argparse
import difflib
import posixpath
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nri_resmgr.cli.enable_runtime.discovery import (
    CRIO,
    FoundRuntime,
    find_runtime,
    is_nri_on,
)
from nri_resmgr.cli.enable_runtime.files import HostFolder, UnusableConfig
from nri_resmgr.cli.enable_runtime.host_restart import restart_with
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.output import (
    add_output,
    is_document,
    own_document,
    print_document,
)
from nri_resmgr.daemon.defaults import DEFAULT_NAME
from nri_resmgr.host.tree import HostTree
from nri_resmgr.runtimes import containerd, crio
from nri_resmgr.runtimes.containerd import Containerd
from nri_resmgr.runtimes.crio import Crio
from nri_resmgr.runtimes.switch import (
    TOLERATED,
    ConfigFile,
    FileChange,
    Requirement,
)
from nri_resmgr.runtimes.toml_edit import Value
from nri_resmgr.values.errors import HostError, InputError

_EXAMPLES: Final = """\
examples:
  nri-resmgr enable-runtime --dry-run        show the changes as a diff
  nri-resmgr enable-runtime --restart        apply them and restart the runtime
  nri-resmgr enable-runtime --registration-timeout 10s --request-timeout 5s
  nri-resmgr enable-runtime --require-plugin resource-policy
                                             create no containers without it
  nri-resmgr enable-runtime --undo           restore the original files

The original of an edited file is kept next to it, *.before-nri-resmgr.

exit status: 0 done, or nothing to do; 1 the node is not usable; 2 the
configuration is not safe to edit, or the flags are wrong
"""


class FlagWins(InputError):
    """CRI-O was started with a flag that overrides its files."""

    def __str__(self) -> str:
        return (
            "CRI-O runs with --enable-nri=false, which overrides its files; remove it"
        )


@dataclass(eq=False)
class BadFlags(InputError):
    """Flags that exclude each other."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(eq=False)
class NotRestarted(HostError):
    """The configuration is written, but the runtime did not start again."""

    unit: str
    why: str

    def __str__(self) -> str:
        return (
            f"the files are written, but {self.unit} was not restarted: {self.why}; "
            f"see `journalctl -u {self.unit}`; --undo reverts the change"
        )


def add_arguments(parser: Parser) -> None:
    """Describe the command."""
    parser.description = (
        "Find the node's runtime and enable NRI in its configuration: by a drop-in if "
        "the runtime reads drop-ins, otherwise in the file itself, of which nothing "
        "else changes."
    )
    parser.epilog = _EXAMPLES
    _add_change_flags(parser)
    _add_action_flags(parser)
    parser.add_flag(
        "--host-root",
        default="/",
        metavar="PATH",
        help="folder where the host's root is mounted",
    )
    add_output(parser)


def _add_change_flags(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    for name, title in (("containerd", "containerd"), ("crio", "CRI-O")):
        which.add_argument(
            f"--{name}",
            action="store_const",
            const=name,
            dest="runtime",
            help=f"change {title}; default is the running runtime",
        )
    for name, limited in (
        ("registration", "the registration of a plugin, such as 10s"),
        ("request", "a plugin's answer to a request, such as 5s"),
    ):
        parser.add_argument(
            f"--{name}-timeout",
            default="",
            metavar="TIME",
            help=f"time limit for {limited}; default unchanged",
        )
    parser.add_argument(
        "--default-validator",
        action="store_true",
        help="enable NRI's default validator, so that pods can require plugins by "
        "annotation; default unchanged",
    )
    parser.add_argument(
        "--require-plugin",
        default="",
        metavar="NAME",
        help="plugin without which no container is created, such as "
        f"{DEFAULT_NAME}; enables the validator, too; default unchanged",
    )
    parser.add_argument(
        "--tolerate-annotation",
        default="",
        metavar="KEY",
        help="annotation of pods that do not need the required plugin; default "
        f"{TOLERATED}",
    )


def _add_action_flags(parser: Parser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--dry-run", action="store_true", help="show the changes, change nothing"
    )
    what.add_argument(
        "--restart",
        action="store_true",
        help="restart the runtime's systemd unit if a file was changed; with "
        "--host-root by D-Bus, and restore the files if it does not start",
    )
    parser.add_argument(
        "--undo", action="store_true", help="revert the changes of this command"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Raises:
        ResmgrError: Nothing was changed, or the restart failed after the change.
    """
    timeouts = (options.registration_timeout, options.request_timeout)
    requirement = _requirement(options)
    if options.undo and (any(timeouts) or requirement):
        raise BadFlags("--undo excludes timeouts and the default validator")
    tree = HostTree(options.host_root)
    runtime = find_runtime(tree, options.runtime)
    keys = crio.KEYS if runtime.name == CRIO else containerd.KEYS
    wanted = None if options.undo else keys.wanted(*timeouts, requirement=requirement)
    folder = HostFolder(options.host_root)
    if runtime.name == CRIO:
        change = _plan_crio(folder, runtime, wanted)
    else:
        change = _plan_containerd(folder, runtime, wanted, is_on=is_nri_on(tree))
    if not change.is_none:
        folder.check(change.path)  # also in a dry run, which shows what would fail
        if not options.dry_run:
            _apply(folder, change, f"{runtime.name}.service" if options.restart else "")
    _show(options, runtime, change)
    return 0


def _apply(folder: HostFolder, change: FileChange, unit: str) -> None:
    """Change the file, and restart *unit* if it is not empty."""
    backup = containerd.backup_of(change.path)
    if unit and folder.root:
        restart_with(
            *(unit, folder.root),
            lambda: folder.apply(change, backup),
            lambda: folder.apply(change.reverted, backup),
        )
        return
    folder.apply(change, backup)
    if unit:
        restart(unit)


def _requirement(options: argparse.Namespace) -> Requirement | None:
    if options.tolerate_annotation and not options.require_plugin:
        raise BadFlags("--tolerate-annotation needs --require-plugin")
    if options.require_plugin or options.default_validator:
        return Requirement(options.require_plugin, options.tolerate_annotation)
    return None


def _plan_containerd(
    folder: HostFolder,
    runtime: FoundRuntime,
    wanted: Mapping[str, Value] | None,
    *,
    is_on: bool,
) -> FileChange:
    flag = runtime.flag("-c", "--config")
    # Services have / as their working directory.
    path = posixpath.join("/", flag) if flag else containerd.MAIN
    main = folder.read(path)
    if main is None and flag:
        raise UnusableConfig(path, "is missing, but containerd runs with --config")
    original = folder.read(containerd.backup_of(path))
    kept = original.text if original else None
    found = Containerd(main, _imported(folder, main), kept, is_on)
    if wanted is None:
        return containerd.switched_back(found)
    return containerd.switched_on(found, wanted)


def _imported(folder: HostFolder, main: ConfigFile | None) -> tuple[ConfigFile, ...]:
    """Read the imported files in containerd's order: breadth first, each once."""
    pending = list(
        containerd.imports_of(main) if main else [containerd.DEFAULT_IMPORTS]
    )
    found: dict[str, ConfigFile] = {main.path: main} if main else {}
    while pending:
        one = pending.pop(0)
        for path in folder.glob(one) if "*" in one else [one]:
            if path in found:
                continue
            file = folder.read(path)
            if file is None:
                raise UnusableConfig(path, "is imported, but missing")
            found[path] = file
            pending += containerd.imports_of(file)
    return tuple(file for file in found.values() if file is not main)


def _plan_crio(
    folder: HostFolder,
    runtime: FoundRuntime,
    wanted: Mapping[str, Value] | None,
) -> FileChange:
    if wanted is not None and runtime.flag("--enable-nri") == "false":
        raise FlagWins
    drop_ins = runtime.flag("-d", "--config-dir") or crio.FOLDER
    paths = [runtime.flag("-c", "--config") or crio.MAIN, *folder.below(drop_ins)]
    files = tuple(file for path in paths if (file := folder.read(path)))
    found = Crio(files, drop_ins.rstrip("/"))
    if wanted is None:
        return crio.switched_back(found)
    return crio.switched_on(found, wanted)


def restart(unit: str) -> None:
    """Restart a systemd unit, and wait until it is active.

    Raises:
        NotRestarted: It did not become active.
    """
    try:
        subprocess.run(  # noqa: S603 - the unit is one of two
            ["systemctl", "restart", unit],  # noqa: S607 - its place depends on the node
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise NotRestarted(unit, "there is no systemctl") from None
    except subprocess.CalledProcessError as error:
        why = error.stderr.strip().splitlines()
        raise NotRestarted(unit, why[0] if why else "no message") from None


def _show(
    options: argparse.Namespace, runtime: FoundRuntime, change: FileChange
) -> None:
    done = _change_word(options, change)
    if is_document(options.output):
        content = {
            "runtime": runtime.name,
            "foundBy": runtime.why,
            "file": change.path,
            "change": done,
            "dryRun": options.dry_run,
            "restarted": options.restart and not change.is_none,
            "diff": _diff(change),
            "notes": change.notes,
        }
        print_document(own_document("RuntimeChange", content), options.output)
        return
    print(f"{runtime.name} ({runtime.why})")
    if change.is_none:
        timeouts = options.registration_timeout or options.request_timeout
        nothing = "nothing to do: NRI is enabled"
        if timeouts or _requirement(options):
            nothing += ", with these settings"
        print("nothing to undo" if options.undo else nothing)
    elif options.dry_run:
        print(_diff(change), end="")
    else:
        print(f"{done} {change.path}")
        if done == "edited":
            print(f"the original is {containerd.backup_of(change.path)}")
        unit = runtime.name
        hint = f"restart it to apply the change: systemctl restart {unit}"
        print(f"restarted {unit}" if options.restart else hint)
    for note in change.notes:
        print(f"note: {note}")


def _change_word(options: argparse.Namespace, change: FileChange) -> str:
    if change.is_none:
        return "none"
    if change.before is None:
        return "created"
    if change.after is None:
        return "removed"
    return "restored" if options.undo else "edited"


def _diff(change: FileChange) -> str:
    lines = difflib.unified_diff(
        (change.before or "").splitlines(keepends=True),
        (change.after or "").splitlines(keepends=True),
        change.path if change.before is not None else "/dev/null",
        change.path if change.after is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
