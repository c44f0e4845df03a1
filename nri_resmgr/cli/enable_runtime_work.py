"""What `enable-runtime` does: find, plan, write, restart, tell."""

from __future__ import annotations

import argparse
import difflib
import json
import posixpath
import subprocess
from collections.abc import Mapping

from nri_resmgr.cli.enable_runtime_errors import (
    BadFlags,
    FlagWins,
    NotRestarted,
    UnusableConfig,
)
from nri_resmgr.cli.enable_runtime_files import HostFolder
from nri_resmgr.cli.enable_runtime_found import (
    CRIO,
    FoundRuntime,
    find_runtime,
    is_nri_on,
)
from nri_resmgr.host.tree import HostTree
from nri_resmgr.runtimes import containerd, crio
from nri_resmgr.runtimes.containerd import Containerd
from nri_resmgr.runtimes.crio import Crio
from nri_resmgr.runtimes.switch import Change, ConfigFile
from nri_resmgr.runtimes.toml_edit import Scalar


def enable_runtime(options: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Raises:
        ResmgrError: Why nothing was done, or, after a failed restart, what was.
    """
    times = (options.registration_timeout, options.request_timeout)
    if options.undo and any(times):
        raise BadFlags("--undo takes no timeouts")
    tree = HostTree(options.host_root)
    if options.restart and tree.root:
        raise BadFlags("--restart works on the host only, not below a --host-root")
    runtime = find_runtime(tree, options.runtime)
    keys = crio.KEYS if runtime.name == CRIO else containerd.KEYS
    wanted = keys.wanted(*times)
    folder = HostFolder(options.host_root)
    plan = _plan_crio if runtime.name == CRIO else _plan_containerd
    change = plan(folder, runtime, None if options.undo else wanted, is_nri_on(tree))
    if not change.is_none:
        folder.judge(change.path)
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
    is_on: bool,  # noqa: FBT001 - the two plans are called alike
) -> Change:
    told = runtime.flag("-c", "--config")
    # Services have / as their working directory.
    path = posixpath.join("/", told) if told else containerd.MAIN
    main = folder.read(path)
    if main is None and told:
        raise UnusableConfig(path, "is missing, though containerd was told to read it")
    original = folder.read(containerd.backup_of(path))
    kept = original.text if original else None
    found = Containerd(main, _imported(folder, main), kept, is_on)
    if wanted is None:
        return containerd.switched_back(found)
    return containerd.switched_on(found, wanted)


def _imported(folder: HostFolder, main: ConfigFile | None) -> tuple[ConfigFile, ...]:
    """Read what is imported, in containerd's order: breadth first, each file once."""
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
                raise UnusableConfig(path, "is imported and missing")
            found[path] = file
            pending += containerd.imports_of(file)
    return tuple(file for file in found.values() if file is not main)


def _plan_crio(
    folder: HostFolder,
    runtime: FoundRuntime,
    wanted: Mapping[str, Scalar] | None,
    is_on: bool,  # noqa: ARG001, FBT001 - the two plans are called alike
) -> Change:
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
    """Have systemd restart a unit, and wait until it is up.

    Raises:
        NotRestarted: It is not.
    """
    try:
        subprocess.run(  # noqa: S603 - the unit is one of two
            ["systemctl", "restart", unit],  # noqa: S607 - wherever the node has it
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise NotRestarted(unit, "there is no systemctl") from None
    except subprocess.CalledProcessError as error:
        why = error.stderr.strip().splitlines()
        raise NotRestarted(unit, why[0] if why else "it said nothing") from None


def _show(options: argparse.Namespace, runtime: FoundRuntime, change: Change) -> None:
    done = _what(options, change)
    if options.output == "json":
        told = {
            "runtime": runtime.name,
            "foundBy": runtime.why,
            "file": change.path,
            "change": done,
            "dryRun": options.dry_run,
            "restarted": options.restart and not change.is_none,
            "diff": _diff(change),
            "notes": change.notes,
        }
        print(json.dumps(told, indent=2))
        return
    print(f"{runtime.name} ({runtime.why})")
    if change.is_none:
        has_it = f"nothing to do: the configuration has NRI on{_times(options)}"
        print("nothing to undo" if options.undo else has_it)
    elif options.dry_run:
        print(_diff(change), end="")
    else:
        print(f"{done} {change.path}")
        if done == "edited":
            print(f"the original is {containerd.backup_of(change.path)}")
        unit = runtime.name
        hint = f"restart it to have an effect: systemctl restart {unit}"
        print(f"restarted {unit}" if options.restart else hint)
    for note in change.notes:
        print(f"note: {note}")


def _times(options: argparse.Namespace) -> str:
    has_some = options.registration_timeout or options.request_timeout
    return ", and these timeouts" if has_some else ""


def _what(options: argparse.Namespace, change: Change) -> str:
    if change.is_none:
        return "none"
    if change.before is None:
        return "created"
    if change.after is None:
        return "removed"
    return "restored" if options.undo else "edited"


def _diff(change: Change) -> str:
    lines = difflib.unified_diff(
        (change.before or "").splitlines(keepends=True),
        (change.after or "").splitlines(keepends=True),
        change.path if change.before is not None else "/dev/null",
        change.path if change.after is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
