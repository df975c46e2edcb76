"""The prices of a size in a region over time, as a chart and as the table of the same figures."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

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


def newest_first(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return runs by purchase model, of each the newest first, with the change from the run before it in percent."""
    rows: list[Mapping[str, Any]] = []
    for purchase in PURCHASE_TITLES:
        ordered = sorted((run for run in runs if run["purchase"] == purchase), key=lambda run: run["valid_from"])
        before: Decimal | None = None
        changed = []
        for run in ordered:
            price = run["shown"]
            changed.append({**run, "change": None if not before else 100 * (price / before - 1)})
            before = price
        rows += reversed(changed)
    return rows
