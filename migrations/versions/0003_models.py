"""Recreate the table of language models with all that memory and time follow from; it was never filled before."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("model")
    op.create_table(
        "model",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("name", BYTEWISE, nullable=False),
        sa.Column("aliases", BYTEWISE, nullable=True),
        sa.Column("hf_repo", BYTEWISE, nullable=True),
        sa.Column("license", BYTEWISE, nullable=True),
        sa.Column("dtype", BYTEWISE, nullable=True),
        sa.Column("params", sa.BigInteger(), nullable=False),
        sa.Column("active_params", sa.BigInteger(), nullable=False),
        sa.Column("published_params", sa.BigInteger(), nullable=True),
        sa.Column("params_note", BYTEWISE, nullable=True),
        sa.Column("max_context_tokens", sa.Integer(), nullable=True),
        sa.Column("layers", sa.Integer(), nullable=False),
        sa.Column("hidden", sa.Integer(), nullable=False),
        sa.Column("vocab", sa.Integer(), nullable=False),
        sa.Column("tied_embeddings", sa.Boolean(), nullable=False),
        sa.Column("learned_positions", sa.Integer(), nullable=False),
        sa.Column("attention", BYTEWISE, nullable=False),
        sa.Column("heads", sa.Integer(), nullable=False),
        sa.Column("kv_heads", sa.Integer(), nullable=False),
        sa.Column("head_dim", sa.Integer(), nullable=False),
        sa.Column("sliding_window", sa.Integer(), nullable=True),
        sa.Column("sliding_layers", sa.Integer(), nullable=False),
        sa.Column("kv_lora_rank", sa.Integer(), nullable=True),
        sa.Column("q_lora_rank", sa.Integer(), nullable=True),
        sa.Column("qk_nope_head_dim", sa.Integer(), nullable=True),
        sa.Column("qk_rope_head_dim", sa.Integer(), nullable=True),
        sa.Column("v_head_dim", sa.Integer(), nullable=True),
        sa.Column("mlp", BYTEWISE, nullable=False),
        sa.Column("intermediate", sa.Integer(), nullable=True),
        sa.Column("moe_layers", sa.Integer(), nullable=False),
        sa.Column("experts", sa.Integer(), nullable=False),
        sa.Column("experts_per_token", sa.Integer(), nullable=False),
        sa.Column("shared_experts", sa.Integer(), nullable=False),
        sa.Column("moe_intermediate", sa.Integer(), nullable=True),
        sa.Column("norms_per_layer", sa.Integer(), nullable=False),
        sa.Column("norm_bias", sa.Boolean(), nullable=False),
        sa.Column("embedding_norm", sa.Boolean(), nullable=False),
        sa.Column("qk_norm", BYTEWISE, nullable=True),
        sa.Column("qkv_bias", sa.Boolean(), nullable=False),
        sa.Column("output_bias", sa.Boolean(), nullable=False),
        sa.Column("mlp_bias", sa.Boolean(), nullable=False),
        sa.Column("lm_head_bias", sa.Boolean(), nullable=False),
        sa.Column("router_bias", sa.Boolean(), nullable=False),
        sa.Column("attention_sinks", sa.Boolean(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_model_source_id_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
    )


def downgrade() -> None:
    op.drop_table("model")
    op.create_table(
        "model",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("name", BYTEWISE, nullable=False),
        sa.Column("params", sa.Integer(), nullable=False),
        sa.Column("layers", sa.Integer(), nullable=False),
        sa.Column("hidden", sa.Integer(), nullable=False),
        sa.Column("heads", sa.Integer(), nullable=False),
        sa.Column("kv_heads", sa.Integer(), nullable=False),
        sa.Column("head_dim", sa.Integer(), nullable=False),
        sa.Column("intermediate", sa.Integer(), nullable=False),
        sa.Column("vocab", sa.Integer(), nullable=False),
        sa.Column("experts", sa.Integer(), nullable=True),
        sa.Column("experts_per_token", sa.Integer(), nullable=True),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_model_source_id_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model")),
    )
