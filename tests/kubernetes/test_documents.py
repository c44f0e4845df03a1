"""Documents of nri-plugins' users and of ours as custom resources of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from nri_resmgr.policies import known_kinds
from nri_resmgr.topology.synthetic import parse_spec
from tests.cli.command import nri_resmgr
from tests.daemon.daemon_process import daemon
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.nodes import API, Node, until
from tests.kubernetes.test_manifests import lost
from tests.schema.test_laws import DOCUMENTS

pytestmark = [pytest.mark.process, pytest.mark.timeout(600, func_only=True)]

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = (
    *sorted((ROOT / "tests/config/nri_plugins").glob("*.yaml")),
    *(
        path
        for path in sorted((ROOT / "conf.d").glob("*.conf"))
        if "apiVersion: " in path.read_text()  # others are of other plugins
    ),
)
# As many CPUs as the samples name.
MACHINE: Final = "2s2n8c2t"


def named(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a document as an object that can be created."""
    metadata = document.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    return {**document, "metadata": {"name": name, **kept}}


def plural(kind: str) -> str:
    """Return the name of a kind in paths."""
    return f"{kind.lower().removesuffix('y')}ies"


@pytest.mark.usefixtures("our_kinds")
def test_the_api_server_accepts_all_documents_unchanged(
    control_plane: ControlPlane, namespace: str
) -> None:
    wrong: dict[str, object] = {}
    for name, document in DOCUMENTS:
        path = f"/apis/{API}/namespaces/{namespace}/{plural(document['kind'])}"
        body = named(document, "default")

        answer = control_plane.ask("POST", f"{path}?dryRun=All", body)

        if answer.status != 201:
            wrong[name] = answer.body
        elif found := list(
            lost(answer.body.get("spec"), document.get("spec"), "$.spec")
        ):
            wrong[name] = found
    assert wrong == {}
    assert len(DOCUMENTS) > len(SAMPLES)


async def test_samples_are_in_force_or_refused_as_by_check(node: Node) -> None:
    name, refused = f"node.{node.name}", set()
    async with daemon(node.folder, parse_spec(MACHINE), *node.daemon_flags) as running:
        await running.line("control.listening")
        async with node.agent("--kinds", ",".join(known_kinds())):
            for path in SAMPLES:
                document = yaml.safe_load(path.read_text())
                node.kubectl.apply(named(document, name))
                mistakes = checked(node, path)
                found = await judged(node, document["kind"], name)
                # The daemon reports the first one.
                assert bool(mistakes) == bool(found), (path.name, mistakes, found)
                assert set(found) <= set(mistakes), path.name
                refused |= {path.name} if mistakes else set()
                node.kubectl("delete", plural(document["kind"]), name)

    # This host has no frequencies to set.
    assert refused == {"cpu-classes.conf", "cpu-classes.yaml"}
    # The shipped roles suffice for all kinds.
    assert node.missing_rights() == []


def checked(node: Node, path: Path) -> list[str]:
    """Return the mistakes that `check` finds in a file on the node's host."""
    root = node.folder / "host"
    done = nri_resmgr("check", "--host-root", root, "-o", "json", path)
    (result,) = json.loads(done.stdout)["documents"]
    return [f"{one['path']}: {one['why']}" for one in result["mistakes"]]


async def judged(node: Node, kind: str, name: str) -> list[str]:
    """Wait for the verdict on an object; return its mistake, if it is refused."""
    uid = node.kubectl.get(plural(kind), name)["metadata"]["uid"]

    def verdict() -> Any:
        found = node.state()["cluster"]["configuration"]
        return found if found and found["object"]["uid"] == uid else None

    await until(verdict)
    decided = verdict()
    if decided["verdict"] == "accepted":
        assert node.state()["policy"] == kind
    return [f"{one['path']}: {one['why']}" for one in decided["errors"]]
