"""The wire of facets: what a panel of filters shows."""

from pydantic import Field

from app.api.schemas.sizes import Out


class FacetCountOut(Out):
    """A value, and how many sizes have it."""

    value: str | None = Field(description="The value; null is unknown, or for a GPU none.")
    count: int = Field(description="How many sizes have it.")


class FacetRangeOut(Out):
    """The ends of a figure."""

    min: float | None = Field(description="The least that is known, in the unit of the figure's name.")
    max: float | None = Field(description="The greatest that is known, in the unit of the figure's name.")
    unknown: int = Field(description="Of how many sizes nobody knows it; no bound finds these.")


class FacetsOut(Out):
    """Facets of a search; each leaves its own parameters out, so that another value can be chosen."""

    total: int = Field(description="How many sizes all filters together find.")
    gpu_model: list[FacetCountOut] = Field(description="GPU models, whatever `gpu` asks.")
    gpu_vendor: list[FacetCountOut] = Field(description="Makers of GPUs, whatever `gpu_vendor` asks.")
    series: list[FacetCountOut] = Field(description="Series by id, whatever `series` asks.")
    region: list[FacetCountOut] = Field(description="For each region what is found there, whatever `region` asks.")
    status: list[FacetCountOut] = Field(description="Standings today, retired ones, too, whatever `status` asks.")
    arch: list[FacetCountOut] = Field(description="CPU architectures, whatever `arch` asks.")
    flags: list[FacetCountOut] = Field(description="Parameters that are true or false; of how many sizes each is true.")
    usd_per_hour: FacetRangeOut = Field(description="USD an hour by the region and purchase model that are meant.")
    gpu_memory_gib: FacetRangeOut = Field(description="GPU memory of all GPUs of the VM together, GiB.")
    gpu_memory_gib_per_gpu: FacetRangeOut = Field(description="GPU memory of one whole GPU, GiB.")
    gpu_count: FacetRangeOut = Field(description="GPUs of the VM.")
    vcpus: FacetRangeOut = Field(description="vCPUs.")
    memory_gib: FacetRangeOut = Field(description="Memory, GiB.")
    local_disk_gib: FacetRangeOut = Field(description="Temporary and NVMe disks together, GiB.")
    network_mbps: FacetRangeOut = Field(description="Network bandwidth of the VM, megabits a second.")
    infiniband_gbps: FacetRangeOut = Field(description="InfiniBand of the VM, gigabits a second.")
