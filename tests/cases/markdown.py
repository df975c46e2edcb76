"""Formats results as the Markdown table of the documentation: published figure, ours, and the source."""

from collections.abc import Iterable

from tests.cases.runner import Result

HEAD = "| case | published | ours | off | class | source |\n| --- | --- | --- | --- | --- | --- |"


def table(results: Iterable[Result]) -> str:
    """Return a Markdown table with a row for each case."""
    return "\n".join([HEAD, *map(_row, results)])


def _row(result: Result) -> str:
    case, off = result.case, result.deviation_percent
    ours = "-" if result.got is None else f"{result.got:.6g}"
    shown = "-" if off is None else f"{off:.1f} %".replace("-0.0", "0.0")
    within = f"{shown} of {case.tolerance_percent:g} %" if result.passed else f"{shown}, not within"
    source = case.source.replace("|", "/")
    cells = (f"{case.id} {_about(result)}", f"{case.expected:g} {case.unit}", ours, within, result.certainty, source)
    return f"| {' | '.join(cells)} |"


def _about(result: Result) -> str:
    """Describe what a case is about."""
    inputs = result.case.inputs
    if result.case.kind == "fit":
        words = [str(inputs[name]) for name in ("model", "workload", "method", "dtype") if name in inputs]
        return f"{' '.join(words)} on {inputs.get('nodes', 1)} x {inputs.get('gpus', 1)} {inputs.get('gpu', 'GPU')}"
    return str(inputs.get("quantity") or inputs.get("mode") or result.case.kind).replace("_", " ")
