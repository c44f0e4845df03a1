"""``nri-resmgr enable-runtime``: enable NRI in the runtime's configuration."""

from __future__ import annotations

import argparse
import difflib
import json
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
from nri_resmgr.cli.flags import Flags, add_output
from nri_resmgr.host.tree import HostTree
from nri_resmgr.runtimes import containerd, crio
from nri_resmgr.runtimes.containerd import Containerd
from nri_resmgr.runtimes.crio import Crio
from nri_resmgr.runtimes.switch import ConfigFile, FileChange
from nri_resmgr.runtimes.toml_edit import Scalar
from nri_resmgr.values.errors import HostError, InputError

_EXAMPLES: Final = """\
examples:
  nri-resmgr enable-runtime --dry-run        show the changes as a diff
  nri-resmgr enable-runtime --restart        apply them and restart the runtime
  nri-resmgr enable-runtime --registration-timeout 10s --request-timeout 5s
  nri-resmgr enable-runtime --undo           restore the original files

The original of an edited file is kept next to it, *.before-nri-resmgr.

exit status: 0 done, or nothing to do; 1 the node is not usable; 2 the
configuration is not safe to edit, or the flags are wrong
"""


@dataclass(eq=False)
class FlagWins(InputError):
    """The runtime was started with a flag that overrides its files."""

    flag: str

    def __str__(self) -> str:
        return f"CRI-O runs with {self.flag}, which overrides its files; remove it"


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


def add_arguments(
    parser: argparse.ArgumentParser, environment: Mapping[str, str]
) -> None:
    """Describe the command; *environment* gives defaults."""
    parser.description = (
        "Find the node's runtime and enable NRI in its configuration: by a drop-in if "
        "the runtime reads drop-ins, otherwise in the file itself, of which nothing "
        "else changes."
    )
    parser.epilog = _EXAMPLES
    _add_change_flags(parser)
    _add_action_flags(parser)
    Flags(parser, environment).add(
        "--host-root",
        default="/",
        metavar="PATH",
        help="folder where the host's root is mounted",
    )
    add_output(parser, "text", "json")


def _add_change_flags(parser: argparse.ArgumentParser) -> None:
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


def _add_action_flags(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--dry-run", action="store_true", help="show the changes, change nothing"
    )
    what.add_argument(
        "--restart",
        action="store_true",
        help="restart the runtime's systemd unit if a file was changed",
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
    if options.undo and any(timeouts):
        raise BadFlags("--undo excludes timeouts")
    tree = HostTree(options.host_root)
    if options.restart and tree.root:
        raise BadFlags(
            "--restart excludes --host-root: it restarts units of this system"
        )
    runtime = find_runtime(tree, options.runtime)
    keys = crio.KEYS if runtime.name == CRIO else containerd.KEYS
    wanted = keys.wanted(*timeouts)
    folder = HostFolder(options.host_root)
    plan = _plan_crio if runtime.name == CRIO else _plan_containerd
    change = plan(folder, runtime, None if options.undo else wanted, is_nri_on(tree))
    if not change.is_none:
        folder.check(change.path)  # also in a dry run, which shows what would fail
        if not options.dry_run:
            folder.apply(change, containerd.backup_of(change.path))
    if options.restart and not change.is_none:
        restart(f"{runtime.name}.service")
    _show(options, runtime, change)
    return 0


def _plan_containerd(
    folder: HostFolder,
    runtime: FoundRuntime,
    wanted: Mapping[str, Scalar] | None,
    is_on: bool,  # noqa: FBT001 - both plans have the same signature
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
    wanted: Mapping[str, Scalar] | None,
    is_on: bool,  # noqa: ARG001, FBT001 - both plans have the same signature
) -> FileChange:
    if wanted is not None and runtime.flag("--enable-nri") == "false":
        raise FlagWins("--enable-nri=false")
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
    if options.output == "json":
        document = {
            "runtime": runtime.name,
            "foundBy": runtime.why,
            "file": change.path,
            "change": done,
            "dryRun": options.dry_run,
            "restarted": options.restart and not change.is_none,
            "diff": _diff(change),
            "notes": change.notes,
        }
        print(json.dumps(document, indent=2))
        return
    print(f"{runtime.name} ({runtime.why})")
    if change.is_none:
        nothing = f"nothing to do: NRI is enabled{_timeouts_text(options)}"
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


def _timeouts_text(options: argparse.Namespace) -> str:
    has_some = options.registration_timeout or options.request_timeout
    return ", with these timeouts" if has_some else ""


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
