"""The files of the quickstart, given to a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.kubectl import Kubectl, KubectlFailed

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "kind"


@pytest.mark.usefixtures("our_kinds")
@pytest.mark.parametrize(
    ("name", "objects"),
    [
        ("policy", ["topologyawarepolicy.config.nri/default"]),
        ("pods", ["pod/web", "pod/batch"]),
    ],
)
def test_the_api_server_takes_a_file(
    kubectl: Kubectl, name: str, objects: list[str]
) -> None:
    file = FOLDER / f"{name}.yaml"
    # The document has a namespace of its own.
    user = kubectl.within("") if name == "policy" else kubectl

    said = user("apply", "--dry-run=server", "-o", "name", "-f", file)

    assert said.split() == objects


def test_a_pod_with_a_wrong_key_is_not_taken(kubectl: Kubectl) -> None:
    text = (FOLDER / "pods.yaml").read_text().replace("command:", "comand:", 1)

    with pytest.raises(KubectlFailed, match="comand"):
        kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
