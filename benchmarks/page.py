"""Writes the newest results into benchmarks/results.md, between its markers, and the plot beside it."""

from pathlib import Path
from typing import Any

from benchmarks.build import PROJECT
from benchmarks.plot import Bar, draw
from benchmarks.ratios import Goal
from benchmarks.requests import MEMORY_REQUESTS
from benchmarks.results import Results

PAGE = PROJECT / "benchmarks" / "results.md"
BEGIN, END = "<!-- results: written by make bench -->", "<!-- end of results -->"


def write_page(run: Results, page: Path = PAGE) -> None:
    """Write the results of a run into the page, and the plot beside it."""
    page.with_suffix(".svg").write_text(draw(bars(run), f"Ratios to the reference, commit {run['commit']}"))
    parts = (about(run), table(run), f"![Ratios]({page.stem}.svg)", details(run))
    page.write_text(between(page.read_text(), "\n\n".join(parts)))


def between(text: str, new: str) -> str:
    """Replace the text between the markers; raises ValueError where they are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{new}\n{END}{after}"


def about(run: Results) -> str:
    """Describe the commit, the machine and its load."""
    machine, packages = run["machine"], run["machine"]["packages"]
    busiest = max(outcome["load_average"] for outcome in run["outcomes"])
    versions = ", ".join(f"{name} {number}" for name, number in packages.items() if number)
    return (
        f"Commit `{run['commit']}`, measured at {run['measured_at']} on {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gb']} GB, {machine['system']}, Python {machine['python']}, SQLite {machine['sqlite']}, "
        f"PostgreSQL {machine['postgresql']}, wrk {machine['wrk']}, Datasette {machine['datasette']}; {versions}. "
        f"{run['plan']['pairs']} pairs of {run['plan']['burst']:g} s; load average up to {busiest:g}."
    )


def table(run: Results) -> str:
    """Return the table of cases, with the main figure and the goal of each."""
    lines = ["| case | against | figure | median | min – max | of CPU | asked | reached |"]
    lines.append("|---|---|---|--:|--:|--:|--:|---|")
    return "\n".join([*lines, *map(_line, run["outcomes"])])


def _line(outcome: dict[str, Any]) -> str:
    figures, main = outcome["figures"], outcome["main"]
    said = [f"**{outcome['name']}**: {outcome['says']}", outcome["reference"] or "–", main]
    if not figures:
        return _row(*said, "–", "–", "–", outcome["asked"], f"not measured: {outcome['why_not']}")
    figure, cpu = figures[main], figures.get("ratio of CPU")
    low_high = f"{figure['min']:.3g} – {figure['max']:.3g}" if figure["count"] > 1 else "once"
    of_cpu = f"{cpu['median']:.3g}" if cpu else "–"
    return _row(*said, f"{figure['median']:.3g}", low_high, of_cpu, outcome["asked"], _verdict(outcome))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def details(run: Results) -> str:
    """Return the absolute figures, which are only valid for one machine on one day."""
    lines = ["<details><summary>Absolute figures: no claims, they drift with the machine</summary>", ""]
    lines += ["| case | figure | median | min – max |", "|---|---|--:|--:|"]
    for outcome in run["outcomes"]:
        for name, figure in outcome["figures"].items():
            values = f"{figure['median']:.4g} | {figure['min']:.4g} – {figure['max']:.4g}"
            lines.append(f"| {outcome['name']} | {name} | {values} |")
    return "\n".join([*lines, "", "</details>"])


def bars(run: Results) -> list[Bar]:
    """Return the bars of the cases that have a ratio."""
    found = [outcome for outcome in run["outcomes"] if outcome["main"] == "ratio" and outcome["figures"]]
    return [_bar(outcome) for outcome in found]


def _bar(outcome: dict[str, Any]) -> Bar:
    figure, asked = outcome["figures"]["ratio"], outcome["asked"].rpartition(" ")[2]
    return Bar(
        name=outcome["name"], median=figure["median"], least=figure["min"], most=figure["max"],
        asked=float(asked) if asked else None,
    )  # fmt: skip


def _verdict(outcome: dict[str, Any]) -> str:
    """Return whether the goal is reached; a plain yes means that the worst measurement reaches it, too."""
    figures = outcome["figures"]
    if outcome["reached"] is None:
        return ""
    asked_of = figures.get("different questions", {}).get("median", MEMORY_REQUESTS)
    if asked_of < MEMORY_REQUESTS:
        return f"undecided: {asked_of:,.0f} of {MEMORY_REQUESTS:,} questions"
    how, _, bound = outcome["asked"].rpartition(" ")
    worst = figures[outcome["main"]]["min" if how == "at least" else "max"]
    every = Goal(figure="", how=how, bound=float(bound)).reached(worst)
    return "**no**" if not outcome["reached"] else "yes" if every else "by the median only"
