"""The identity of a plugin from arguments, environment and program name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.stub import BadIdentity, Identity
from nri_resmgr.stub.identity import find_identity

LAUNCHED = {"NRI_PLUGIN_NAME": "launched", "NRI_PLUGIN_IDX": "42"}


@pytest.mark.parametrize(
    ("name", "index", "environment", "program", "expected"),
    [
        pytest.param(None, None, LAUNCHED, "/x/prog", "42-launched", id="the runtime"),
        pytest.param(
            "mine", None, LAUNCHED, "x", "42-launched", id="not the author's name"
        ),
        pytest.param(
            None, "07", LAUNCHED, "x", "42-launched", id="not the author's index"
        ),
        pytest.param(
            None, "42", LAUNCHED, "x", "42-launched", id="the same index twice"
        ),
        pytest.param("a", "07", {}, "99-x", "07-a", id="the author before the file"),
        pytest.param(None, None, {}, "/p/10-a-b", "10-a-b", id="the file's name"),
        pytest.param(None, None, {}, "10-a.py", "10-a", id="without .py"),
        pytest.param(None, "07", {}, "/p/tuner.py", "07-tuner", id="a plain file"),
        pytest.param(None, "07", {}, "10-tuner", "07-tuner", id="another index"),
        pytest.param("b", None, {}, "10-a", "10-b", id="another name"),
        pytest.param(
            None, None, {}, "/p/10-a/__main__.py", "10-a", id="a folder that is run"
        ),
        pytest.param(
            None, "07", {"NRI_PLUGIN_NAME": "n"}, "x", "07-n", id="half from each"
        ),
    ],
)
def test_the_identity_comes_from(
    name: str | None,
    index: str | None,
    environment: dict[str, str],
    program: str,
    expected: str,
) -> None:
    variables = {**environment, "HOME": "/"}

    assert str(find_identity(name, index, variables, program)) == expected
    assert variables == {"HOME": "/"}  # children do not see them


@pytest.mark.parametrize(
    ("name", "index", "environment", "program", "sentence"),
    [
        pytest.param(
            None,
            None,
            {},
            "/p/tuner.py",
            "plugin 'tuner': NN-name is needed, as in 10-tuner",
            id="no index anywhere",
        ),
        pytest.param(
            "a,b",
            "10",
            {},
            "x",
            "plugin name 'a,b': only letters, digits and _.+- are allowed",
            id="a comma",
        ),
        pytest.param(
            "a\n",
            "10",
            {},
            "x",
            "plugin name 'a\\n': only letters, digits and _.+- are allowed",
            id="a line break",
        ),
        pytest.param(
            "",
            "10",
            {},
            "10-x",
            "plugin name '': only letters, digits and _.+- are allowed",
            id="no letter of a name",
        ),
        pytest.param(
            "a",
            "1",
            {},
            "x",
            "plugin index '1': two digits are needed, 00 to 99",
            id="one digit",
        ),
        pytest.param(
            "a",
            "\u0661\u0662",
            {},
            "x",
            "plugin index '\u0661\u0662': two digits are needed, 00 to 99",
            id="digits of another script",
        ),
    ],
)
def test_there_is_no_identity_in(
    name: str | None,
    index: str | None,
    environment: dict[str, str],
    program: str,
    sentence: str,
) -> None:
    with pytest.raises(BadIdentity) as mistake:
        find_identity(name, index, dict(environment), program)

    assert str(mistake.value) == sentence


@given(
    st.from_regex(r"[A-Za-z0-9_.+-]+", fullmatch=True),
    st.from_regex("[0-9]{2}", fullmatch=True),
)
def test_a_printed_identity_is_read_back(name: str, index: str) -> None:
    identity = Identity(name, index)

    assert Identity.parse(str(identity)) == identity
