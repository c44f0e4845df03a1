"""Adds OCI hooks to containers, by the files of podman's and CRI-O's hook folders."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import structlog

from nri_resmgr.host.bounded import DOCUMENT, read_file, reason
from nri_resmgr.sdk.settings import Settings
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    Hook,
    Hooks,
    InputError,
    Pod,
    serve,
)

log = structlog.get_logger(__name__)

# A file of a later folder replaces that of the same name in an earlier one.
DIRECTORIES: Final = (
    "/usr/share/containers/oci/hooks.d",
    "/etc/containers/oci/hooks.d",
)

# Fields of Hooks by the names of the OCI runtime specification.
STAGES: Final[Mapping[str, str]] = {
    "prestart": "prestart",
    "createRuntime": "create_runtime",
    "createContainer": "create_container",
    "startContainer": "start_container",
    "poststart": "poststart",
    "poststop": "poststop",
}
Stage = Literal[
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
]

# Classes of POSIX' regular expressions, which Python's do not have.
CLASSES: Final[Mapping[str, str]] = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:blank:]": r"\t ",
    "[:cntrl:]": r"\x00-\x1f\x7f",
    "[:digit:]": "0-9",
    "[:graph:]": "!-~",
    "[:lower:]": "a-z",
    "[:print:]": " -~",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:space:]": r"\t\n\v\f\r ",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}


class HookSettings(Settings, frozen=True):
    """The keys of the configuration document with their defaults."""

    directories: tuple[str, ...] = DIRECTORIES


class HookEntry(msgspec.Struct, frozen=True):
    """The program of a hook; `timeout` in seconds."""

    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class When(msgspec.Struct, frozen=True, rename="camel"):
    """Conditions, all of which have to hold; without any none does."""

    always: bool | None = None
    annotations: Mapping[str, str] = {}
    commands: tuple[str, ...] = ()
    has_bind_mounts: bool | None = None


class HookFile(msgspec.Struct, frozen=True):
    """A file of a hook folder.

    Source:
        oci-hooks(5), "1.0.0 Hook Schema".
    """

    version: Literal["1.0.0"]
    hook: HookEntry
    when: When
    stages: Annotated[tuple[Stage, ...], msgspec.Meta(min_length=1)]


class Rule:
    """A hook with its conditions.

    Raises:
        InputError: A pattern is no regular expression, or the program is missing.
    """

    def __init__(self, file: HookFile) -> None:
        entry, self._when = file.hook, file.when
        if not Path(entry.path).exists():
            raise InputError(f"hook.path: {entry.path} does not exist")
        hook = Hook(entry.path, entry.args, entry.env, entry.timeout)
        kinds = {STAGES[stage]: (hook,) for stage in file.stages}
        self.hooks = Hooks(**kinds)
        self._commands = [compiled(text) for text in file.when.commands]
        self._annotations = [
            (compiled(key), compiled(value))
            for key, value in file.when.annotations.items()
        ]

    def matches(self, pod: Pod, container: Container) -> bool:
        """Return whether the container gets the hook."""
        annotations = {**container.annotations, **pod.annotations}
        holds = [
            any(key.search(k) and value.search(v) for k, v in annotations.items())
            for key, value in self._annotations
        ]
        if self._when.always is not None:
            holds.append(self._when.always)
        if self._when.has_bind_mounts is not None:
            holds.append(self._when.has_bind_mounts and bool(container.mounts))
        if self._commands:
            command = container.args[0] if container.args else ""
            holds.append(any(one.search(command) for one in self._commands))
        return bool(holds) and all(holds)


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of a hook file.

    Raises:
        InputError: It is no regular expression.
    """
    # Python's $ matches before a newline at the end of a value, too.
    text = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    for name, characters in CLASSES.items():
        text = text.replace(name, characters)
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise InputError(f"pattern {pattern!r}: {error}") from None


class HookFolders:
    """Hook files of several folders, read again when one has changed."""

    def __init__(self, directories: tuple[str, ...]) -> None:
        self._directories = directories
        self._seen: list[tuple[Path, int, int, int]] = []
        self._rules: list[Rule] = []

    def load(self) -> None:
        """Read all files anew.

        Raises:
            InputError: A file is not valid; what was read before stays.
        """
        self._seen = self._look()
        files = {path.name: path for path, *_ in self._seen}
        # The order of oci-hooks(5), which says in which order hooks run.
        names = sorted(files, key=str.lower)
        self._rules = [read_rule(files[name]) for name in names]

    def rules(self) -> list[Rule]:
        """Return the rules in force; changed files count once all are valid."""
        try:
            if self._look() != self._seen:
                self.load()
                log.info("hooks.read", count=len(self._rules))
        except InputError as error:
            log.error("hooks.not-read", why=str(error))
        return self._rules

    def _look(self) -> list[tuple[Path, int, int, int]]:
        found = []
        for directory in self._directories:
            try:
                files = sorted(Path(directory).iterdir())
            except FileNotFoundError:
                continue
            except OSError as error:
                raise InputError(f"{directory}: {reason(error)}") from None
            for path in files:
                # A file may be removed just now, and a link may lead nowhere.
                with contextlib.suppress(FileNotFoundError):
                    if path.name.endswith(".json"):
                        at = path.stat()
                        found.append((path, at.st_mtime_ns, at.st_size, at.st_ino))
        return found


def read_rule(path: Path) -> Rule:
    """Read a hook file.

    Raises:
        InputError: It is not valid.
    """
    try:
        content = read_file(path, DOCUMENT)
        return Rule(msgspec.json.decode(content, type=HookFile))
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    except (InputError, msgspec.MsgspecError) as error:
        raise InputError(f"{path}: {error}") from None


class HookInjector(ConfigureHandler, CreateContainerHandler):
    """The plugin."""

    def __init__(self) -> None:
        self._folders = HookFolders(())

    def configure(self, configuration: Configuration) -> None:
        """Read the hook files; called at the start of each session."""
        settings = HookSettings.read(configuration.text)
        self._folders = HookFolders(settings.directories)
        self._folders.load()

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Return the hooks whose conditions hold for the container."""
        adjustment = ContainerAdjustment()
        for rule in self._folders.rules():
            if rule.matches(pod, container):
                adjustment = adjustment.add_hooks(rule.hooks)
        return adjustment


if __name__ == "__main__":
    serve(HookInjector(), index="10")
