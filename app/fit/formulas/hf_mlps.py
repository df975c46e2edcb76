"""The MLP of a layer, by the fields of a `config.json`: a dense one, or routed and shared experts."""

from app.fit.formulas.hf_fields import ConfigReader
from app.fit.formulas.hf_mixers import hidden_of
from app.fit.formulas.layers import LayerMatrix, LayerPart
from app.fit.formulas.quantization import WeightPart

_PREFIXES: dict[WeightPart, str] = {
    "mlp": "mlp",
    "experts": "mlp.experts.{expert}",
    "shared_experts": "mlp.shared_experts",
}


def mlp_matrices(
    hidden: int, width: int, *, part: WeightPart = "mlp", gated: bool = True, copies: int = 1, prefix: str | None = None
) -> tuple[LayerMatrix, ...]:
    """Return the matrices of an MLP: gate (SwiGLU, GeGLU), up and down."""
    path = _PREFIXES[part] if prefix is None else prefix
    inward = ("gate_proj", "up_proj") if gated else ("up_proj",)
    return (
        *(LayerMatrix(f"{path}.{name}", part, width, hidden, copies) for name in inward),
        LayerMatrix(f"{path}.down_proj", part, hidden, width, copies),
    )


def dense_mlp(config: ConfigReader, width: int, *, gated: bool = True, prefix: str | None = None) -> LayerPart:
    """Count an MLP that every token uses."""
    return LayerPart(matrices=mlp_matrices(hidden_of(config), width, gated=gated, prefix=prefix))


def routed_experts(
    config: ConfigReader,
    *,
    experts: int,
    width: int,
    shared_width: int = 0,
    gated: bool = True,
    router_bias: bool = False,
    shared_gate: bool = False,
    latent: int | None = None,
    prefix: str = "mlp",
) -> LayerPart:
    """Count routed and shared experts with their router.

    With a `latent`, two matrices take a token to a smaller width, in which the routed experts work, and back.
    """
    hidden = hidden_of(config)
    matrices = mlp_matrices(
        latent or hidden, width, part="experts", gated=gated, copies=experts, prefix=f"{prefix}.experts.{{expert}}"
    )
    if shared_width:
        matrices += mlp_matrices(
            hidden, shared_width, part="shared_experts", gated=gated, prefix=f"{prefix}.shared_experts"
        )
    if latent is not None:
        matrices += (
            LayerMatrix(f"{prefix}.fc1_latent_proj", "mlp", latent, hidden),
            LayerMatrix(f"{prefix}.fc2_latent_proj", "mlp", hidden, latent),
        )
    others = hidden * experts + (experts if router_bias else 0) + (hidden if shared_gate else 0)
    return LayerPart(matrices=matrices, others=others)
