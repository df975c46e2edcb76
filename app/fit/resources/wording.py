"""An option in one sentence."""

from app.fit.resources.needs import Needs
from app.fit.verdict import Headroom, Option

_LABELS = {
    "gpu_memory": "GPU memory",
    "gpus": "GPUs",
    "vcpus": "vCPUs",
    "memory": "memory",
    "local_disk": "local disk",
    "gpu_memory_per_gpu": "GPU memory on one GPU",
    "network_gbps": "network",
    "infiniband_gbps": "InfiniBand",
}


def explain_option(option: Option, needs: Needs) -> str:
    """Say why the option fits, what is tightest, and what it costs."""
    nodes = f"{option.nodes} VMs" if option.nodes > 1 else "1 VM"
    tight = f": {_tightest(option.limiting)}" if option.limiting else ""
    return f"Fits on {nodes}{tight}; {_price(option, needs)}."


def _tightest(headroom: Headroom) -> str:
    unit = "" if headroom.unit == "count" else f" {headroom.unit}"
    return (
        f"needs {headroom.required:g} of {headroom.available:g}{unit} {_LABELS[headroom.resource]}"
        f" ({headroom.percent:.0f}% to spare)"
    )


def _price(option: Option, needs: Needs) -> str:
    cost = option.costs.get(needs.purchase)
    model = needs.purchase.replace("_", "-")
    if cost is None or cost.usd_per_hour is None or cost.usd_per_month is None:
        return f"its {model} price is unknown"
    where = f" in {option.vm.region}" if option.vm.region else ""
    return f"{cost.usd_per_hour.normalize():f} USD an hour {model}{where}, {cost.usd_per_month:.2f} USD a month"
