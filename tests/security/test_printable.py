"""Whatever is in a text: each character of what is shown of it has a glyph."""

from __future__ import annotations

import contextlib
import io
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from nri_resmgr.app.metrics.text import Kind, Metric, Series, render
from nri_resmgr.cli.flags import Parser
from nri_resmgr.cli.streams import PrintableStream
from nri_resmgr.cli.tables import format_changes, format_table
from nri_resmgr.control.http import HttpReply, Site, json_reply
from nri_resmgr.log.output import LogFormat, make_printable, render_plain, write_to
from nri_resmgr.log.sinks import Sink
from nri_resmgr.process.systemd import Notifier
from nri_resmgr.stub.routes import rejection
from nri_resmgr.values.printable import printable, printable_data, printable_json
from tests.security.hostile import ALL, FORGED, TEXTS, forged_in, found_in

JSON = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"U+{ord(one):04X}")
def test_each_hostile_character_becomes_an_escape(one: str) -> None:
    shown = printable(f"a{one}b")

    assert shown.startswith("a\\")
    assert shown.isprintable()
    assert shown.encode().decode("unicode_escape") == f"a{one}b"


@given(TEXTS)
def test_all_that_is_shown_has_a_glyph(text: str) -> None:
    shown = printable(text)

    assert shown.isprintable()
    assert printable(shown) == shown
    assert shown == text or not text.isprintable()


@given(JSON)
def test_json_means_the_same(data: Any) -> None:
    for indent, ascii_only in ((None, True), (2, True), (None, False)):
        text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)

        assert json.loads(printable_json(text)) == data
        assert found_in(printable_json(text)) == set()


@given(JSON)
def test_of_plain_data_keys_and_values_are_made_printable(data: Any) -> None:
    shown = json.dumps(printable_data(data), ensure_ascii=False)

    assert shown.isprintable()


# The edges.


@given(st.dictionaries(st.sampled_from(["event", "title", "x"]), TEXTS), TEXTS)
def test_a_line_of_the_log_is_one_line_and_its_traceback_is_indented(
    event: dict[str, Any], why: str
) -> None:
    try:
        raise ValueError(f"{why}\n{FORGED}")  # noqa: TRY301 - a traceback is wanted
    except ValueError as error:
        row = {**event, "list": [why], "exc_info": error, "level": "error"}
    row = dict(structlog.processors.format_exc_info(None, "error", row))

    lines = [
        render_plain(None, "error", dict(row)),
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )(None, "error", make_printable(None, "error", dict(row))),
    ]

    for line in lines:
        first, *rest = line.split("\n")
        assert first.isprintable()
        assert [one for one in rest if one and not one.startswith("  ")] == []
        assert found_in(line) == set()


class Kept(Sink):
    """A sink that keeps what it gets."""

    has_clock = False
    has_fields = True

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, _: int, line: str, fields: Any) -> bool:
        self.texts += [line, *map(str, fields.values())]
        return True

    def wait(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("log_format", LogFormat)
@given(TEXTS)
def test_the_journal_gets_no_hostile_field(log_format: LogFormat, text: str) -> None:
    kept = Kept()
    before = structlog.get_config()
    write_to(kept, log_format)
    try:
        error = ValueError(text)
        structlog.get_logger().error(text, title=text, names=[text], exc_info=error)
    finally:
        structlog.configure(**before)

    assert len(kept.texts) > 4
    assert found_in("".join(kept.texts)) == set()


@given(st.lists(TEXTS, min_size=3, max_size=3))
def test_a_table_has_a_line_for_each_row(cells: list[str]) -> None:
    table = format_table(("a", "b", "c"), [cells])
    changes = format_changes(("a", "b", "c"), [("refused", *cells[1:])], "refused")

    assert len(table.split("\n")) == 2
    assert found_in(table + changes) == set()


@given(TEXTS)
def test_a_stream_keeps_the_lines_and_nothing_else(text: str) -> None:
    below = io.StringIO()
    stream: Any = PrintableStream(below)

    print(text, file=stream, flush=True)

    assert found_in(below.getvalue()) == set()
    assert below.getvalue().count("\n") == text.count("\n") + 1


@given(TEXTS)
def test_a_mistake_on_the_command_line_is_one_line(text: str) -> None:
    below = io.StringIO()
    parser = Parser(prog="p")
    parser.add_argument("number", type=int)
    with contextlib.redirect_stderr(below), contextlib.suppress(SystemExit):
        parser.parse_args(["--", text])

    assert below.getvalue().count("\n") <= 1
    assert found_in(below.getvalue()) == set()


@given(TEXTS)
def test_answers_and_metrics_have_escapes(text: str) -> None:
    metric = Metric("m", Kind.GAUGE, "Help.", ("pod",))
    replies = (json_reply({text: [text]}), Site({}).refuse(404, text))
    bodies = [one.body for one in replies if isinstance(one, HttpReply)]
    answers = b"".join(one for one in bodies if isinstance(one, bytes)).decode()
    lines = render([Series(metric, {(text,): 1})])

    assert found_in(answers + lines) == set()
    assert len(lines.split("\n")) == 4


@given(TEXTS)
def test_the_reason_of_a_veto_is_printable(text: str) -> None:
    assert rejection(ValueError(text)).reason.isprintable()


def test_a_state_for_systemd_is_one_assignment(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        notifier = Notifier(str(path))
        notifier.send("READY=1", f"STATUS=in sync with {ALL}\nSTOPPING=1")
        notifier.close()
        text = systemd.recv(4096).decode()

    assert [line.partition("=")[0] for line in text.split("\n")] == ["READY", "STATUS"]
    assert found_in(text) == set()


def test_the_finders_find() -> None:
    assert found_in("a\x1b") == {"0x1b"}
    assert len(found_in(ALL)) == len(ALL) - 2
    assert forged_in(f"a\n{FORGED}") == [FORGED]
