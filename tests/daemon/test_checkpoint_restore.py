"""What a policy begins with after a restart, and when it may not begin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nri_resmgr.app.configuration.acceptance import Rules, SwitchForbidden
from nri_resmgr.app.configuration.status import BUILT_IN, Document, DocumentSource
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME, Draft, checkpoint
from nri_resmgr.checkpoint.restore import restore_checkpoint
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.policies import parse_config
from nri_resmgr.stub import Container, Pod
from nri_resmgr.stub.runtime_info import Configuration as HandedOver
from nri_resmgr.stub.runtime_info import RuntimeInfo
from tests.daemon.documents import document, make

POD = Pod(id="p", name="p", uid="u")
WEB = Container(id="web", name="web", pod_sandbox_id="p")


def policy_of(
    text: str, source: DocumentSource, *, may_switch: bool = True
) -> ResourcePolicy:
    kind = BUILT_IN if source is DocumentSource.BUILT_IN else Document(text, source)
    return make(parse_config(text), kind, Rules(may_switch=may_switch))


@pytest.fixture
def static(tmp_path: Path) -> Iterator[StateDir]:
    """The state of a static policy with one container."""
    state = StateDir.open(str(tmp_path / "state"))
    former = policy_of(document(0), DocumentSource.FILE)
    former.synchronize((POD,), ())
    former.create_container(POD, WEB)
    lines = Draft().lines_of(former.policy, former.state)
    text = checkpoint(lines, former.policy.kind, "1.0", "yesterday")
    state.write(CHECKPOINT_NAME, text)
    yield state
    state.close()


TREE = document(0, "TopologyAwarePolicy")


def test_a_file_of_another_kind_is_refused_at_once(static: StateDir) -> None:
    policy = policy_of(TREE, DocumentSource.FILE, may_switch=False)
    with pytest.raises(SwitchForbidden) as refusal:
        restore_checkpoint(static, policy, may_switch=False)

    assert (refusal.value.kind, refusal.value.kept) == (
        "TopologyAwarePolicy",
        "StaticPolicy",
    )


def test_the_default_waits_for_a_document_of_the_right_kind(static: StateDir) -> None:
    policy = policy_of("", DocumentSource.BUILT_IN, may_switch=False)
    restore_checkpoint(static, policy, may_switch=False)
    for _ in range(2):
        with pytest.raises(SwitchForbidden):
            policy.synchronize((POD,), (WEB,))
    policy.configure(HandedOver(document(0), RuntimeInfo()))
    policy.synchronize((POD,), (WEB,))

    assert policy.config.kind == "StaticPolicy"
    assert list(policy.state.ledger.entries) == ["web"]


def test_a_document_that_would_switch_is_not_taken(static: StateDir) -> None:
    policy = policy_of(document(0), DocumentSource.RUNTIME, may_switch=False)
    restore_checkpoint(static, policy, may_switch=False)
    policy.configure(HandedOver(TREE, RuntimeInfo()))

    assert policy.config.kind == "StaticPolicy"
    assert policy.configuration.status.rejected == 1


def test_where_a_switch_is_allowed_the_other_policy_starts_empty(
    static: StateDir,
) -> None:
    policy = policy_of(TREE, DocumentSource.FILE)
    restore_checkpoint(static, policy, may_switch=True)
    policy.synchronize((POD,), (WEB,))

    assert policy.config.kind == "TopologyAwarePolicy"
    assert list(policy.state.ledger.entries) == ["web"]


def test_an_invalid_record_is_set_aside_at_the_synchronization(
    static: StateDir,
) -> None:
    policy = policy_of(document(0), DocumentSource.FILE)
    lines = ['["grant","missing",{"cpus":"1"}]\n']
    static.write(CHECKPOINT_NAME, checkpoint(lines, "StaticPolicy", "1.0", "today"))
    restore_checkpoint(static, policy, may_switch=True)
    policy.synchronize((POD,), (WEB,))

    assert static.read(CHECKPOINT_NAME) is None
    assert static.read(f"{CHECKPOINT_NAME}.bad-1") is not None
    assert list(policy.state.ledger.entries) == ["web"]
