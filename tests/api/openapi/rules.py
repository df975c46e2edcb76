"""The rules for both documents under which every generator produces a client that compiles."""

from collections.abc import Callable, Iterator, Mapping
from inspect import getmembers, isfunction

from tests.api.openapi import operation_rules, schema_rules
from tests.api.openapi.parts import Part

Rule = Callable[[Part], Iterator[str]]

RULES: Mapping[str, Rule] = {
    name: rule
    for module in (schema_rules, operation_rules)
    for name, rule in getmembers(module, isfunction)
    if rule.__module__ == module.__name__
}
"""Every function of the two modules of rules, by its name."""
