"""Which document is in force, and what becomes of the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from nri_resmgr.app.configuration.status import (
    BUILT_IN,
    ConfigurationStatus,
    Document,
    Rejection,
    Source,
)
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.config import PolicyConfig, parse_config
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError, ResmgrError

log = Logger(__name__)


@dataclass(eq=False)
class SwitchForbidden(InputError):
    """The document is of another kind, and the operator wants to keep this one."""

    kind: str
    kept: str

    def __str__(self) -> str:
        return (
            f"$.kind: {self.kind} cannot follow {self.kept} here: "
            "--disable-policy-switch; without it, start again to switch"
        )


def keep_nothing(_: Document | None) -> None:
    """Leave the next start without what was accepted."""


def _only_built_in() -> Iterable[Document]:
    return (BUILT_IN,)


def _tell_nobody(_: Rejection) -> None:
    return None


class Rules(msgspec.Struct, frozen=True):
    """How a plugin deals with documents.

    Attributes:
        launched: Whether the runtime started us. Then its text is all that it has
            for us, and a blank one takes back the one before.
        may_switch: Whether another kind may follow the one that placed containers.
        keep: Given each document from outside that was accepted, for the next
            start; None when the source has taken its own back.
        lower: Gives the documents that count where no external one does.
    """

    launched: bool = False
    may_switch: bool = True
    keep: Callable[[Document | None], None] = keep_nothing
    lower: Callable[[], Iterable[Document]] = _only_built_in


DEFAULT_OPTIONS: Final = Rules()


class Configured(Protocol):
    """What goes by a configuration; a `ResourcePolicy` is one."""

    @property
    def config(self) -> PolicyConfig:
        """What it goes by now."""

    def reconfigure(self, config: PolicyConfig) -> None:
        """Go by another one, or raise and change nothing."""


class Configuration:
    """Takes documents, all of one or nothing, and remembers how that went.

    A document replaces one of the same source, or of a source that does not go
    before its own. Nothing here opens a file: texts come in.

    Attributes:
        document: What is in force.
    """

    _policy: Configured
    _parsed: PolicyConfig

    def __init__(self, document: Document, rules: Rules = DEFAULT_OPTIONS) -> None:
        """Begin with *document*; `connect` what goes by it before anything else."""
        self.document = document
        self._rules = rules
        self._placed_by = ""
        self._ignored: set[Source] = set()
        self._accepted = time.time()
        self._generation = 1
        self._rejected = 0
        self._error: Rejection | None = None
        self._told: Callable[[Rejection], None] = _tell_nobody

    def connect(self, policy: Configured) -> None:
        """Tell what goes by the configuration, already by the document's."""
        self._policy, self._parsed = policy, policy.config

    @property
    def status(self) -> ConfigurationStatus:
        """What is in force, since when, and the last mistake."""
        return ConfigurationStatus(
            source=self.document.source,
            name=self.document.name,
            cached=self.document.cached,
            kind=self._policy.config.kind,
            sha256=sha256(self.document.text.encode()).hexdigest(),
            accepted=self._accepted,
            generation=self._generation,
            ineffective=self._policy.config.ineffective,
            rejected=self._rejected,
            error=self._error,
        )

    def hand_over(self, text: str) -> None:
        """Take the text of Configure.

        A mistake in it is no reason to leave the node: what was in force still is,
        and the log and `status` tell why.
        """
        if text.strip():
            with suppress(ResmgrError):
                self.offer(Document(text, Source.RUNTIME))
        elif self._rules.launched and self.document.source is Source.RUNTIME:
            self.withdraw()

    def offer(self, document: Document, *, again: bool = False) -> None:
        """Put a document in force, if its source is not behind the present one's.

        Args:
            document: What somebody says.
            again: Whether to build everything anew though the text is the same: it
                may name CPUs by a cgroup, which has others now.

        Raises:
            InputError: It has a mistake, does not fit the machine, or is of a kind
                that may not follow. What was in force still is.
            HostError: It names something of the host that cannot be read.
        """
        if self.document.source.goes_before(document.source):
            self._ignore(document)
        else:
            self._take(document, again=again)

    def withdraw(self) -> None:
        """Go on without the present document: its source has none any more."""
        log.info("configuration.withdrawn", source=str(self.document))
        after_reply(self._rules.keep, None)
        for document in self._rules.lower():
            with suppress(ResmgrError):
                self._take(document)
                return

    def reject(self, document: Document, error: ResmgrError) -> None:
        """Remember why a document was not taken; the same reason is told once."""
        why, known = str(error), self._error
        self._rejected += 1
        self._error = Rejection(document.source, document.name, why, time.time())
        if known is None or (known.name, known.why) != (document.name, why):
            where = {"source": document.source.value, "name": document.name}
            fields = {key: value for key, value in where.items() if value}
            in_force = str(self.document)
            after_reply(_log_rejection, {**fields, "why": why, "in_force": in_force})
            after_reply(self._told, self._error)

    def tell_rejections(self, told: Callable[[Rejection], None]) -> None:
        """Have *told* called, after the reply, with what the log says of rejections."""
        self._told = told

    def keep_to(self, kind: str) -> None:
        """Tell the kind of policy that placed the containers that run."""
        self._placed_by = kind

    def _take(self, document: Document, *, again: bool = False) -> None:
        before = self.document, self._policy.config
        try:
            config = self._put_in_force(document.text, again=again)
        except ResmgrError as error:
            self.reject(document, error)
            raise
        self.document, self._parsed = document, config
        if self._error and not self._error.source.goes_before(document.source):
            self._error = None
        if config != before[1]:
            self._generation += 1
        if (document, config) != before:
            self._accepted = time.time()
            fields = {"source": str(document), "generation": self._generation}
            after_reply(_log_accepted, {**fields, "kind": config.kind})
            if document.source.is_external:
                after_reply(self._rules.keep, document)

    def _put_in_force(self, text: str, *, again: bool) -> PolicyConfig:
        present = self._policy.config
        if text == self.document.text and present is self._parsed and not again:
            return present  # the text of last time: Configure is answered at once
        config = parse_config(text)
        kept = "" if self._rules.may_switch else self._placed_by
        if kept and config.kind != kept:
            raise SwitchForbidden(config.kind, kept)
        if config != present or again:
            self._policy.reconfigure(config)
        return self._policy.config

    def _ignore(self, document: Document) -> None:
        if document.source not in self._ignored:
            self._ignored.add(document.source)
            source, instead = str(document), str(self.document)
            after_reply(_log_ignored, {"source": source, "instead": instead})


def _log_accepted(fields: dict[str, object]) -> None:
    log.info("configuration.accepted", **fields)


def _log_rejection(fields: dict[str, str]) -> None:
    log.error("configuration.refused", **fields)


def _log_ignored(fields: dict[str, str]) -> None:
    log.warning("configuration.ignored", **fields)
