"""What kubectl says, in one sentence."""

from __future__ import annotations

import pytest

from nri_resmgr.kubectl.client import failure_of
from nri_resmgr.kubectl.errors import AnswerRefused, Forbidden, KubectlFailed, NotFound

NO_RIGHT = (
    'pods "a" is forbidden: User "u" cannot create resource "pods/exec" in API group '
    '"" in the namespace "n"'
)
EXITED = "command terminated with exit code 2\n"


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        (
            'Error from server (NotFound): pods "web" not found\n',
            NotFound,
            'pods "web" not found',
        ),
        (
            f"Error from server (Forbidden): {NO_RIGHT}\n",
            Forbidden,
            f"{NO_RIGHT}; an administrator of the cluster can grant this right",
        ),
        (
            "Warning: version differs\nUnable to connect to the server: no route\n",
            KubectlFailed,
            "Unable to connect to the server: no route",
        ),
        (
            'error: unable to upgrade connection: container not found ("nri-resmgr")',
            KubectlFailed,
            'unable to upgrade connection: container not found ("nri-resmgr")',
        ),
        (
            f"nri-resmgr: no running container matches 'gpu'\n{EXITED}",
            AnswerRefused,
            "no running container matches 'gpu'",
        ),
        (EXITED, AnswerRefused, "exit status 2"),
        ("", KubectlFailed, "kubectl failed without a reason"),
    ],
)
def test_the_reason_is_a_sentence(
    text: str, kind: type[Exception], sentence: str
) -> None:
    error = failure_of(text, 2)

    assert type(error) is kind
    assert str(error) == sentence
    assert error.status == (2 if kind is AnswerRefused else 1)
