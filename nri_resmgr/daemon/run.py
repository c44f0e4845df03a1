"""Settings and machine read, sessions served, the policy built for them."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal

from google.protobuf.internal import api_implementation

from nri_resmgr.app.status import status_of
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.daemon.insight_flags import judge_insight
from nri_resmgr.daemon.log_setup import follow_debug_signal, prepare_log
from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.daemon.start import Start
from nri_resmgr.daemon.state import open_state
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.stub import (
    LatePlugin,
    Options,
    Stub,
    UnsolicitedUpdates,
    run_until_signal,
)
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE

log = Logger(__name__)


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop; see `nri_resmgr.cli.main` for the flags.

    Raises:
        ResmgrError: Bad input, or the node cannot be served.
    """
    prepare_log(options)
    if api_implementation.Type() != "upb":
        log.warning("protobuf.slow", kind=api_implementation.Type(), instead="upb")
    if options.reset_config or options.reset_policy:
        from nri_resmgr.daemon.reset import reset

        reset(options)
        return 0
    # It would end the process, and there is nothing yet that could be read again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # All input is judged before the runtime hears of us.
    state = open_state(options.state_dir, dry_run=options.dry_run)
    tree = HostTree(options.host_root)
    kinds = read_memory_kinds(options.memory_kinds)
    watch = Watch(counts=bool(options.http_endpoint), traces=judge_insight(options))
    start = Start(options, tree, kinds, read_machine(tree, kinds), state, watch)
    if options.record:
        from nri_resmgr.daemon.recording import open_recording  # few ask for it

        start.recorder = open_recording(options, start.machine)
    if options.config_file and options.disable_policy_switch:
        start.configuration()  # only now is it known whether the file may follow
    elif options.config_file or options.fallback_config:
        start.judge()
    asyncio.run(_serve(start))
    return 0


async def _serve(start: Start) -> None:
    options = start.options
    name, index = options.nri_plugin_name, options.nri_plugin_index
    if not os.environ.keys() & {NAME_VARIABLE, INDEX_VARIABLE}:
        # Nobody launched us, so nobody has said who we are.
        name = DEFAULT_NAME if name is None else name
        index = DEFAULT_INDEX if index is None else index

    def connected() -> object:
        policy = start.configuration().policy
        policy.connect(stub.updates)
        return policy

    updates = UnsolicitedUpdates(options.unsolicited_updates)
    stub = Stub.from_environment(
        LatePlugin(connected),
        name=name,
        index=index,
        socket=options.nri_socket,
        options=Options(
            status_of=status_of,
            unsolicited_updates=updates,
            observer=start.watch,
            on_message=start.recorder and start.recorder.tap,
        ),
    )
    follow_debug_signal()
    beside = asyncio.create_task(_serve_beside(start, stub))
    try:
        await run_until_signal(stub)
    finally:
        beside.cancel()
        if start.reconcilers:
            start.reconcilers.close()
        if start.keeper:
            start.keeper.close()
        if start.recorder:
            start.recorder.close()


async def _serve_beside(start: Start, stub: Stub) -> None:
    try:
        await stub.started()
    except SessionError:
        return  # the reason is the caller's to tell
    # Late: the runtime waits for none of this.
    from nri_resmgr.daemon.parts import Daemon
    from nri_resmgr.daemon.services import serve_beside

    configuration, reconcilers = start.configuration(), start.reconcilers
    assert reconcilers is not None  # noqa: S101 - the configuration has them built
    await serve_beside(
        Daemon(
            options=start.options,
            tree=start.tree,
            kinds=start.kinds,
            policy=configuration.policy,
            configuration=configuration,
            stub=stub,
            watch=start.watch,
            keeper=start.keeper,
            state=start.state,
            reconcilers=reconcilers,
        )
    )
