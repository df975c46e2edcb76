"""The machines of all sizes, for placements of language models: the different ones, and which each size has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.candidates import all_machines_statement
from app.catalog.queries.ranking_columns import Distinct, distinct
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan

MACHINE_ROWS = 20_000
"""So many sizes are read at once: each time the GPUs of all series are looked up."""

_OWN = 3
"""A row begins with the key of a size and its memory and disk, in which sizes with the same GPUs differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineColumns:
    """Of all sizes in the order of their keys: which of `machines` they have, and how much memory and disk.

    A machine is a row as `app.services.machines.to_machine` reads it, without memory, disk and vCPUs. Amounts ascend.
    """

    machines: Sequence[Mapping[str, Any]]
    codes: NDArray[np.int64]
    memory_gib: Distinct
    local_disk_gib: Distinct


def load_machines(snapshot: CatalogSnapshot) -> QueryPlan[MachineColumns]:
    """Load the machines of all sizes, or return those that are kept."""
    return snapshot.keep("machines", _read)


def _read() -> QueryPlan[MachineColumns]:
    statement = all_machines_statement(MACHINE_ROWS)
    known: dict[tuple[Any, ...], int] = {}
    codes: list[int] = []
    amounts: list[tuple[Any, ...]] = []
    after = ""
    while True:
        rows = yield BoundStatement(statement, {"after": after})
        codes += [known.setdefault(tuple(row[_OWN:]), len(known)) for row in rows]
        amounts += [row[1:_OWN] for row in rows]
        if len(rows) < MACHINE_ROWS:
            break
        after = rows[-1][0]
    memory, disk = np.array(amounts, dtype=np.float64).reshape(-1, 2).T  # None becomes NaN
    unset = {"memory_gib": None, "local_disk_gib": None, "vcpus": None}
    names = statement.names[_OWN:]
    return MachineColumns(
        machines=[dict(zip(names, row, strict=True)) | unset for row in known],
        codes=np.array(codes, dtype=np.int64),
        memory_gib=distinct(memory),
        local_disk_gib=distinct(disk),
    )
