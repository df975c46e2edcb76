"""The filters of a search on columns: the same as `app.catalog.queries.filters` has in SQL."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial, reduce
from operator import and_, or_
from typing import Any

import numpy as np

from app.catalog.fields import SIZE_FLAGS
from app.catalog.names import display_keys
from app.catalog.queries.codes import Codes, Mask
from app.catalog.queries.columns import Numbers, SizeColumns
from app.catalog.queries.globs import compile_glob, glob_pattern
from app.catalog.queries.offer_columns import OfferColumns
from app.catalog.queries.params import ORDERABLE_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnScope:
    """The sizes, the offers that are meant, and the price of each size in the regions that are meant.

    `ranks` are prices in USD an hour: infinity where unknown, NaN for a size without an offer.
    """

    sizes: SizeColumns
    offers: OfferColumns
    ranks: Numbers
    statuses: Codes
    today: date

    def priced_in(self, region: str) -> Mask:
        """Return which sizes have a price in a region."""
        at, priced = self.offers.regions[region].sizes, np.isfinite(self.offers.usd(region))
        if len(at) == len(self.ranks):
            return priced
        mask = np.zeros(len(self.ranks), dtype=bool)
        mask[at] = priced
        return mask


ColumnFilter = Callable[[ColumnScope, Any], Mask]


def _all_words(scope: ColumnScope, text: str) -> Mask:
    contain = scope.sizes.names.contain
    found = (scope.sizes.remember(("q", word), partial(contain, word)) for word in text.split())
    return reduce(and_, found, _all(scope))


def _any_name(scope: ColumnScope, globs: Iterable[str]) -> Mask:
    found = (scope.sizes.remember(("name", glob), partial(_has_name, scope.sizes, glob)) for glob in globs)
    return reduce(or_, found)


def _has_name(sizes: SizeColumns, glob: str) -> Mask:
    return sizes.names.match(glob_pattern(display_keys(glob)[0]), glob_pattern(glob))


def any_gpu(sizes: SizeColumns, globs: Iterable[str]) -> Mask:
    """Return which sizes have a GPU whose model, family or id is like any of some globs."""
    found = (sizes.remember(("gpu", glob), partial(_has_gpu, sizes, glob)) for glob in globs)
    return reduce(or_, found)


def _has_gpu(sizes: SizeColumns, glob: str) -> Mask:
    matches = compile_glob(glob).fullmatch
    columns = (sizes.texts[name] for name in ("gpu_model", "gpu_family", "gpu_id"))
    found = (
        column.among([value is not None and matches(value.lower()) is not None for value in column.values])
        for column in columns
    )
    return reduce(or_, found)


def _statuses(scope: ColumnScope, statuses: tuple[str, ...]) -> Mask:
    if "any" in statuses:
        return _all(scope)
    wanted = statuses or ORDERABLE_STATUSES
    return scope.sizes.remember(("status", scope.today, wanted), partial(scope.statuses.is_any_of, wanted))


def _all(scope: ColumnScope) -> Mask:
    return np.ones(len(scope.ranks), dtype=bool)


def _any_of(name: str) -> ColumnFilter:
    def filtered(scope: ColumnScope, values: tuple[str, ...]) -> Mask:
        return scope.sizes.texts[name].is_any_of(values)

    return filtered


def _vendor(scope: ColumnScope, vendor: str) -> Mask:
    column = scope.sizes.texts["gpu_vendor"]
    return column.among([value is not None and value.lower() == vendor for value in column.values])


def _is(name: str) -> ColumnFilter:
    return lambda scope, value: scope.sizes.is_flag(name, value)


def _at_least(name: str, factor: float = 1) -> ColumnFilter:
    return lambda scope, least: np.greater_equal(scope.sizes.numbers[name], least * factor)


def _at_most(name: str) -> ColumnFilter:
    return lambda scope, most: np.less_equal(scope.sizes.numbers[name], most)


PRICE_FILTERS: Mapping[str, Callable[[Numbers, Any], Mask]] = {
    "min_usd_per_hour": lambda usd, least: (usd >= float(least)) & np.isfinite(usd),
    "max_usd_per_hour": lambda usd, most: usd <= float(most),
}
"""The filters that depend on the region, on prices in USD an hour."""


def _priced(name: str) -> ColumnFilter:
    return lambda scope, usd: PRICE_FILTERS[name](scope.ranks, usd)


COLUMN_FILTERS: Mapping[str, ColumnFilter] = {
    "q": _all_words,
    "name": _any_name,
    "series": _any_of("series_id"),
    "category": _any_of("category"),
    "gpu": lambda scope, patterns: any_gpu(scope.sizes, patterns),
    "gpu_vendor": _vendor,
    "verified": _is("verified"),
    "disputed": _is("disputed"),
    "status": _statuses,
    "available_in": lambda scope, regions: reduce(and_, map(scope.priced_in, regions)),
    "min_gpu_mem": _at_least("gpu_memory_gib"),
    "max_gpu_mem": _at_most("gpu_memory_gib"),
    "min_gpu_mem_per_gpu": _at_least("gpu_slice_gib"),
    "max_gpu_mem_per_gpu": _at_most("whole_gpu_gib"),
    "min_gpus": _at_least("gpu_count"),
    "max_gpus": _at_most("gpu_count"),
    "min_vcpus": _at_least("vcpus"),
    "max_vcpus": _at_most("vcpus"),
    "min_memory": _at_least("memory_gib"),
    "max_memory": _at_most("memory_gib"),
    "min_local_disk": _at_least("local_disk_gib"),
    "min_network_gbps": _at_least("network_mbps", 1000),
    "infiniband": _is("infiniband"),
    "min_infiniband_gbps": _at_least("infiniband_gbps"),
    "nvlink": _is("nvlink"),
    "arch": lambda scope, arch: _any_of("arch")(scope, (arch,)),
    **{name: _priced(name) for name in PRICE_FILTERS},
    **{name: _is(name) for name in SIZE_FLAGS},
}
"""Every filter of a search but those that choose offers (`SCOPE_FILTERS`)."""
