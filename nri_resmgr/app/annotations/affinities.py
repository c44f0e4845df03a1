"""Reads affinity annotations in the short and in the full notation."""

from __future__ import annotations

from typing import Final

from nri_resmgr.app.annotations.documents import (
    read_document,
    read_items,
    read_mapping,
    read_text,
    read_texts,
)
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.table import Table
from nri_resmgr.policy.affinity import Affinity, Expression, Operator
from nri_resmgr.values import InputError

_HEAVIEST: Final = 1000

# A compiled expression takes a hundred times as much memory, and is cached.
_LONGEST: Final = 512

_OPERATORS: Final = {operator.value: operator for operator in Operator} | {
    "NotExists": Operator.NOT_EXIST,  # its name in CRI-RM's documents
}


def read_affinities(text: str, container: str, sign: int) -> tuple[Affinity, ...]:
    """Read the rules of one container.

    ``web: [db, cache]`` is the short notation and is symmetric: *db* and *cache* get
    a rule for *web* as well, one rule however often the pair is written. Entries that
    are mappings are the full notation. Rules of the full notation come first.

    Args:
        text: A YAML mapping of containers to lists.
        container: Name in the pod of the container whose rules are read.
        sign: 1, or -1 for anti-affinity, which inverts all weights.

    Raises:
        InputError: The text is in neither notation. Errors in full rules of other
            containers are reported when those containers are read.
    """
    top = read_mapping(read_document(text), "$")
    partners: dict[str, None] = {}
    rules = []
    for name, found in top.items():
        items = read_items(found, f"$.{name}")
        if name != container:
            if container in items:
                partners[name] = None
            continue
        for place, item in enumerate(items):
            if isinstance(item, str):
                partners[item] = None
            else:
                rules.append(_rule(item, f"$.{name}[{place}]", sign))
    partners.pop(container, None)
    if partners:
        rules.append(_short(tuple(sorted(partners)), sign))
    return tuple(rules)


def _short(names: tuple[str, ...], weight: int) -> Affinity:
    operator = Operator.EQUALS if len(names) == 1 else Operator.IN
    return Affinity(Expression("name", operator, names), weight=weight)


def _rule(item: object, path: str, sign: int) -> Affinity:
    table = Table.read(item, "scope", "match", "weight", path=path)
    if "match" not in table.rows:
        raise BadSetting(table.at("match"), "missing, expected an expression")
    weight = table.rows.get("weight", 1)
    if isinstance(weight, bool) or not isinstance(weight, int):
        raise BadSetting(
            table.at("weight"), f"expected a whole number, -{_HEAVIEST} to {_HEAVIEST}"
        )
    return Affinity(
        match=_expression(table, "match"),
        scope=_expression(table, "scope") if "scope" in table.rows else None,
        weight=sign * max(-_HEAVIEST, min(weight, _HEAVIEST)),
    )


def _expression(rule: Table, name: str) -> Expression:
    return read_expression(rule.table(name, "key", "operator", "values"))


def read_expression(table: Table) -> Expression:
    """Read an expression from a mapping of ``key``, ``operator`` and ``values``.

    Raises:
        BadSetting: It cannot be evaluated, or is too long.
    """
    if "operator" not in table.rows:
        expected = f"missing, expected {' or '.join(Operator)}"
        raise BadSetting(table.at("operator"), expected)
    expression = Expression(
        key=read_text(table.rows.get("key", ""), table.at("key")),
        operator=_OPERATORS[table.choice("operator", tuple(_OPERATORS), "")],
        values=read_texts(table.rows.get("values"), table.at("values")),
    )
    texts = {"key": expression.key, "values": "".join(expression.values)}
    for part, text in texts.items():
        if len(text) > _LONGEST:
            why = f"{len(text)} characters, expected at most {_LONGEST}"
            raise BadSetting(table.at(part), why)
    try:
        expression.check()
    except InputError as error:
        raise BadSetting(table.path, str(error)) from None
    return expression
