"""Acceptance of configuration documents: put in force as a whole, or rejected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from nri_resmgr.app.configuration.status import (
    BUILT_IN,
    ConfigurationStatus,
    Document,
    DocumentSource,
    Rejection,
    WouldChange,
)
from nri_resmgr.app.observers.after_reply import after_reply
from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.config import PolicyConfig
from nri_resmgr.log import Logger
from nri_resmgr.policies import parse_config
from nri_resmgr.values import InputError, ResmgrError

log = Logger(__name__)


@dataclass(eq=False)
class SwitchForbidden(InputError):
    """The document has another kind, and the operator forbids to switch policies."""

    kind: str
    kept: str

    def __str__(self) -> str:
        return (
            f"$.kind: {self.kind} cannot follow {self.kept}: --disable-policy-switch "
            "is set; restart without it to switch"
        )


@dataclass(eq=False)
class DryRunElsewhere(InputError):
    """A document that is to be tried only does not come from the cluster."""

    source: DocumentSource

    def __str__(self) -> str:
        return (
            "$.spec.mode: DryRun is for documents of the cluster, not of source "
            f"{self.source}: use nri-resmgr check, or run with --dry-run"
        )


def keep_nothing(_: Document | None) -> None:
    """Do not cache documents for the next start."""


ReadConfig: TypeAlias = Callable[[str], PolicyConfig]


class Rules(msgspec.Struct, frozen=True):
    """Rules for the acceptance of documents.

    Attributes:
        launched: Whether the runtime started this process. Then a blank text in
            Configure withdraws the text before it.
        may_switch: Whether another kind may follow the one that placed containers.
        keep: Called with each accepted external document, for the next start; with
            None when it is withdrawn.
        lower: Returns the documents that count where no external one does.
    """

    launched: bool = False
    may_switch: bool = True
    keep: Callable[[Document | None], None] = keep_nothing
    lower: Callable[[], Iterable[Document]] = lambda: (BUILT_IN,)


class ActiveConfiguration:
    """Puts documents in force as a whole or rejects them, and has their status.

    A document replaces one of the same source, or of a source of lower precedence.
    Nothing here opens a file.

    Args:
        document: The document in force.
        policy: The policy in force, by this document.
        reconfigure: Puts another configuration in force, or raises and changes nothing.
        would_reconfigure: Returns what `reconfigure` would change, or raises as it
            would.
        rules: Which documents are accepted.
    """

    def __init__(
        self,
        document: Document,
        policy: PolicyInForce,
        reconfigure: Callable[[PolicyConfig], None],
        would_reconfigure: Callable[[PolicyConfig], tuple[WouldChange, ...]],
        rules: Rules,
    ) -> None:
        self.document = document
        self._policy, self._parsed = policy, policy.config
        self._reconfigure = reconfigure
        self._would_reconfigure = would_reconfigure
        self._rules = rules
        self._placed_by = ""
        self._ignored: set[DocumentSource] = set()
        self._accepted = time.time()
        self._generation = 1
        self._rejected = 0
        self._error: Rejection | None = None
        self._on_rejection: Callable[[Rejection], object] = lambda _: None

    @property
    def status(self) -> ConfigurationStatus:
        """The document in force, and the last rejected one."""
        return ConfigurationStatus(
            source=self.document.source,
            name=self.document.name,
            cached=self.document.cached,
            kind=self._policy.config.kind,
            text=self.document.text,
            accepted=self._accepted,
            generation=self._generation,
            ineffective=self._policy.config.ineffective,
            rejected=self._rejected,
            error=self._error,
        )

    def hand_over(self, text: str) -> None:
        """Accept or reject the text of Configure.

        A mistake in it does not end the session: the configuration stays in force,
        and the log and `status` show why.
        """
        if text.strip():
            with suppress(ResmgrError):
                self.offer(Document(text, DocumentSource.RUNTIME))
        elif self._rules.launched and self.document.source is DocumentSource.RUNTIME:
            self.withdraw()

    def offer(
        self,
        document: Document,
        *,
        again: bool = False,
        force: bool = False,
        read: ReadConfig = parse_config,
    ) -> None:
        """Put a document in force, unless its source has lower precedence.

        Args:
            document: The document.
            again: Whether to rebuild the policy though the text is the same: it may
                name a cgroup whose CPUs have changed.
            force: Whether to take it as if it said ``allowLoss: true``.
            read: Reads its text, or returns what a thread has read before: a long text
                takes seconds.

        Raises:
            InputError: It has a mistake, does not fit the machine, or has a kind
                that may not follow. The present document stays in force.
            HostError: It names something of the host that cannot be read.
        """
        if self.document.source.overrides(document.source):
            self._ignore(document)
        else:
            self._take(document, again=again, force=force, read=read)

    def try_out(
        self, document: Document, read: ReadConfig = parse_config
    ) -> tuple[WouldChange, ...]:
        """Return the containers that a document would change; it changes none.

        Args:
            document: The document.
            read: As of `offer`.

        Raises:
            ResmgrError: `offer` would reject it.
        """
        config = read(document.text)
        self._check_kind(config)
        return self._would_reconfigure(config)

    def withdraw(self) -> None:
        """Fall back to lower documents: the source of the present one has none."""
        log.info("configuration.withdrawn", source=str(self.document))
        after_reply(self._rules.keep, None)
        for document in self._rules.lower():
            with suppress(ResmgrError):
                self._take(document)
                return

    def reject(self, document: Document, error: ResmgrError) -> None:
        """Note why a document was rejected; equal reasons are logged once."""
        why, known = str(error), self._error
        self._rejected += 1
        self._error = Rejection(document.source, document.name, why, time.time())
        if known is None or (known.name, known.why) != (document.name, why):
            where = {"source": document.source.value, "name": document.name}
            fields = {key: value for key, value in where.items() if value}
            in_force = str(self.document)
            after_reply(_log_rejection, {**fields, "why": why, "in_force": in_force})
            after_reply(self._on_rejection, self._error)

    def on_rejection(self, callback: Callable[[Rejection], None]) -> None:
        """Call *callback*, after the reply, with each rejection that is logged."""
        self._on_rejection = callback

    def set_placing_kind(self, kind: str) -> None:
        """Set the kind of the policy that placed the running containers."""
        self._placed_by = kind

    def _take(
        self,
        document: Document,
        *,
        again: bool = False,
        force: bool = False,
        read: ReadConfig = parse_config,
    ) -> None:
        before = self.document, self._policy.config
        try:
            config = self._put_in_force(document, read, again=again, force=force)
        except ResmgrError as error:
            self.reject(document, error)
            raise
        self.document, self._parsed = document, config
        # A mistake in a document of higher precedence still has to be corrected.
        if self._error and not self._error.source.overrides(document.source):
            self._error = None
        if config != before[1]:
            self._generation += 1
        if (document, config) != before:
            self._accepted = time.time()
            fields = {"source": str(document), "generation": self._generation}
            after_reply(_log_accepted, {**fields, "kind": config.kind})
            if document.source.is_external:
                after_reply(self._rules.keep, document)

    def _put_in_force(
        self, document: Document, read: ReadConfig, *, again: bool, force: bool
    ) -> PolicyConfig:
        present, text, source = self._policy.config, document.text, document.source
        if text == self.document.text and present is self._parsed and not again:
            return present  # the same text: Configure is answered at once
        config = read(text)
        if config.dry_run:
            raise DryRunElsewhere(source)
        if force:
            config = msgspec.structs.replace(config, allow_loss=True)
        self._check_kind(config)
        if config != present or again:
            self._reconfigure(config)
        # Not `config`: the object in force stays where the new one is equal.
        return self._policy.config

    def _check_kind(self, config: PolicyConfig) -> None:
        kept = "" if self._rules.may_switch else self._placed_by
        if kept and config.kind != kept:
            raise SwitchForbidden(config.kind, kept)

    def _ignore(self, document: Document) -> None:
        if document.source not in self._ignored:
            self._ignored.add(document.source)
            source, instead = str(document), str(self.document)
            after_reply(_log_ignored, {"source": source, "instead": instead})


def _log_accepted(fields: dict[str, object]) -> None:
    log.info("configuration.accepted", **fields)


def _log_rejection(fields: dict[str, str]) -> None:
    log.error("configuration.rejected", **fields)


def _log_ignored(fields: dict[str, str]) -> None:
    log.warning("configuration.ignored", **fields)
