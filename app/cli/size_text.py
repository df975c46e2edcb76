"""A size as a page of text: what people ask first, then the rest, then its prices."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.cli.output import print_line
from app.cli.tables import Column, Record, format_table, format_value, label_lines, terminal_width, wrap

FLAG_LABELS = ("Supports", "Lacks", "Unknown")
MAX_REGIONS = 10
"""So many regions are shown, the cheapest; with what is above them they fit two screens."""
FACT_COLUMNS = {
    "field": Column(heading="field"),
    "value": Column(heading="value", wraps=True),
    "unit": Column(heading="unit", rank=3),
    "verdict": Column(heading="verdict", rank=1),
    "source_id": Column(heading="source", rank=2),
    "corrected_value": Column(heading="corrected to", rank=4, wraps=True),
    "raw": Column(heading="verbatim", rank=6, wraps=True),
    "reason": Column(heading="why", rank=5, wraps=True),
}
_REGION_COLUMNS = {
    "region": Column(heading="region"),
    "on_demand": Column(heading="USD/h"),
    "on_demand_from": Column(heading="as of", rank=1),
    "spot": Column(heading="spot USD/h", rank=2),
    "spot_from": Column(heading="spot as of", rank=3),
}
PRICE_COLUMNS = {
    "region": Column(heading="region"),
    "os": Column(heading="OS", rank=2),
    "purchase": Column(heading="purchase", rank=1),
    "usd_per_hour": Column(heading="USD/h"),
    "valid_from": Column(heading="as of", rank=3),
    "source_id": Column(heading="source", rank=4),
}


def print_size(size: Record, prices: Sequence[Record], flags: Sequence[str]) -> None:
    """Print a size, and its cheapest regions."""
    print_line(f"{size['name']}: {_status(size)}")
    told = [(label, text) for label, text in _labelled_texts(size, flags) if text]
    room = max(len(label) for label, _ in told)
    for label, text in told:
        for line in label_lines(label, text, room, terminal_width()):
            print_line(line)
    if size["source_url"]:
        print_line(size["source_url"])
    _print_prices(prices)


def _status(size: Record) -> str:
    parts = [size["status"], "named by the vendor" if size["verified"] else "not verified: no vendor page names it"]
    if size["retirement_date"]:
        parts.append(f"retires {size['retirement_date']}")
    return ", ".join(parts)


def _labelled_texts(size: Record, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "GPU", _gpu(size)
    yield "Price", _price(size)
    yield "vCPUs", _join(_amount(size, "vcpus") or "unknown", size["cpu_model"], size["arch"])
    yield "Memory", _amount(size, "memory_gib", " GiB") or "unknown"
    yield "Local disks", _join(_disks(size, "temp_disk", "temporary"), _disks(size, "nvme_disk", "NVMe"))
    yield (
        "Data disks",
        _join(
            _amount(size, "max_data_disks", " at most"),
            _amount(size, "uncached_disk_iops", " IOPS"),
            _amount(size, "uncached_disk_mbps", " MB/s"),
        ),
    )
    yield "Network", _network(size)
    for label, value in zip(FLAG_LABELS, (True, False, None), strict=True):
        yield label, ", ".join(name.replace("_", " ") for name in flags if size[name] is value)
    yield "Series", str(size["series"] or "")
    yield "Disputed", f"{', '.join(size['disputed_fields'])} (--facts tells by whom)" if size["disputed"] else ""


def _gpu(size: Record) -> str:
    if size["gpu_count"] == 0:
        return "none"
    model = " ".join(filter(None, (size["gpu_vendor"], size["gpu_model"])))
    count = size["gpu_fraction"] or _amount(size, "gpu_count")
    if not model and not count:
        return "unknown"
    memory = _join(_amount(size, "gpu_memory_gib_per_gpu", " GiB each"), _amount(size, "gpu_memory_gib", " GiB in all"))
    return _join(
        f"{count} x {model or 'unknown'}" if count else f"{model}, of which a number that is unknown",
        memory or "memory unknown",
        size["gpu_interconnect"] or {True: "NVLink", False: "", None: ""}[size["nvlink"]],
    )


def _price(size: Record) -> str:
    if size["on_demand_usd_per_hour"] is None and size["spot_usd_per_hour"] is None:
        return "unknown"
    known = (
        f"{format_value(size[f'{purchase}_usd_per_hour'])} USD/h {said} (as of {size[f'{purchase}_as_of']})"
        for purchase, said in (("on_demand", "on demand"), ("spot", "on spot"))
        if size[f"{purchase}_usd_per_hour"] is not None
    )
    return _join(*known, f"Linux, {size['region']}")


def _disks(size: Record, kind: str, said: str) -> str:
    amount, count = size[f"{kind}_gib"], size[f"{kind}_count"]
    if amount is None and count is None:
        return ""
    if amount == 0 or count == 0:
        return f"no {said} disk"
    shared = f" on {count} disks" if count and count > 1 else ""
    return f"{_number(amount)} GiB {said}{shared}" if amount is not None else f"{count} {said}, size unknown"


def _network(size: Record) -> str:
    infiniband = {
        True: _join("InfiniBand", _amount(size, "infiniband_gbps", " Gbps")).replace(", ", " "),
        False: "no InfiniBand",
        None: "",
    }[size["infiniband"]]
    speed = size["network_mbps"]
    return _join(
        f"{_number(speed / 1000)} Gbps" if speed is not None else "", _amount(size, "max_nics", " NICs"), infiniband
    )


def _amount(size: Record, name: str, unit: str = "") -> str:
    return "" if size[name] is None else f"{_number(size[name])}{unit}"


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _join(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _print_prices(prices: Sequence[Record]) -> None:
    regions = prices_by_region(prices)
    if not regions:
        return
    lines, _ = format_table(regions[:MAX_REGIONS], _REGION_COLUMNS, terminal_width())
    print_line()
    for line in wrap(_heading(len(regions), len(prices)), terminal_width()):
        print_line(line)
    for line in lines:
        print_line(f"{line}")


def _heading(regions: int, prices: int) -> str:
    shown = f"the cheapest {MAX_REGIONS} of {regions} regions" if regions > MAX_REGIONS else f"{regions} regions"
    return f"Linux prices, {shown} (--prices shows all {prices} prices):"


def prices_by_region(prices: Sequence[Record]) -> list[dict[str, Any]]:
    """The Linux prices of each region in a row, the cheapest on demand first, unknown ones last."""
    rows: dict[str, dict[str, Any]] = {}
    for price in prices:
        if price["os"] == "linux":
            row = rows.setdefault(price["region"], dict.fromkeys(_REGION_COLUMNS) | {"region": price["region"]})
            row |= {price["purchase"]: price["usd_per_hour"], f"{price['purchase']}_from": price["valid_from"]}
    return sorted(rows.values(), key=_cheapest)


def _cheapest(row: Mapping[str, Any]) -> tuple[Any, ...]:
    first, second = row["on_demand"], row["spot"]
    return (first is None, first or 0, second is None, second or 0, row["region"])
