"""The cluster's documents: which counts, what stays in force, and the verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nri_resmgr.app.configuration.cluster import JudgedConfiguration, Verdict
from nri_resmgr.app.configuration.status import DocumentSource
from nri_resmgr.app.observing.history import History
from nri_resmgr.daemon.cluster.documents import ClusterDocuments
from nri_resmgr.daemon.configuration import DaemonConfiguration
from nri_resmgr.daemon.configuration_cache import CACHE_NAME
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.spool import CONFIGURATION
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.model import LinuxContainer
from nri_resmgr.values import InputError
from tests.app.node import asking_for
from tests.daemon.documents import (
    BAD,
    TOO_MANY,
    UNFIT,
    begun,
    document,
    hand_over,
    reserved,
    status_of,
    write,
)
from tests.daemon.spooled import hand_over_configuration, put, spool
from tests.waiting import until

OBJECT = "TopologyAwarePolicy kube-system/node.worker-1"


def verdict(of: DaemonConfiguration) -> JudgedConfiguration:
    """Return the verdict; there must be one."""
    assert of.cluster is not None
    found = of.cluster.status.configuration
    assert found is not None
    return found


@asynccontextmanager
async def followed(of: DaemonConfiguration) -> AsyncIterator[None]:
    """Follow the spool folder, and write the cache."""
    tasks = [
        asyncio.create_task(of.follow_cluster(lambda: True)),
        asyncio.create_task(of.follow_cache()),
    ]
    try:
        await asyncio.sleep(0)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        of.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return spool(tmp_path)


def test_the_document_of_the_cluster_is_used_from_the_start(
    tmp_path: Path, folder: Path
) -> None:
    hand_over_configuration(folder, document(2), generation=7)
    fallback = write(tmp_path / "fallback.yaml", document(1))
    configuration = begun(None, fallback, spool=folder)

    status, judged = status_of(configuration), verdict(configuration)
    assert (reserved(configuration), status.source) == ("2", DocumentSource.CLUSTER)
    assert status.name == OBJECT
    assert (judged.verdict, judged.why, judged.gone) == (Verdict.ACCEPTED, "", 0.0)
    assert (judged.object.uid, judged.object.generation, judged.object.digest) == (
        *("uid-node.worker-1", 7),
        status.sha256,
    )


def test_the_cluster_precedes_the_runtime(folder: Path) -> None:
    hand_over_configuration(folder, document(2))
    configuration = begun(spool=folder)

    hand_over(configuration, document(3))

    assert reserved(configuration) == "2"


def has_reserved(configuration: DaemonConfiguration, cpus: str) -> bool:
    return reserved(configuration) == cpus


async def test_the_cluster_replaces_the_runtime_and_the_fallback(
    tmp_path: Path, folder: Path
) -> None:
    configuration = begun(
        None, write(tmp_path / "fallback.yaml", document(1)), spool=folder
    )
    hand_over(configuration, document(3))
    async with followed(configuration):
        hand_over_configuration(folder, document(2))
        await until(lambda: reserved(configuration) == "2")


async def test_a_forced_file_precedes_the_cluster(tmp_path: Path, folder: Path) -> None:
    hand_over_configuration(folder, document(2))
    path = write(tmp_path / "forced.yaml", document(1))
    configuration = begun(path, spool=folder)
    cluster = configuration.cluster
    assert cluster is not None
    async with followed(configuration):
        await until(lambda: cluster.status.configuration is not None)
        hand_over_configuration(folder, document(3), generation=2)
        await until(lambda: verdict(configuration).object.generation == 2)

    judged = verdict(configuration)
    assert reserved(configuration) == "1"
    assert (judged.verdict, judged.why) == (
        Verdict.IGNORED,
        f"--config-file {path} is set",
    )


@pytest.mark.slow
async def test_changes_are_followed(folder: Path) -> None:
    configuration = begun(spool=folder)
    async with followed(configuration):
        for number in (1, 2, 3):
            hand_over_configuration(folder, document(number), generation=number)
            await until(partial(has_reserved, configuration, str(number)))

    assert verdict(configuration).object.generation == 3
    assert status_of(configuration).rejected == 0


@pytest.mark.slow
async def test_a_new_file_is_read_without_waiting_for_the_next_poll(
    folder: Path,
) -> None:
    configuration = begun(spool=folder)
    configuration.cluster = ClusterDocuments(str(folder), poll=3600.0)
    async with followed(configuration):
        for number in (1, 2):  # the second by the same watch
            await asyncio.sleep(1.5)  # the one before has been read for the last time
            hand_over_configuration(folder, document(number), generation=number)
            await until(lambda number=number: reserved(configuration) == str(number))  # type: ignore[misc] # a lambda's default has no type


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        (BAD, "$.spec.preservedResources", "unknown key"),
        (UNFIT, "$.spec.reservedResources.cpu", TOO_MANY),
        ("spec: [\n", "", ""),
        (" \n", "", ""),
    ],
)
async def test_an_invalid_document_leaves_the_previous_one_in_force(
    folder: Path, text: str, path: str, why: str
) -> None:
    hand_over_configuration(folder, document(1))
    configuration = begun(spool=folder)
    async with followed(configuration):
        hand_over_configuration(folder, text, generation=2)

        def judged() -> bool:
            found = verdict(configuration)
            return found.verdict is Verdict.REJECTED or bool(found.problem)

        await until(judged)
        found = verdict(configuration)
        hand_over_configuration(folder, document(2), generation=3)
        await until(lambda: reserved(configuration) == "2")

    if path:
        assert (found.object.generation, found.mistakes[0].path) == (2, path)
        assert why in found.mistakes[0].why
        assert found.why == f"{path}: {found.mistakes[0].why}"
    last = verdict(configuration)
    assert (last.verdict, last.mistakes, last.problem) == (Verdict.ACCEPTED, (), "")
    assert status_of(configuration).error is None


def test_an_invalid_document_at_the_start_leaves_the_next_source(
    tmp_path: Path, folder: Path
) -> None:
    hand_over_configuration(folder, BAD)
    configuration = begun(
        None, write(tmp_path / "fallback.yaml", document(1)), spool=folder
    )

    assert reserved(configuration) == "1"
    assert verdict(configuration).verdict is Verdict.REJECTED
    error = status_of(configuration).error
    assert error is not None
    assert (error.source, error.name) == (DocumentSource.CLUSTER, OBJECT)


async def test_a_deleted_object_leaves_the_last_document(folder: Path) -> None:
    hand_over_configuration(folder, document(1))
    configuration = begun(spool=folder)
    async with followed(configuration):
        with capture_logs() as lines:
            (folder / CONFIGURATION).unlink()
            await until(lambda: verdict(configuration).gone > 0)
        gone = reserved(configuration), verdict(configuration).verdict
        hand_over_configuration(folder, document(1))  # the same again
        await until(lambda: verdict(configuration).gone == 0)
        hand_over_configuration(folder, document(2), name="default")
        await until(lambda: reserved(configuration) == "2")

    assert gone == ("1", Verdict.ACCEPTED)
    assert [line["event"] for line in lines] == ["cluster.configuration-gone"]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda whole: whole[:-1], "its digest does not match"),
        (lambda whole: whole.replace(b"cpuset:1", b"cpuset:2"), "digest"),
        (lambda _: document(2).encode(), "no spool file"),
        (lambda whole: whole.replace(b"spool 1", b"spool 2", 1), "version 2"),
    ],
)
async def test_a_truncated_file_leaves_the_last_good_one_in_force(
    folder: Path, spoil: Callable[[bytes], bytes], why: str
) -> None:
    hand_over_configuration(folder, document(1))
    configuration = begun(spool=folder)
    path = folder / CONFIGURATION
    whole = path.read_bytes()
    async with followed(configuration):
        put(path, spoil(whole))
        await until(lambda: bool(verdict(configuration).problem))
        torn = verdict(configuration)
        put(path, whole)
        await until(lambda: not verdict(configuration).problem)

    assert why in torn.problem
    assert (torn.verdict, reserved(configuration)) == (Verdict.ACCEPTED, "1")


def moved(folder: Path, to: Path) -> None:
    folder.rename(to)


async def test_a_folder_that_goes_leaves_all_in_force(folder: Path) -> None:
    hand_over_configuration(folder, document(1))
    configuration = begun(spool=folder)
    cluster = configuration.cluster
    assert cluster is not None
    async with followed(configuration):
        moved(folder, folder.with_name("away"))
        await until(lambda: "no such folder" in cluster.status.problem)
        away = reserved(configuration), verdict(configuration).gone
        moved(folder.with_name("away"), folder)
        await until(lambda: not cluster.status.problem)

    assert away == ("1", 0.0)


async def test_the_last_accepted_document_is_used_at_the_next_start(
    tmp_path: Path, folder: Path
) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    fallback = write(tmp_path / "fallback.yaml", document(1))
    hand_over_configuration(folder, document(2))
    async with followed(first := begun(None, fallback, state, spool=folder)):
        hand_over_configuration(folder, document(3), generation=2)
        await until(lambda: reserved(first) == "3")
        hand_over_configuration(folder, BAD, generation=3)
        await until(lambda: verdict(first).verdict is Verdict.REJECTED)
    (folder / CONFIGURATION).unlink()

    again = begun(None, fallback, state, spool=folder)
    hand_over(again, document(4))  # the runtime, too, has one
    state.remove(CACHE_NAME)  # as --reset-config does
    reset = begun(None, fallback, state, spool=folder)

    assert (reserved(again), status_of(again).cached) == ("3", True)
    assert status_of(again).source is DocumentSource.CLUSTER
    assert reserved(reset) == "1"


async def test_a_document_that_the_start_found_is_used_without_the_folder_as_well(
    tmp_path: Path, folder: Path
) -> None:
    state = StateDir.open(str(tmp_path / "state"))
    hand_over_configuration(folder, document(2))
    async with followed(begun(None, None, state, spool=folder)):
        pass
    hand_over_configuration(folder, document(3), generation=2)
    async with followed(begun(None, None, state, spool=folder)):
        pass
    (folder / CONFIGURATION).unlink()

    again = begun(None, None, state, spool=folder)

    assert (reserved(again), status_of(again).cached) == ("3", True)


async def test_a_reload_reads_the_folder_and_may_be_forced(folder: Path) -> None:
    hand_over_configuration(folder, document(1))
    configuration = begun(spool=folder)
    hand_over_configuration(folder, document(2), generation=2)

    await configuration.reload()

    assert (reserved(configuration), verdict(configuration).object.generation) == (
        *("2", 2),
    )
    hand_over_configuration(folder, BAD, generation=3)
    with pytest.raises(InputError, match="unknown key"):
        await configuration.reload()
    put(folder / CONFIGURATION, b"torn")
    with pytest.raises(InputError, match="no spool file"):
        await configuration.reload()
    assert reserved(configuration) == "2"


async def test_an_agent_that_is_silent_is_reported_once(folder: Path) -> None:
    cluster = ClusterDocuments(str(folder), absent_after=0.3)
    policy = begun(spool=folder).policy
    watching = asyncio.create_task(cluster.follow(policy.configuration, policy))
    with capture_logs() as lines:

        def events() -> list[str]:
            return [line["event"] for line in lines]

        await until(lambda: events() == ["cluster.agent-absent"])
        absent = cluster.status.absent
        cluster.hear("1.0", "worker-1", 12.0)
        await until(lambda: "cluster.agent-returned" in events())
        await until(lambda: events().count("cluster.agent-absent") == 2)
    watching.cancel()

    agent = cluster.status.agent
    assert absent
    assert agent is not None
    assert (agent.version, agent.node) == ("1.0", "worker-1")
    assert agent.contact is not None
    assert agent.seen - agent.contact == pytest.approx(12.0)


def tried(cpu: int) -> str:
    """Write a document that is to be tried only."""
    return as_trial(document(cpu))


def as_trial(text: str) -> str:
    return text.replace("spec: {", "spec: {mode: DryRun, ")


def create_two_containers(configuration: DaemonConfiguration) -> None:
    linux = LinuxContainer(resources=asking_for(1))
    for name in ("web", "db"):
        container = Container(name, f"pod-{name}", name, linux=linux)
        pod = Pod(f"pod-{name}", name, namespace="default")
        configuration.policy.create_container(pod, container)


async def test_a_dry_run_reports_the_changes_and_applies_none(
    folder: Path,
) -> None:
    hand_over_configuration(folder, document(0))
    configuration = begun(spool=folder)
    create_two_containers(configuration)
    before = configuration.policy.state
    async with followed(configuration):
        hand_over_configuration(folder, tried(1), generation=2)
        await until(lambda: verdict(configuration).would_change is not None)
        trial, state = verdict(configuration), configuration.policy.state
        hand_over_configuration(folder, as_trial(UNFIT), generation=3)
        await until(lambda: verdict(configuration).verdict is Verdict.REJECTED)
        refused = verdict(configuration)
        hand_over_configuration(folder, document(1), generation=4)
        await until(lambda: reserved(configuration) == "1")
        enforced = verdict(configuration)
        hand_over_configuration(folder, tried(0), generation=5)
        await until(lambda: verdict(configuration).would_change is not None)

    assert state is before
    assert trial.verdict is Verdict.ACCEPTED
    assert "the configuration before stays in force" in trial.why
    assert trial.would_change is not None
    for one in trial.would_change:
        assert one.now.cpus != one.then.cpus
        wanted = configuration.policy.wanted(one.id)
        assert wanted is not None
        assert one.then.cpus == wanted.cpus  # as it then came to be
    assert len(trial.would_change) > 0
    assert TOO_MANY in refused.why
    assert (enforced.would_change, enforced.why) == (None, "")
    assert reserved(configuration) == "1"


async def test_a_dry_run_has_an_event_and_one_for_each_changed_container(
    folder: Path,
) -> None:
    hand_over_configuration(folder, document(0))
    configuration, history = begun(spool=folder), History()
    assert configuration.cluster is not None
    configuration.cluster.report_trials(history)
    create_two_containers(configuration)
    async with followed(configuration):
        hand_over_configuration(folder, tried(1), generation=2)
        await until(lambda: verdict(configuration).would_change is not None)
        found = verdict(configuration).would_change or ()
        trial, *changes = history.since(0, 1000)
        hand_over_configuration(folder, document(1), generation=3)
        await until(lambda: reserved(configuration) == "1")
        before = history.last
        hand_over_configuration(folder, tried(1), generation=4)
        await until(lambda: verdict(configuration).would_change is not None)

    assert len(found) > 0
    assert (trial.kind, trial.title) == ("configuration.tried", OBJECT)
    assert trial.why.startswith(f"would change {len(found)} container")
    assert [(one.kind, one.title) for one in changes] == [
        ("container.would-change", one.title) for one in found
    ]
    for row, one in zip(changes, found, strict=True):
        assert f"CPUs {one.now.cpus} to {one.then.cpus}" in row.why
    # The same document, which was in force meanwhile, is tried anew.
    assert history.last > before


async def test_a_dry_run_at_the_start_leaves_the_next_source(
    tmp_path: Path, folder: Path
) -> None:
    hand_over_configuration(folder, tried(2))
    configuration = begun(
        None, write(tmp_path / "fallback.yaml", document(1)), spool=folder
    )
    async with followed(configuration):
        await until(lambda: configuration.cluster is not None)
        cluster = configuration.cluster
        assert cluster is not None
        await until(lambda: cluster.status.configuration is not None)

    assert reserved(configuration) == "1"
    assert verdict(configuration).would_change == ()


def test_only_the_cluster_has_dry_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="DryRun is for documents of the cluster"):
        begun(write(tmp_path / "my.yaml", tried(1)))

    configuration = begun()
    hand_over(configuration, tried(1))

    error = status_of(configuration).error
    assert error is not None
    assert error.why.startswith("$.spec.mode: DryRun is for documents of the cluster")
