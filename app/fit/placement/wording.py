"""A placed option in one sentence."""

from math import isfinite

from app.fit.formulas.quantities import GIB
from app.fit.placement.option import Placed


def explain(option: Placed) -> str:
    """Say how the model lies on the size, what it needs of each GPU, how fast it is and what it costs."""
    attempt = option.attempt
    nodes = f"{attempt.nodes} VMs" if attempt.nodes > 1 else "1 VM"
    parts = [f"Fits on {nodes}{_cut(option)}: {_memory(option)}", _weights(option), _speed(option), _price(option)]
    return "; ".join(part for part in parts if part) + "."


def _cut(option: Placed) -> str:
    split, stage = option.attempt.split, option.attempt.stage
    over = " over PCIe" if split.tensor > option.machine.domain_gpus else ""
    parts = {
        f"TP={split.tensor}{over}": split.tensor > 1,
        f"PP={split.pipeline}": split.pipeline > 1,
        f"DP={option.attempt.copies}": option.attempt.copies > 1,
        f"ZeRO-{stage}": bool(stage) and option.attempt.copies > 1,
    }
    told = [part for part, there in parts.items() if there]
    return f" with {', '.join(told)}" if told else ""


def _memory(option: Placed) -> str:
    need, budget = option.attempt.need / GIB, option.attempt.budget / GIB
    if not isfinite(budget):
        return "the model can be cut that way"
    spare = 100 * (budget - need) / budget
    return f"needs {need:.1f} of {budget:.1f} GiB on each GPU ({spare:.0f}% to spare)"


SAID_BY = {
    "request": "as asked",
    "preset": "as released",
    "quantization_config": "by the config's quantization_config",
    "torch_dtype": "by the config's torch_dtype",
    "default": "by default",
}
"""Who says in which type the weights are, in the words of a sentence."""


def _weights(option: Placed) -> str:
    """The type of the weights and who says so; and that nothing is kept of the tokens, where no context is given."""
    kind = option.weights
    told = f"{kind.dtype} weights {SAID_BY[kind.source]}" if kind is not None and kind.dtype is not None else ""
    missing = "no KV cache is counted, as no context is given" if "NO_KV_CACHE" in option.warnings else ""
    return "; ".join(part for part in (told, missing) if part)


def _speed(option: Placed) -> str:
    speed = option.speed
    if speed is None:
        return ""
    if speed.hours is not None:
        return f"takes {speed.hours.low:.3g} to {speed.hours.high:.3g} hours"
    least, most = speed.tokens_per_s.low, speed.tokens_per_s.high
    bound = f" (at most {speed.most_tokens_per_s:.0f})" if speed.most_tokens_per_s is not None else ""
    return f"{least:.0f} to {most:.0f} tokens/s{bound}"


def _price(option: Placed) -> str:
    usd, purchase = option.usd_per_hour, option.pricing.purchase.replace("_", "-")
    if usd is None:
        return f"its {purchase} price is unknown"
    where = f" in {option.vm.region}" if option.vm.region else ""
    return f"{usd.normalize():f} USD an hour {purchase}{where}"
