"""The prices of a size in a region over time, as a chart and as the table of the same figures."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.catalog.queries.price_lines import PriceLine, merge_runs
from app.web.sizes_view import PURCHASE_TITLES

_DASHES = ("solid", "dashed", "dotted")
_SYMBOLS = ("circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect")


def chart_option(runs: Sequence[Mapping[str, Any]], unit: str, title: str) -> str:
    """Return the option of an ECharts chart as JSON: a stepped line for each purchase model.

    Each run has `purchase`, `valid_from`, `seen_until` and `shown`, its price in the unit. A price holds until the next
    that was observed; a line ends with the last. Lines differ in dashes and marks as well as in colour.
    """
    series = []
    for index, (purchase, name) in enumerate(PURCHASE_TITLES.items()):
        points = sorted({point for run in runs if run["purchase"] == purchase for point in _ends(run)})
        if points:
            drawn = {"symbol": _SYMBOLS[index], "symbolSize": 7, "lineStyle": {"type": _DASHES[index % len(_DASHES)]}}
            series.append({"name": name, "type": "line", "step": "end", "data": points, **drawn})
    return json.dumps(
        {
            "aria": {"enabled": True, "label": {"description": title}},
            "legend": {"top": 0, "type": "scroll"},
            "grid": {"left": 8, "right": 16, "top": 48, "bottom": 8, "containLabel": True},
            "tooltip": {"trigger": "axis", "renderMode": "richText"},
            "xAxis": {"type": "time", "axisLabel": {"hideOverlap": True}},
            "yAxis": {"type": "value", "name": unit, "nameTextStyle": {"align": "left"}},
            "series": series,
        }
    )


def _ends(run: Mapping[str, Any]) -> list[tuple[str, float]]:
    price = float(run["shown"])
    return [(run["valid_from"], price), (run["seen_until"], price)]


def newest_first(
    runs: Sequence[Mapping[str, Any]], in_force: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, list[PriceLine]]]:
    """Return the lines of each purchase model that has any, the last seen first.

    `in_force` has the prices in force by purchase model.
    """
    by_purchase = {
        purchase: merge_runs((run for run in runs if run["purchase"] == purchase), in_force.get(purchase))[::-1]
        for purchase in PURCHASE_TITLES
    }
    return [(purchase, lines) for purchase, lines in by_purchase.items() if lines]
