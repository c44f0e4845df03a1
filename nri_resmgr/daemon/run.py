"""Settings and machine read, sessions served, the policy built for them."""

from __future__ import annotations

import argparse
import asyncio
import linecache
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.internal import api_implementation

from nri_resmgr.app.conduct import Conduct
from nri_resmgr.app.status import status_of
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.daemon.log_setup import follow_debug_signal, prepare_log
from nri_resmgr.daemon.memory_kinds import MemoryKinds, read_memory_kinds
from nri_resmgr.daemon.state import open_state
from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.stub import LatePlugin, Options, Stub, run_until_signal
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE
from nri_resmgr.topology import Machine
from nri_resmgr.values import InputError
from nri_resmgr.values.error_fields import with_fields

log = Logger(__name__)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop; see `nri_resmgr.cli.main` for the flags.

    Raises:
        ResmgrError: Bad input, or the node cannot be served.
    """
    prepare_log(options)
    if api_implementation.Type() != "upb":
        log.warning("protobuf.slow", kind=api_implementation.Type(), instead="upb")
    # All input is judged before the runtime hears of us.
    config = _read_config(options.config_file)
    open_state(options.state_dir, dry_run=options.dry_run)
    tree = HostTree(options.host_root)
    kinds = read_memory_kinds(options.memory_kinds)
    machine = read_machine(tree, kinds)

    @cache
    def policy() -> Any:
        return _build_policy(options, config, machine, tree)

    if config is not None:
        policy()  # only now is it known whether the configuration fits the machine
    asyncio.run(_serve(policy, tree, kinds, options))
    return 0


@with_fields
class BadConfigFile(InputError):
    """The file that ``--config-file`` names has a mistake."""

    path: str
    mistake: InputError

    def __str__(self) -> str:
        return f"{self.path}: {self.mistake}"


def _build_policy(
    options: argparse.Namespace, config: Any, machine: Machine, tree: HostTree
) -> Any:
    # Late: a runtime that launches us tells the configuration after we registered,
    # and need not wait for the third of our start that is here.
    from nri_resmgr.app.garbage import prefer_to_collect_between_requests
    from nri_resmgr.app.resource_policy import ResourcePolicy

    # Under the name by which tests of nri-plugins ask for it.
    testing = bool(os.environ.get("ENABLE_TEST_APIS"))
    conduct = Conduct(options.dry_run, options.run_dir, testing)
    policy = ResourcePolicy(machine, config, tree=tree, conduct=conduct)
    # attrs keeps the text of every method it wrote, for debuggers.
    linecache.clearcache()
    prefer_to_collect_between_requests()
    return policy


def _read_config(path: str | None) -> Any:
    if path is None:
        return None
    from pathlib import Path

    from nri_resmgr.config import parse_config
    from nri_resmgr.host.text_file import read_text_file

    text = read_text_file(Path(path))
    try:
        return parse_config(text)
    except InputError as mistake:
        raise BadConfigFile(path, mistake) from None


async def _serve(
    policy: Callable[[], Any],
    tree: HostTree,
    kinds: MemoryKinds,
    options: argparse.Namespace,
) -> None:
    name, index = options.nri_plugin_name, options.nri_plugin_index
    if not os.environ.keys() & {NAME_VARIABLE, INDEX_VARIABLE}:
        # Nobody launched us, so nobody has said who we are.
        name = DEFAULT_NAME if name is None else name
        index = DEFAULT_INDEX if index is None else index

    def connected() -> object:
        policy().connect(stub)
        return policy()

    stub = Stub.from_environment(
        LatePlugin(connected),
        name=name,
        index=index,
        socket=options.nri_socket,
        options=Options(status_of=status_of),
    )
    follow_debug_signal()
    beside = asyncio.create_task(_serve_beside(policy, tree, kinds, stub, options))
    try:
        await run_until_signal(stub)
    finally:
        beside.cancel()


async def _serve_beside(
    policy: Callable[[], Any],
    tree: HostTree,
    kinds: MemoryKinds,
    stub: Stub,
    options: argparse.Namespace,
) -> None:
    try:
        await stub.started()
    except SessionError:
        return  # the reason is the caller's to tell
    # Late: the runtime waits for none of this.
    from nri_resmgr.daemon.parts import Daemon
    from nri_resmgr.daemon.services import serve_beside

    await serve_beside(Daemon(options, tree, kinds, policy(), stub))
