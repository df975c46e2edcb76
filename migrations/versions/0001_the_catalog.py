"""Create the catalog: sources and their facts, the accepted values, prices, revisions."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UsdColumn, UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gpu",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("vendor", BYTEWISE, nullable=False),
        sa.Column("model", BYTEWISE, nullable=False),
        sa.Column("family", BYTEWISE, nullable=False),
        sa.Column("aliases", BYTEWISE, nullable=True),
        sa.Column("architecture", BYTEWISE, nullable=True),
        sa.Column("compute_capability", BYTEWISE, nullable=True),
        sa.Column("memory_gib", sa.Float(), nullable=True),
        sa.Column("usable_memory_gib", sa.Float(), nullable=True),
        sa.Column("memory_bandwidth_gb_per_s", sa.Float(), nullable=True),
        sa.Column("fp64_tflops", sa.Float(), nullable=True),
        sa.Column("fp32_tflops", sa.Float(), nullable=True),
        sa.Column("tf32_tflops", sa.Float(), nullable=True),
        sa.Column("fp16_tflops", sa.Float(), nullable=True),
        sa.Column("bf16_tflops", sa.Float(), nullable=True),
        sa.Column("fp8_tflops", sa.Float(), nullable=True),
        sa.Column("fp4_tflops", sa.Float(), nullable=True),
        sa.Column("int8_tops", sa.Float(), nullable=True),
        sa.Column("interconnect", BYTEWISE, nullable=True),
        sa.Column("interconnect_gb_per_s", sa.Float(), nullable=True),
        sa.Column("scale_up_domain_gpus", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gpu")),
    )
    op.create_table(
        "revision",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("digest", BYTEWISE, nullable=False),
        sa.Column("source_ids", sa.JSON(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_revision")),
    )
    op.create_table(
        "series",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("name", BYTEWISE, nullable=False),
        sa.Column("provider", BYTEWISE, nullable=False),
        sa.Column("family", BYTEWISE, nullable=True),
        sa.Column("aliases", BYTEWISE, nullable=True),
        sa.Column("use_cases", BYTEWISE, nullable=True),
        sa.Column("integrations", BYTEWISE, nullable=True),
        sa.Column("gpu_dtypes", BYTEWISE, nullable=True),
        sa.Column("supported_images", BYTEWISE, nullable=True),
        sa.Column("ofed_driver", BYTEWISE, nullable=True),
        sa.Column("scale_up_domain_gpus", sa.Integer(), nullable=True),
        sa.Column("rack_vms", sa.Integer(), nullable=True),
        sa.Column("rack_gpus", sa.Integer(), nullable=True),
        sa.Column("rack_nvlink_tb_per_s", sa.Float(), nullable=True),
        sa.Column("rack_fast_memory_tb", sa.Float(), nullable=True),
        sa.Column("rack_hbm_tb", sa.Float(), nullable=True),
        sa.Column("rack_lpddr_tb", sa.Float(), nullable=True),
        sa.Column("rack_fp4_pflops", sa.Float(), nullable=True),
        sa.Column("retirement_date", sa.Date(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
    )
    op.create_table(
        "source",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("title", BYTEWISE, nullable=False),
        sa.Column("publisher", BYTEWISE, nullable=False),
        sa.Column("kind", BYTEWISE, nullable=False),
        sa.Column("url", BYTEWISE, nullable=True),
        sa.Column("published_on", sa.Date(), nullable=True),
        sa.Column("sha256", BYTEWISE, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
    )
    op.create_table(
        "benchmark",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("series_id", BYTEWISE, nullable=True),
        sa.Column("scope", BYTEWISE, nullable=False),
        sa.Column("workload", BYTEWISE, nullable=False),
        sa.Column("metric", BYTEWISE, nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("unit", BYTEWISE, nullable=False),
        sa.Column("comparison", BYTEWISE, nullable=True),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_benchmark_series_id_series")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_benchmark_source_id_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark")),
    )
    with op.batch_alter_table("benchmark", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_benchmark_series_id"), ["series_id"], unique=False)

    op.create_table(
        "correction",
        sa.Column("kind", BYTEWISE, nullable=False),
        sa.Column("subject", BYTEWISE, nullable=False),
        sa.Column("field", BYTEWISE, nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("value", BYTEWISE, nullable=False),
        sa.Column("reason", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_correction_source_id_source")),
        sa.PrimaryKeyConstraint("kind", "subject", "field", "source_id", name=op.f("pk_correction")),
    )
    op.create_table(
        "fact",
        sa.Column("kind", BYTEWISE, nullable=False),
        sa.Column("subject", BYTEWISE, nullable=False),
        sa.Column("field", BYTEWISE, nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("written_as", BYTEWISE, nullable=False),
        sa.Column("value", BYTEWISE, nullable=False),
        sa.Column("unit", BYTEWISE, nullable=True),
        sa.Column("raw", BYTEWISE, nullable=False),
        sa.Column("file", BYTEWISE, nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("note", BYTEWISE, nullable=True),
        sa.Column("corrected_value", BYTEWISE, nullable=True),
        sa.Column("verdict", BYTEWISE, nullable=False),
        sa.Column("reason", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_fact_source_id_source")),
        sa.PrimaryKeyConstraint("kind", "subject", "field", "source_id", name=op.f("pk_fact")),
    )
    with op.batch_alter_table("fact", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_fact_source_id"), ["source_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_fact_verdict"), ["verdict"], unique=False)

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
    op.create_table(
        "region",
        sa.Column("code", BYTEWISE, nullable=False),
        sa.Column("name", BYTEWISE, nullable=False),
        sa.Column("geography", BYTEWISE, nullable=True),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_region_source_id_source")),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_region")),
    )
    op.create_table(
        "size",
        sa.Column("key", BYTEWISE, nullable=False),
        sa.Column("name", BYTEWISE, nullable=False),
        sa.Column("provider", BYTEWISE, nullable=False),
        sa.Column("series_id", BYTEWISE, nullable=True),
        sa.Column("verified", sa.Boolean(), nullable=False),
        sa.Column("disputed", sa.Boolean(), nullable=False),
        sa.Column("disputed_fields", BYTEWISE, nullable=False),
        sa.Column("search_text", BYTEWISE, nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=True),
        sa.Column("cpu_model", BYTEWISE, nullable=True),
        sa.Column("arch", BYTEWISE, nullable=True),
        sa.Column("memory_gib", sa.Float(), nullable=True),
        sa.Column("gpu_id", BYTEWISE, nullable=True),
        sa.Column("gpu_vendor", BYTEWISE, nullable=True),
        sa.Column("gpu_model", BYTEWISE, nullable=True),
        sa.Column("gpu_count", sa.Float(), nullable=True),
        sa.Column("gpu_count_numerator", sa.Integer(), nullable=True),
        sa.Column("gpu_count_denominator", sa.Integer(), nullable=True),
        sa.Column("gpu_memory_gib", sa.Float(), nullable=True),
        sa.Column("gpu_memory_gib_per_gpu", sa.Float(), nullable=True),
        sa.Column("gpu_interconnect", BYTEWISE, nullable=True),
        sa.Column("nvlink", sa.Boolean(), nullable=True),
        sa.Column("temp_disk_gib", sa.Float(), nullable=True),
        sa.Column("temp_disk_count", sa.Integer(), nullable=True),
        sa.Column("nvme_disk_gib", sa.Float(), nullable=True),
        sa.Column("nvme_disk_count", sa.Integer(), nullable=True),
        sa.Column("max_data_disks", sa.Integer(), nullable=True),
        sa.Column("uncached_disk_iops", sa.Integer(), nullable=True),
        sa.Column("uncached_disk_mbps", sa.Float(), nullable=True),
        sa.Column("max_nics", sa.Integer(), nullable=True),
        sa.Column("network_mbps", sa.Integer(), nullable=True),
        sa.Column("infiniband", sa.Boolean(), nullable=True),
        sa.Column("infiniband_gbps", sa.Float(), nullable=True),
        sa.Column("premium_storage", sa.Boolean(), nullable=True),
        sa.Column("premium_storage_caching", sa.Boolean(), nullable=True),
        sa.Column("ultra_disk", sa.Boolean(), nullable=True),
        sa.Column("live_migration", sa.Boolean(), nullable=True),
        sa.Column("memory_preserving_updates", sa.Boolean(), nullable=True),
        sa.Column("generation_1", sa.Boolean(), nullable=True),
        sa.Column("generation_2", sa.Boolean(), nullable=True),
        sa.Column("accelerated_networking", sa.Boolean(), nullable=True),
        sa.Column("ephemeral_os_disk", sa.Boolean(), nullable=True),
        sa.Column("nested_virtualization", sa.Boolean(), nullable=True),
        sa.Column("hibernation", sa.Boolean(), nullable=True),
        sa.Column("gpudirect_rdma", sa.Boolean(), nullable=True),
        sa.Column("preview", sa.Boolean(), nullable=True),
        sa.Column("retirement_date", sa.Date(), nullable=True),
        sa.Column("source_id", BYTEWISE, nullable=True),
        sa.ForeignKeyConstraint(["gpu_id"], ["gpu.id"], name=op.f("fk_size_gpu_id_gpu")),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_size_series_id_series")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_size_source_id_source")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_size")),
        sa.UniqueConstraint("name", name=op.f("uq_size_name")),
    )
    with op.batch_alter_table("size", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_size_gpu_id"), ["gpu_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_size_gpu_memory_gib"), ["gpu_memory_gib"], unique=False)
        batch_op.create_index(batch_op.f("ix_size_series_id"), ["series_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_size_vcpus"), ["vcpus"], unique=False)

    op.create_table(
        "best_offer",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("purchase", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("on_demand_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("on_demand_as_of", sa.Date(), nullable=True),
        sa.Column("spot_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("spot_as_of", sa.Date(), nullable=True),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_best_offer_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_best_offer_size_key_size")),
        sa.PrimaryKeyConstraint("size_key", "os", "purchase", name=op.f("pk_best_offer")),
    )
    with op.batch_alter_table("best_offer", schema=None) as batch_op:
        batch_op.create_index("ix_best_offer_os_purchase", ["os", "purchase", "size_key"], unique=False)

    op.create_table(
        "offer",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("on_demand_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("on_demand_as_of", sa.Date(), nullable=True),
        sa.Column("spot_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("spot_as_of", sa.Date(), nullable=True),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_offer_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_offer_size_key_size")),
        sa.PrimaryKeyConstraint("size_key", "region", "os", name=op.f("pk_offer")),
    )
    with op.batch_alter_table("offer", schema=None) as batch_op:
        batch_op.create_index(
            "ix_offer_region_os_on_demand", ["region", "os", "on_demand_usd_per_hour", "size_key"], unique=False
        )
        batch_op.create_index(
            "ix_offer_region_os_spot", ["region", "os", "spot_usd_per_hour", "size_key"], unique=False
        )

    op.create_table(
        "price",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("purchase", BYTEWISE, nullable=False),
        sa.Column("valid_from", sa.Date(), nullable=False),
        sa.Column("usd_per_hour", UsdColumn(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_price_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_price_size_key_size")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_source_id_source")),
        sa.PrimaryKeyConstraint("size_key", "region", "os", "purchase", "valid_from", name=op.f("pk_price")),
    )
    op.create_table(
        "size_alias",
        sa.Column("alias_key", BYTEWISE, nullable=False),
        sa.Column("alias", BYTEWISE, nullable=False),
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("reason", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_size_alias_size_key_size")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_size_alias_source_id_source")),
        sa.PrimaryKeyConstraint("alias_key", name=op.f("pk_size_alias")),
    )
    with op.batch_alter_table("size_alias", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_size_alias_size_key"), ["size_key"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("size_alias", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_size_alias_size_key"))

    op.drop_table("size_alias")
    op.drop_table("price")
    with op.batch_alter_table("offer", schema=None) as batch_op:
        batch_op.drop_index("ix_offer_region_os_spot")
        batch_op.drop_index("ix_offer_region_os_on_demand")

    op.drop_table("offer")
    with op.batch_alter_table("best_offer", schema=None) as batch_op:
        batch_op.drop_index("ix_best_offer_os_purchase")

    op.drop_table("best_offer")
    with op.batch_alter_table("size", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_size_vcpus"))
        batch_op.drop_index(batch_op.f("ix_size_series_id"))
        batch_op.drop_index(batch_op.f("ix_size_gpu_memory_gib"))
        batch_op.drop_index(batch_op.f("ix_size_gpu_id"))

    op.drop_table("size")
    op.drop_table("region")
    op.drop_table("model")
    with op.batch_alter_table("fact", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_fact_verdict"))
        batch_op.drop_index(batch_op.f("ix_fact_source_id"))

    op.drop_table("fact")
    op.drop_table("correction")
    with op.batch_alter_table("benchmark", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_benchmark_series_id"))

    op.drop_table("benchmark")
    op.drop_table("source")
    op.drop_table("series")
    op.drop_table("revision")
    op.drop_table("gpu")
