"""A field has one owner; only a plugin that clears it may set it again."""

from __future__ import annotations

import pytest

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.testing.errors import FieldConflict
from nri_resmgr.testing.merge import Owners


def test_a_plugin_may_claim_a_field_that_it_cleared() -> None:
    owners = Owners()
    owners.claim("c0", nri_pb2.Env, "10-a", "K")
    owners.clear("c0", nri_pb2.Env, "20-b", "K")
    owners.claim("c0", nri_pb2.Env, "20-b", "K")

    assert owners.message() == nri_pb2.OwningPlugins(
        owners={
            "c0": nri_pb2.FieldOwners(
                compound={
                    nri_pb2.Env: nri_pb2.CompoundFieldOwners(owners={"K": "20-b"})
                }
            )
        }
    )


def test_no_other_plugin_may_claim_a_cleared_field() -> None:
    owners = Owners()
    owners.clear("c0", nri_pb2.Args, "10-a")

    with pytest.raises(FieldConflict) as conflict:
        owners.claim("c0", nri_pb2.Args, "20-b")
    assert str(conflict.value) == ('plugins "20-b" and "10-a" both tried to set Args')
    assert owners.message().owners["c0"].simple == {nri_pb2.Args: "-10-a"}


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (NriLevel(0, 9, 1), "hugepage limit of size 2MB"),
        (NriLevel(0, 10), "HugepageLimits 2MB"),
    ],
)
def test_a_conflict_has_the_words_of_the_release(level: NriLevel, words: str) -> None:
    owners = Owners(level)
    owners.claim("c0", nri_pb2.HugepageLimits, "10-a", "2MB")

    with pytest.raises(FieldConflict) as conflict:
        owners.claim("c0", nri_pb2.HugepageLimits, "20-b", "2MB")
    assert str(conflict.value).endswith(f'"20-b" and "10-a" both tried to set {words}')


def test_containers_keys_and_fields_have_owners_of_their_own() -> None:
    owners = Owners()
    owners.claim("c0", nri_pb2.Env, "10-a", "K")
    owners.claim("c0", nri_pb2.Env, "20-b", "L")
    owners.claim("c0", nri_pb2.Mounts, "20-b", "K")
    owners.claim("c1", nri_pb2.Env, "20-b", "K")

    assert set(owners.message().owners) == {"c0", "c1"}
