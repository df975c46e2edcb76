"""Hostile files by Hypothesis: real seeds with mutations, and the formats written with hostile values."""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from app.ingest.registry import CSV_SOURCES
from app.settings import PROJECT
from tests.ingest.feeds.meters import B16ALS_V2
from tests.ingest.feeds.skus import entry

SEEDS = PROJECT / "seeds"
_MAX_BYTES = 12_000
"""Of a seed: a longer one is cut, so that an input takes milliseconds."""


@dataclass(frozen=True, slots=True)
class Input:
    """A file to read: `kind` is a kind of CSV, `documents`, or a feed."""

    kind: str
    name: str
    data: bytes


TOKENS = (
    *("", " ", "\t", "\r", "\n", "\r\n", "\0", "\x1b[2J", "\x85", "\u2028", "\u202e", "\ufeff", "é", "\U0001d7d9"),
    *("=cmd()|'/C calc'!A0", "+1", "-1", "@SUM(A1)", '"', '""', "'", ",", ";", "|", "||", "| --- |", "\\", "`", "```"),
    *("0", "-0", "1e9", "1e999", "-1e999", "NaN", "inf", "9" * 20, "9" * 400, "9" * 5000, "0." + "0" * 400 + "1"),
    *("1/0", "1/3", "8/0", "2147483648", "9223372036854775808", "340282366920938463463374607431768211456"),
    *("0001-01-01", "9999-12-31", "2026-02-30", "null", "true", "false", "N/A", "none", "unknown", "-", "—"),
    *("../../../etc/passwd", "/dev/zero", "/dev/stdin", "file:///etc/passwd", "%s%n", "${jndi:ldap://x}", "<script>"),
    *("[!INCLUDE [x](../../etc/passwd)]", "[!INCLUDE [x](x.md)]", "<table><tr><td>", "</table>", "<!--", "---\n"),
    *(
        "a" * 3_000,
        "[" * 500,
        "(" * 500,
        "> " * 200,
        "- " * 200,
        "*" * 500,
        "_" * 500,
        "![" * 200,
        "<" * 300,
        "&" * 300,
    ),
    *(
        "Standard_ND40rs_v2",
        "Standard_",
        "Standard_NC6s_v3 Standard_NC12s_v3",
        "8 x 32 GiB",
        "128 GB",
        "GPU memory: GiB",
    ),
    *("1,111,111,111", "1.1.1.1", "10–20", "up to 8", "eastus", "USD", "EUR", "# ", "*?" * 59, "\ud800"),
)
"""What cells, lines and texts are replaced by, or get in their midst."""

tokens = st.one_of(st.sampled_from(TOKENS), st.text(max_size=40), st.integers().map(str), st.floats().map(str))


@cache
def _corpus() -> dict[str, tuple[Path, ...]]:
    found = {name: (SEEDS / f"{name}.csv",) for name in CSV_SOURCES if (SEEDS / f"{name}.csv").is_file()}
    pages = sorted((SEEDS / "documents").rglob("*.md"))
    return {**found, "documents": tuple(pages)}


@cache
def _seed(path: Path) -> bytes:
    data = path.read_bytes()
    end = data.rfind(b"\n", 0, _MAX_BYTES) if len(data) > _MAX_BYTES else len(data)
    return data[: end + 1]


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Return bytes with a few pieces replaced, repeated, moved or cut."""
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 60))
        action = draw(st.sampled_from(("replace", "insert", "repeat", "delete", "line", "byte", "cut")))
        token = draw(tokens).encode("utf-8", "surrogatepass")
        if action == "replace":
            data = data[:start] + token + data[start + length :]
        elif action == "insert":
            data = data[:start] + token + data[start:]
        elif action == "repeat":
            data = data[:start] + data[start : start + length] * draw(st.integers(2, 40)) + data[start + length :]
        elif action == "delete":
            data = data[:start] + data[start + length :]
        elif action == "line":
            lines = data.split(b"\n")
            at = draw(st.integers(0, len(lines) - 1))
            lines[at : at + 1] = draw(st.sampled_from(([token], [], [lines[at]] * 2, [lines[0]], [b"", lines[at]])))
            data = b"\n".join(lines)
        elif action == "byte":
            data = data[:start] + draw(st.binary(max_size=4)) + data[start:]
        elif draw(st.booleans()):
            data = data[:start]
    return data


@st.composite
def _mutated_cells(draw: st.DrawFn, path: Path) -> bytes:
    """Return a CSV file with cells of some rows replaced, so that it is still read row by row."""
    rows = list(csv.reader(io.StringIO(_seed(path).decode(), newline="")))
    for _ in range(draw(st.integers(1, 4))):
        row = rows[draw(st.integers(0, len(rows) - 1))]
        if row:
            row[draw(st.integers(0, len(row) - 1))] = draw(tokens).encode("utf-8", "replace").decode()
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue().encode()


@st.composite
def csv_files(draw: st.DrawFn) -> Input:
    """A CSV file of any kind."""
    kind = draw(st.sampled_from([name for name in _corpus() if name != "documents"]))
    (path,) = _corpus()[kind]
    data = draw(st.one_of(_mutated_cells(path), _mutated_cells(path), mutated(_seed(path))))
    if draw(st.integers(0, 19)) == 0:
        packed = gzip.compress(data, 1)
        return Input(kind, f"{kind}.csv.gz", draw(mutated(packed)) if draw(st.booleans()) else packed)
    return Input(kind, f"{kind}.csv", data)


@st.composite
def _table_cells(draw: st.DrawFn, data: bytes) -> bytes:
    """Return a page with cells of its tables replaced."""
    lines = data.decode("utf-8", "replace").split("\n")
    rows = [number for number, line in enumerate(lines) if line.count("|") > 1] or [0]
    for _ in range(draw(st.integers(1, 6))):
        number = draw(st.sampled_from(rows))
        cells = lines[number].split("|")
        cells[draw(st.integers(0, len(cells) - 1))] = draw(tokens)
        lines[number] = "|".join(cells)
    return "\n".join(lines).encode("utf-8", "replace")


@st.composite
def documents(draw: st.DrawFn) -> Input:
    """A documentation page."""
    path = draw(st.sampled_from(_corpus()["documents"]))
    return Input("documents", "page.md", draw(st.one_of(_table_cells(_seed(path)), mutated(_seed(path)))))


_json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), tokens),
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(st.text(max_size=8), children, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def changed_objects(draw: st.DrawFn, objects: list[dict[str, object]]) -> list[object]:
    """Return JSON objects with some values replaced, at the top or one level below, or removed."""
    copies: list[object] = json.loads(json.dumps(objects))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(copies) - 1))
        place = copies[at]
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
            if isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
                place = place[key]
                continue
            if draw(st.integers(0, 5)):
                place[key] = draw(_json_values)
            else:
                del place[key]
            break
    return copies


def _dump(value: object) -> bytes:
    return json.dumps(value).encode()


@st.composite
def price_pages(draw: st.DrawFn) -> Input:
    """A page of the Retail Prices API."""
    items = draw(changed_objects([one | {"armRegionName": "eastus"} for one in B16ALS_V2]))
    page: dict[str, object] = {"BillingCurrency": "USD", "Items": items, "NextPageLink": None, "Count": len(items)}
    if draw(st.integers(0, 5)) == 0:
        page[draw(st.sampled_from(list(page)))] = draw(_json_values)
    data = _dump(page)
    return Input("azure-prices", "page.json", draw(mutated(data)) if draw(st.integers(0, 4)) == 0 else data)


@st.composite
def sku_pages(draw: st.DrawFn) -> Input:
    """An answer of the Resource SKUs API."""
    entries = [entry("Standard_NC24ads_A100_v4", "eastus"), entry("Standard_D4s_v5", "westus3", GPUs=None)]
    page: object = {"value": draw(changed_objects(entries))}
    data = _dump(page)
    return Input("azure-skus", "skus.json", draw(mutated(data)) if draw(st.integers(0, 4)) == 0 else data)


_RATES = (
    b"Date,USD,JPY,GBP,\n2026-08-21,1.0863,161.02,0.84,\n2026-08-20,1.0901,160.10,0.85,\n2026-08-19,1.09,N/A,0.85,\n"
)


@st.composite
def rate_files(draw: st.DrawFn) -> Input:
    """A file of the European Central Bank, zipped or not."""
    data = draw(mutated(_RATES))
    if draw(st.booleans()):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(draw(st.sampled_from((1, 1, 1, 0, 2)))):
                archive.writestr(f"{number}.csv", data)
        data = draw(mutated(packed.getvalue())) if draw(st.booleans()) else packed.getvalue()
    return Input("exchange-rates-file", "rates.zip", data)


STRATEGIES: dict[str, Callable[[], st.SearchStrategy[Input]]] = {
    "documents": documents,
    "csv": csv_files,
    "azure-prices": price_pages,
    "azure-skus": sku_pages,
    "exchange-rates": rate_files,
}
"""What is read, by the name of the strategy that writes it."""
