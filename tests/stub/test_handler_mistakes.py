"""Mistakes in handlers: errors at the start of a plugin, with the author's line."""

from __future__ import annotations

import inspect
import typing
from pathlib import Path

import pytest

from nri_resmgr.stub import (
    HANDLER_NAMES,
    BadHandler,
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Handlers,
    Observer,
    Plugin,
    Pod,
)
from nri_resmgr.stub import handler_types as types
from nri_resmgr.stub.handler_checks import results_of
from nri_resmgr.stub.handler_types import HANDLER_TYPES
from tests.stub.programs import program, run

HERE = Path(__file__)
REPLIES = (
    "ContainerAdjustment",
    "ContainerUpdate",
    "CreateReply",
    "UpdateReply",
    "int",
)


class Base:
    """A plugin with one handler."""

    def remove_container(self, pod: Pod, container: Container) -> None: ...


def method(name: str) -> object:
    """Make a plugin with `remove_container` and a method *name* that takes anything."""
    return type("Hello", (Base,), {name: lambda *_: None})()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("creat_container", "create_container", id="a letter is missing"),
        pytest.param("stop_containers", "stop_container", id="a letter too many"),
        pytest.param("shutdwon", "shutdown", id="two letters are exchanged"),
        pytest.param("synchronise", "synchronize", id="another spelling"),
        pytest.param("CreateContainer", "create_container", id="as in Go"),
        pytest.param("on_run_pod_sandbox", "run_pod_sandbox", id="a prefix"),
    ],
)
def test_a_misspelled_handler_is_an_error(name: str, meant: str) -> None:
    with pytest.raises(BadHandler) as mistake:
        Handlers.of(method(name))

    assert f"Hello.{name}() is never called, did you mean {meant}()?" in str(
        mistake.value
    )
    assert str(mistake.value).startswith(f"{HERE}:")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("_stop_containers", id="a private method"),
        pytest.param("remove_containers", id="beside the handler itself"),
        pytest.param("restore", id="another word"),
        pytest.param("pause_container", id="another word for containers"),
        pytest.param("update_containers", id="a call to the runtime"),
    ],
)
def test_other_methods_are_no_mistake(name: str) -> None:
    assert [*Handlers.of(method(name)).by_name] == ["remove_container"]


def test_an_observer_and_a_property_are_no_mistake() -> None:
    class Watching(Base, Observer):
        @property
        def create_containers(self) -> int:
            return 1

    assert [*Handlers.of(Watching()).by_name] == ["remove_container"]


class Few:
    """Takes an argument too few."""

    def stop_container(self, pod: Pod) -> None: ...


class Many:
    """Takes an argument too many."""

    async def run_pod_sandbox(self, pod: Pod, container: Container) -> None: ...


class Named:
    """Takes an argument by its name only."""

    def stop_container(
        self, pod: Pod, container: Container, *, force: bool
    ) -> None: ...


class Returning:
    """Returns where nothing is taken."""

    def start_container(self, _: Pod, __: Container) -> ContainerAdjustment:
        return ContainerAdjustment()


class Telling:
    """Returns a word about its success."""

    def start_container(self, _: Pod, __: Container) -> bool:
        return True


class Listing:
    """Returns a list where nothing is taken."""

    async def remove_container(self, _: Pod, __: Container) -> list[object]:
        return []


class Confused:
    """Returns what another handler may."""

    async def stop_container(self, _: Pod, __: Container) -> list[ContainerAdjustment]:
        return []


@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        pytest.param(
            Few(), "stop_container(pod) is called with (pod, container)", id="too few"
        ),
        pytest.param(
            Many(),
            "run_pod_sandbox(pod, container) is called with (pod)",
            id="too many",
        ),
        pytest.param(
            Named(),
            "stop_container(pod, container, force) is called with (pod, container)",
            id="one by its name only",
        ),
        pytest.param(
            Returning(),
            "start_container() returns ContainerAdjustment; its result can be None",
            id="a result where none is taken",
        ),
        pytest.param(
            Telling(),
            "start_container() returns bool; its result can be None",
            id="a word where none is taken",
        ),
        pytest.param(
            Listing(),
            "remove_container() returns list; its result can be None",
            id="a list where none is taken",
        ),
        pytest.param(
            Confused(),
            "stop_container() returns ContainerAdjustment; its result can be None or "
            "ContainerUpdate",
            id="the wrong result",
        ),
    ],
)
def test_a_handler_of_another_shape_is_an_error_with_its_line(
    plugin: object, sentence: str
) -> None:
    with pytest.raises(BadHandler) as mistake:
        Handlers.of(plugin)

    _, first = inspect.getsourcelines(type(plugin))
    assert str(mistake.value) == f"{HERE}:{first + 3}: {sentence}"


def test_a_function_is_checked_where_it_is_registered() -> None:
    def shutdown(pod: Pod) -> None: ...

    with pytest.raises(BadHandler, match=r"shutdown\(pod\) is called with \(\)"):
        Plugin().handler(shutdown)


def test_a_misspelled_name_of_a_function_is_an_error() -> None:
    def shutdwon() -> None: ...

    with pytest.raises(BadHandler, match="did you mean shutdown"):
        Plugin().handler(shutdwon)


@pytest.mark.process
def test_a_program_with_a_mistake_ends_with_one_sentence(tmp_path: Path) -> None:
    body = "class Hello:\n    def creat_container(self, pod, container): ...\n"
    path = program(tmp_path / "hello", f"{body}\nserve(Hello(), index='10')\n")
    done = run(path)

    assert done.returncode == 2
    assert done.stderr == (
        f"{path}: {path}:6: Hello.creat_container() is never called, did you mean "
        "create_container()? Begin its name with an underscore if it is no handler\n"
    )


def test_protocols_are_the_handlers() -> None:
    """Each protocol has its call's arguments and the results that are checked."""
    assert set(HANDLER_TYPES) == set(HANDLER_NAMES)
    for name, kind in HANDLER_TYPES.items():
        hints = typing.get_type_hints(getattr(kind, name), vars(types))
        assert {one for one in REPLIES if one in str(hints["return"])} == results_of(
            name
        )


def test_a_plugin_of_a_protocol_needs_its_handler() -> None:
    class Misspelled(CreateContainerHandler):
        def creat_container(self, pod: Pod, container: Container) -> None: ...

    # mypy reports an ignored error that is none: the checker sees both mistakes.
    with pytest.raises(TypeError, match="create_container"):
        Misspelled()  # type: ignore[abstract]


def test_checkers_see_another_shape() -> None:
    class Short(CreateContainerHandler):
        def create_container(self, pod: Pod) -> None: ...  # type: ignore[override]

    with pytest.raises(BadHandler):
        Handlers.of(Short())
