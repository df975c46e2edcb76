"""Prices of a vCPU, a GiB and a GPU on columns: the same doubles as `app.catalog.projections.unit_price` has in SQL.

These are exact quotients, rounded once to a billionth of a dollar, half away from zero. Nearly all prices are whole
billionths and nearly all figures whole thousandths, so that whole numbers of 64 bits hold the products; the few others
are divided one by one.
"""

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.columns import Numbers, SizeColumns
from app.db.functions import NANO, ratio

_DIVIDED_BY = {
    "usd_per_vcpu_hour": "vcpus",
    "usd_per_memory_gib_hour": "memory_gib",
    "usd_per_gpu_hour": "gpu_count_numerator",
    "usd_per_gpu_gib_hour": "gpu_memory_gib",
}
_THOUSANDTHS = 1_000
_MAX_USD = 100_000.0
"""Up to this price the products of whole numbers are below 2**63."""


def unit_prices(usd: Numbers, sizes: SizeColumns, name: str, chosen: NDArray[np.int64]) -> Numbers:
    """Return one of `UNIT_PRICE_FIELDS` of chosen sizes, USD an hour, from their prices.

    NaN where price or figure are unknown or zero.
    """
    divisors = sizes.numbers[_DIVIDED_BY[name]].take(chosen)
    prices = np.full(len(usd), np.nan)
    at = np.flatnonzero(np.isfinite(usd) & (divisors > 0))
    amounts, figures = usd[at], divisors[at]
    is_of_gpu = name == "usd_per_gpu_hour"
    factors = sizes.numbers["gpu_count_denominator"].take(chosen[at]) if is_of_gpu else np.ones(len(at))
    nano, thousandths = np.rint(amounts * NANO), np.rint(figures * _THOUSANDTHS)
    is_whole = (nano / NANO == amounts) & (thousandths / _THOUSANDTHS == figures) & (amounts <= _MAX_USD)
    product, divisor = ((numbers[is_whole]).astype(np.int64) for numbers in (nano * factors, thousandths))
    prices[at[is_whole]] = (2 * product * _THOUSANDTHS + divisor) // (2 * divisor) / NANO
    for index in np.flatnonzero(~is_whole).tolist():
        exact = ratio(amounts[index].item(), factors[index].item(), figures[index].item())
        prices[at[index]] = np.nan if exact is None else exact
    return prices
