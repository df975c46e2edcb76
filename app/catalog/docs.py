"""The document of a size: what is shown of it but for its standing and price, as JSON text that pages are made of."""

import json
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from app.catalog.fields import SIZE_FLAGS

SIZE_JSON_FIELDS = (
    *("name", "provider", "series", "verified", "disputed", "disputed_fields", "vcpus", "cpu_model", "arch"),
    *("memory_gib", "gpu_vendor", "gpu_model", "gpu_id", "gpu_count", "gpu_fraction", "gpu_memory_gib"),
    *("gpu_memory_gib_per_gpu", "gpu_interconnect", "nvlink", "temp_disk_gib", "temp_disk_count", "nvme_disk_gib"),
    *("nvme_disk_count", "max_data_disks", "uncached_disk_iops", "uncached_disk_mbps", "max_nics", "network_mbps"),
    *("infiniband", "infiniband_gbps", "flags", *SIZE_FLAGS, "preview", "withdrawn", "retirement_date", "source_url"),
)
"""What a document holds, in this order."""


def size_doc(row: Mapping[str, Any], source_url: str | None) -> str:
    """Write the document of a row of `size`: flags as a list too, the exact fraction, the count to four digits."""
    numerator, denominator = row["gpu_count_numerator"], row["gpu_count_denominator"]
    part = Fraction(numerator, denominator) if denominator else None
    made = {
        "series": row["series_id"],
        "gpu_fraction": str(part) if part is not None and part.denominator > 1 else None,
        "gpu_count": round(row["gpu_count"], 4) if part is not None else None,
        "flags": [name for name in SIZE_FLAGS if row[name]],
        "disputed_fields": [name for name in row["disputed_fields"].split("; ") if name],
        "source_url": source_url,
    }
    shown = {name: made[name] if name in made else row[name] for name in SIZE_JSON_FIELDS}
    return json.dumps(shown, default=date.isoformat, ensure_ascii=False, separators=(",", ":"))
