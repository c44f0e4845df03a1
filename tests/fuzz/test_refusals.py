"""A refusal leaves everything as it was: nothing is applied by half."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.configuration.status import Document, DocumentSource
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.policies import parse_config
from nri_resmgr.values import ResmgrError
from tests.fuzz import samples
from tests.fuzz.drawn import mutants

# Less than any node of ours has, and more.
CPUS = st.sampled_from([0.1, 1, 3, 7, 40])


def everything(policy: ResourcePolicy) -> tuple[Any, ...]:
    """Return what is in force and what is granted."""
    document = policy.configuration.document
    return policy.policy, policy.state, policy.config, policy.machine, document


@pytest.mark.parametrize("kind", samples.KINDS)
@given(st.data())
def test_a_document_counts_as_a_whole_or_not_at_all(
    kind: str, data: st.DataObject
) -> None:
    policy = samples.fresh_policy(kind)
    before = everything(policy)
    text = data.draw(mutants(samples.documents()))

    try:
        policy.configuration.offer(Document(text, DocumentSource.FILE))
    except ResmgrError:
        assert everything(policy) == before
        assert policy.configuration.status.rejected == 1
    else:
        assert policy.config == parse_config(text)
        assert policy.state.ledger.entries.keys() == before[1].ledger.entries.keys()


@pytest.mark.parametrize("kind", samples.KINDS)
@given(mutants(samples.annotated()), mutants(samples.RESOURCES), CPUS)
def test_a_creation_counts_as_a_whole_or_not_at_all(
    kind: str, reported: str, resources: str, cpus: float
) -> None:
    policy = samples.busy_policy(kind)
    before = everything(policy)
    texts = {**texts_of(reported), "noderesource.dev/resources": resources}
    pod, container = samples.pod("new", texts), samples.container("new", cpus)

    try:
        policy.create_container(pod, container)
    except ResmgrError:
        assert everything(policy) == before
    else:
        assert "new" in policy.state.ledger.entries
        policy.remove_pod_sandbox(pod)


def texts_of(text: str) -> dict[str, str]:
    """Take annotations out of JSON that may be anything."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    texts = found.items() if isinstance(found, dict) else ()
    return {key: one for key, one in texts if isinstance(one, str)}
