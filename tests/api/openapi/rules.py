"""The rules that both documents keep, so that every generator makes of them a client that compiles."""

from collections.abc import Callable, Iterator, Mapping
from inspect import getmembers, isfunction

from tests.api.openapi import operation_rules, schema_rules
from tests.api.openapi.parts import Part

Rule = Callable[[Part], Iterator[str]]

RULES: Mapping[str, Rule] = {
    name: rule
    for room in (schema_rules, operation_rules)
    for name, rule in getmembers(room, isfunction)
    if rule.__module__ == room.__name__
}
"""Every function of the two rooms, by its name."""
