"""The name and index under which `install` puts a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from nri_resmgr.cli.install import find_program
from nri_resmgr.cli.program_identity import identity_of
from nri_resmgr.stub import BadIdentity


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        pytest.param(
            "hello.py", "serve(A(), index='10')", "10-hello", id="an argument"
        ),
        pytest.param("hello", "stub.serve(A(), index='10')", "10-hello", id="of stub"),
        pytest.param(
            "hello.py",
            "def main():\n    serve(A(), name='x', index=PLACE)\nPLACE = '11'",
            "11-hello",
            id="a constant",
        ),
        pytest.param(
            "hello.py",
            "PLACE: Final = '12'\nserve(A(), index=PLACE)",
            "12-hello",
            id="a constant with a type",
        ),
        pytest.param(
            "hello.py", "serve(A(), index=sys.argv[1])", "90-hello", id="computed"
        ),
        pytest.param("hello.py", "serve(A(), index=None)", "90-hello", id="no text"),
        pytest.param("hello.py", "run(A(), index='10')", "90-hello", id="not serve"),
        pytest.param("hello.py", "serve(A())", "90-hello", id="no argument"),
        pytest.param("hello.py", "serve(", "90-hello", id="no Python"),
        pytest.param("05-hello.py", "serve(A())", "05-hello", id="the file's index"),
        pytest.param(
            "05-hello.py",
            "serve(A(), index='10')",
            "10-hello",
            id="the argument before the file's",
        ),
        pytest.param(
            "hello/__main__.py", "serve(A(), index='10')", "10-hello", id="a folder"
        ),
    ],
)
def test_the_identity_is_the_programs_own(
    file: str, text: str, expected: str, tmp_path: Path
) -> None:
    path = written(tmp_path / file, text)
    program = path.parent if path.name == "__main__.py" else path

    assert str(identity_of(program, None, None)) == expected


def test_name_and_index_of_the_operator_have_priority(tmp_path: Path) -> None:
    program = written(tmp_path / "05-hello.py", "serve(A(), index='10')")

    assert str(identity_of(program, "own", "20")) == "20-own"
    assert str(identity_of(program, None, "20")) == "20-hello"
    assert str(identity_of(program, "own", None)) == "10-own"


def test_a_program_may_have_an_encoding_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "hello.py"
    text = "# -*- coding: latin-1 -*-\nserve(A('é'), index='10')\n"
    program.write_bytes(text.encode("latin-1"))

    assert str(identity_of(program, None, None)) == "10-hello"


def test_an_index_that_the_runtime_would_refuse_is_an_error(tmp_path: Path) -> None:
    program = written(tmp_path / "hello.py", "serve(A(), index='5')")

    with pytest.raises(BadIdentity, match="two digits"):
        identity_of(program, None, None)


@pytest.mark.parametrize(
    ("plugin", "identity"),
    [
        ("logger", "99-logger"),
        ("template", "10-template"),
        ("resource-policy", "90-resource-policy"),
    ],
)
def test_shipped_plugins_are_installed_under_their_own_index(
    plugin: str, identity: str
) -> None:
    assert str(identity_of(find_program(plugin), None, None)) == identity
