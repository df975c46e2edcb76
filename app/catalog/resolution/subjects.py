"""Who a statement speaks of: spellings, aliases and page titles brought to the keys the catalog knows."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.catalog.names import series_key, size_key
from app.catalog.readings import AliasRow, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The keys of sizes by alias, and the ids of series by every name they go by."""

    sizes: Mapping[str, str]
    series: Mapping[str, str]

    def size(self, spelled: str) -> str:
        """The key of a size, however it is spelled."""
        key = size_key(spelled)
        return self.sizes.get(key, key)

    def series_id(self, spelled: str) -> str:
        """The id of a series, however it is spelled; a series nobody listed gets its name as an id."""
        known = self.series.get(series_key(spelled))
        return known or re.sub(r"[^a-z0-9]+", "_", spelled.lower()).strip("_")

    def of(self, statement: Statement) -> str:
        """The key of whom a statement speaks of."""
        match statement.kind:
            case "size":
                return self.size(statement.subject)
            case "series":
                return self.series_id(statement.subject)
            case _:
                return statement.subject


def alias_map(aliases: Iterable[AliasRow]) -> dict[str, str]:
    """Map the key of each alias to the key of the size it means."""
    return {size_key(row.alias): size_key(row.size) for row in aliases}


def series_names(statements: Iterable[Statement]) -> dict[str, str]:
    """Map every name of a listed series to its id; a series is listed where a source gives its aliases."""
    listed = [statement for statement in statements if statement.kind == "series" and statement.field == "aliases"]
    return {
        series_key(name): statement.subject
        for statement in listed
        for name in (statement.subject, *str(statement.value).split("; "))
    }
