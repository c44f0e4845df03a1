"""Calls of all plugins for one event, in the order of their indices."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from google.protobuf.message import Message

from nri_proto import Event, NriLevel, nri_pb2
from nri_resmgr.testing.errors import (
    AdjustmentRejected,
    PluginLost,
    ValidatorLost,
)
from nri_resmgr.testing.merge import CreationMerge, Owners, UpdateMerge
from nri_resmgr.testing.plugin import ConnectedPlugin


async def notify_all(
    plugins: Sequence[ConnectedPlugin],
    event: Event,
    pod: nri_pb2.PodSandbox,
    container: nri_pb2.Container | None = None,
) -> None:
    """Send an event that plugins cannot answer with changes.

    Raises:
        PluginRefused: A plugin answered with an error; later plugins do not get it.
    """
    for plugin in plugins:
        if plugin.subscribes(event):
            try:
                await plugin.notify(event, pod, container)
            except PluginLost:
                continue


async def send_pod_update(
    plugins: Sequence[ConnectedPlugin], request: nri_pb2.UpdatePodSandboxRequest
) -> None:
    """Send UpdatePodSandbox; see `notify_all`."""
    for plugin in plugins:
        await _call(plugin, Event.UPDATE_POD_SANDBOX, request)


async def collect_adjustments(
    plugins: Sequence[ConnectedPlugin],
    pod: nri_pb2.PodSandbox,
    container: nri_pb2.Container,
    level: NriLevel,
) -> CreationMerge:
    """Collect adjustments, where each plugin sees earlier ones, and validate them.

    Raises:
        RuntimeRefusal: A plugin failed, plugins conflict, or a validator rejected the
            result.
    """
    merge = CreationMerge(container, level)
    for plugin in plugins:
        request = nri_pb2.CreateContainerRequest(pod=pod, container=merge.container)
        reply = await _call(plugin, Event.CREATE_CONTAINER, request)
        if reply is not None:
            merge.apply(plugin.name, cast("nri_pb2.CreateContainerResponse", reply))
    await _validate(plugins, merge, pod, container)
    return merge


async def collect_changes(
    plugins: Sequence[ConnectedPlugin],
    pod: nri_pb2.PodSandbox,
    container: nri_pb2.Container,
    resources: nri_pb2.LinuxResources,
    level: NriLevel,
) -> UpdateMerge:
    """Let plugins change a requested update, where each sees earlier changes.

    Raises:
        RuntimeRefusal: A plugin failed, or plugins conflict.
    """
    merge = UpdateMerge(Owners(level), updating=container.id, requested=resources)
    for plugin in plugins:
        request = nri_pb2.UpdateContainerRequest(
            pod=pod, container=container, linux_resources=merge.requested
        )
        reply = await _call(plugin, Event.UPDATE_CONTAINER, request)
        if reply is not None:
            answer = cast("nri_pb2.UpdateContainerResponse", reply)
            merge.apply(plugin.name, answer.update)
    return merge


async def collect_updates(
    plugins: Sequence[ConnectedPlugin],
    pod: nri_pb2.PodSandbox,
    container: nri_pb2.Container,
    level: NriLevel,
) -> UpdateMerge:
    """Collect updates of other containers when one stops.

    Raises:
        RuntimeRefusal: A plugin failed, or plugins conflict.
    """
    merge = UpdateMerge(Owners(level))
    for plugin in plugins:
        request = nri_pb2.StopContainerRequest(pod=pod, container=container)
        reply = await _call(plugin, Event.STOP_CONTAINER, request)
        if reply is not None:
            answer = cast("nri_pb2.StopContainerResponse", reply)
            merge.apply(plugin.name, answer.update)
    return merge


async def _call(
    plugin: ConnectedPlugin, event: Event, request: Message
) -> Message | None:
    if not plugin.subscribes(event):
        return None
    try:
        return await plugin.call(event.method, request)
    except PluginLost:
        return None  # skipped: the event goes on without it


async def _validate(
    plugins: Sequence[ConnectedPlugin],
    merge: CreationMerge,
    pod: nri_pb2.PodSandbox,
    container: nri_pb2.Container,
) -> None:
    event = Event.VALIDATE_CONTAINER_ADJUSTMENT
    # A validator that was lost earlier in this request fails it.
    validators = [plugin for plugin in plugins if plugin.subscribes(event)]
    if not validators:
        return
    request = nri_pb2.ValidateContainerAdjustmentRequest(
        pod=pod,
        container=container,
        adjust=merge.adjustment,
        update=merge.updates,
        owners=merge.owners.message(),
        plugins=[
            nri_pb2.PluginInstance(name=plugin.base, index=plugin.index)
            for plugin in plugins
        ],
    )
    verdicts = [_check(plugin, request) for plugin in validators]
    for verdict in await asyncio.gather(*verdicts, return_exceptions=True):
        if verdict is not None:
            raise verdict


async def _check(
    plugin: ConnectedPlugin, request: nri_pb2.ValidateContainerAdjustmentRequest
) -> None:
    try:
        reply = await plugin.call(Event.VALIDATE_CONTAINER_ADJUSTMENT.method, request)
    except PluginLost as error:
        raise ValidatorLost(plugin.name, str(error)) from error
    answer = cast("nri_pb2.ValidateContainerAdjustmentResponse", reply)
    if answer.reject:
        raise AdjustmentRejected(plugin.name, answer.reason)
