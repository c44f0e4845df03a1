"""What becomes of containerd's files, stock ones, edited ones and broken ones."""

from __future__ import annotations

import pytest
from hypothesis import given

from nri_resmgr.runtimes.containerd import (
    KEYS,
    MAIN,
    Containerd,
    backup_of,
    switched_back,
    switched_on,
)
from nri_resmgr.runtimes.errors import (
    NotChanged,
    NotEditable,
    Overridden,
)
from nri_resmgr.runtimes.switch import (
    MARK,
    ConfigFile,
    FileChange,
)
from nri_resmgr.runtimes.toml_edit import parse, table_of
from tests.runtimes.containerd_files import (
    CONF_D,
    DEBIAN,
    DROP_IN,
    IMPORTS,
    NRI_2,
    NRI_3,
    STOCK_1_7,
    STOCK_2,
    after,
    edit,
    only,
)
from tests.runtimes.toml_documents import toml_documents


@pytest.mark.parametrize(
    ("text", "times", "after"),
    [
        pytest.param(
            STOCK_1_7,
            (),
            STOCK_1_7.replace("disable = true", "disable = false"),
            id="stock 1.7 has it off",
        ),
        pytest.param(STOCK_2, (), STOCK_2, id="stock 2 has it on"),
        pytest.param(
            STOCK_2,
            ("10s", "3s"),
            STOCK_2.replace("'5s'", "'10s'").replace("'2s'", "'3s'"),
            id="stock 2 with other times",
        ),
        pytest.param(
            DEBIAN,
            ("", "500ms"),
            f'{DEBIAN}\n{NRI_2}  disable = false\n  plugin_request_timeout = "500ms"\n',
            id="Debian's does not name it",
        ),
        pytest.param(
            "version = 3\n[grpc]\n",
            ("1m30s", ""),
            f'version = 3\n[grpc]\n\n{NRI_2}  plugin_registration_timeout = "1m30s"\n',
            id="where it is on, only the time is set",
        ),
        pytest.param(
            f"version = 4\n{NRI_3}disable = true # for now\n",
            (),
            f"version = 4\n{NRI_3}disable = false # for now\n",
            id="version 4, switched off by hand",
        ),
    ],
)
def test_a_file_alone_is_edited(text: str, times: tuple[str, ...], after: str) -> None:
    assert switched_on(only(text), KEYS.wanted(*times)) == edit(text, after)


def test_where_it_is_on_by_default_nothing_is_written() -> None:
    text = "version = 3\n"

    assert switched_on(only(text), KEYS.wanted()) == FileChange(MAIN, text, text)


def test_a_drop_in_where_the_file_imports_them() -> None:
    change = switched_on(only(f"version = 2\n{IMPORTS}"), KEYS.wanted("10s"))

    assert change == FileChange(
        DROP_IN,
        None,
        f"{MARK}version = 2\n\n{NRI_2}  disable = false\n"
        '  plugin_registration_timeout = "10s"\n',
    )


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("conf.d/*", id="relative, which releases read differently"),
        pytest.param("/etc/*/conf.d/*.toml", id="many folders"),
        pytest.param(f"{CONF_D}/*.conf", id="other names"),
        pytest.param("/etc/containerd/x.toml", id="one file"),
    ],
)
def test_no_drop_in_where_it_might_not_be_read(pattern: str) -> None:
    text = f"version = 2\nimports = ['{pattern}']\n"

    assert switched_on(only(text), KEYS.wanted()).path == MAIN


def test_a_drop_in_would_hide_the_rest_of_a_table() -> None:
    text = f"version = 2\n{IMPORTS}{NRI_2}socket_path = '/x'\n"
    after = f"{text}disable = false\n"

    assert switched_on(only(text), KEYS.wanted()) == edit(text, after)


def test_without_any_file_one_is_written_that_hides_no_drop_in() -> None:
    after = f"{MARK}version = 2\n{IMPORTS}\n{NRI_2}  disable = false\n"

    assert switched_on(Containerd(), KEYS.wanted()) == FileChange(MAIN, None, after)


def test_without_any_file_and_with_nri_on_nothing_is_written() -> None:
    assert switched_on(Containerd(is_on=True), KEYS.wanted()).is_none
    assert not switched_on(Containerd(is_on=True), KEYS.wanted("9s")).is_none


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DEBIAN, id="an edited file"),
        pytest.param(STOCK_1_7, id="a table that was there"),
        pytest.param(f"version = 2\n{IMPORTS}", id="a drop-in"),
        pytest.param(None, id="a first file of ours"),
    ],
)
def test_times_may_come_one_by_one_and_all_goes_back(text: str | None) -> None:
    main = ConfigFile(MAIN, text) if text is not None else None
    found = Containerd(main)
    for times in (("", "3s"), ("9s", ""), ("", ""), ("8s", "4s")):
        found = after(found, switched_on(found, KEYS.wanted(*times)))
    at_once = after(
        Containerd(main), switched_on(Containerd(main), KEYS.wanted("8s", "4s"))
    )

    assert found == at_once
    assert after(found, switched_back(found)).files == Containerd(main).files


@given(toml_documents())
def test_any_file_comes_back_to_the_byte(text: str) -> None:
    found = only(text)
    try:
        change = switched_on(found, KEYS.wanted("9s", "3s"))
    except NotEditable:
        return
    done = after(found, change)

    assert table_of(parse(MAIN, change.after or ""), KEYS.table) is not None
    assert switched_on(done, KEYS.wanted("9s", "3s")).is_none
    assert after(done, switched_back(done)) == found


def test_times_stay_that_were_asked_for_before() -> None:
    found = only(DEBIAN)
    for times in (("", "3s"), ("", "")):
        found = after(found, switched_on(found, KEYS.wanted(*times)))

    assert found.main is not None
    assert found.main.text.endswith('plugin_request_timeout = "3s"\n')


def test_changes_made_since_are_not_lost() -> None:
    change = switched_on(only(DEBIAN), KEYS.wanted())
    since = only(f"{change.after}# mine\n", original=DEBIAN)
    with pytest.raises(NotChanged) as refusal:
        switched_back(since)

    assert str(refusal.value) == (
        f"{MAIN} was changed after NRI was enabled in it; the original is "
        f"{backup_of(MAIN)}: merge them by hand"
    )
    # And what is asked for later goes into the changed file.
    again = switched_on(since, KEYS.wanted("9s"))
    assert again.after is not None
    assert again.after.endswith('timeout = "9s"\n# mine\n')


def test_without_changes_there_is_nothing_to_undo() -> None:
    assert switched_back(only(STOCK_1_7)).is_none
    assert switched_back(Containerd()).is_none


@pytest.mark.parametrize(
    ("first", "later", "is_enough"),
    [
        pytest.param("", "disable = false", True, id="it alone has the table"),
        pytest.param("disable = true", "disable = false", True, id="it goes before"),
        pytest.param(
            "disable = false", "socket_path = '/x'", False, id="it hides ours"
        ),
    ],
)
def test_a_later_file_that_has_it_on_is_enough(
    first: str, later: str, *, is_enough: bool
) -> None:
    theirs = ConfigFile(f"{CONF_D}/99-x.toml", f"version = 2\n{NRI_2}{later}\n")
    head = f"version = 2\n{NRI_2 if first else ''}{first}\n"
    if is_enough:
        assert switched_on(only(head, theirs), KEYS.wanted()).is_none
    else:
        with pytest.raises(Overridden):
            switched_on(only(head, theirs), KEYS.wanted())


def test_a_setting_that_keeps_plugins_out_is_reported() -> None:
    text = f"version = 2\n{NRI_2}disable = true\ndisable_connections = true\n"

    (note,) = switched_on(only(text), KEYS.wanted()).notes

    assert note == (
        "disable_connections is set: only launched plugins are served, not a service "
        "or a pod"
    )
