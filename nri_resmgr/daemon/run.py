"""`nri-resmgr run`: read the input, build the policy, register, serve."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal

from google.protobuf.internal import api_implementation

from nri_resmgr.app.plugin.status_codes import status_of
from nri_resmgr.daemon.build import build
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.defaults import DEFAULT_INDEX, DEFAULT_NAME
from nri_resmgr.daemon.insight_flags import judge_insight
from nri_resmgr.daemon.log_setup import follow_debug_signal, prepare_log
from nri_resmgr.daemon.memory_kinds import read_memory_kinds
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.daemon.reset import reset
from nri_resmgr.daemon.services import serve_beside
from nri_resmgr.daemon.start import Start
from nri_resmgr.daemon.state import open_state
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.log import Logger
from nri_resmgr.stub import (
    Stub,
    StubOptions,
    UnsolicitedUpdates,
    run_until_signal,
)
from nri_resmgr.stub.errors import SessionError
from nri_resmgr.stub.identity import INDEX_VARIABLE, NAME_VARIABLE

log = Logger(__name__)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it; see `nri_resmgr.cli.main` for the flags.

    Everything that can be slow or fail is done before the stub connects: a runtime
    waits five seconds for a launched plugin to register, and two for each answer.

    Raises:
        ResmgrError: Bad input, or the node cannot be served.
    """
    prepare_log(options)
    if api_implementation.Type() != "upb":
        log.warning("protobuf.slow", kind=api_implementation.Type(), instead="upb")
    if options.reset_config or options.reset_policy:
        reset(options)
        return 0
    # It would end the process, and there is nothing yet that could be read again.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    state = open_state(options.state_dir, dry_run=options.dry_run)
    tree = HostTree(options.host_root)
    kinds = read_memory_kinds(options.memory_kinds)
    watch = Watch(counts=bool(options.http_endpoint), traces=judge_insight(options))
    start = Start(options, tree, kinds, read_machine(tree, kinds), state, watch)
    if options.record:
        # It imports how recordings are read and compared; few starts record.
        from nri_resmgr.recordings.recorder import open_recording

        start.recorder = open_recording(options, start.machine)
    configuration = build(start)
    asyncio.run(_serve(start, configuration))
    return 0


async def _serve(start: Start, configuration: DaemonConfiguration) -> None:
    try:
        stub = _stub_of(start, configuration)
        configuration.policy.connect(stub.updates)
        follow_debug_signal()
        beside = asyncio.create_task(_serve_beside(start, configuration, stub))
        try:
            await run_until_signal(stub)
        finally:
            beside.cancel()
    finally:
        start.close()


def _stub_of(start: Start, configuration: DaemonConfiguration) -> Stub:
    options = start.options
    name, index = options.nri_plugin_name, options.nri_plugin_index
    if not os.environ.keys() & {NAME_VARIABLE, INDEX_VARIABLE}:
        # No runtime launched this process, so none has given it a name.
        name = DEFAULT_NAME if name is None else name
        index = DEFAULT_INDEX if index is None else index
    return Stub.from_environment(
        configuration.policy,
        name=name,
        index=index,
        socket=options.nri_socket,
        options=StubOptions(
            status_of=status_of,
            unsolicited_updates=UnsolicitedUpdates(options.unsolicited_updates),
            observer=start.watch,
            on_message=start.recorder.tap if start.recorder else None,
        ),
    )


async def _serve_beside(
    start: Start, configuration: DaemonConfiguration, stub: Stub
) -> None:
    try:
        await stub.started()
    except SessionError:
        return  # `run_until_signal` raises the reason
    await serve_beside(
        Daemon(
            options=start.options,
            tree=start.tree,
            kinds=start.kinds,
            policy=configuration.policy,
            configuration=configuration,
            stub=stub,
            watch=start.watch,
            checkpoint_writer=start.checkpoint_writer,
            state=start.state,
            reconcilers=start.reconcilers,
        )
    )
