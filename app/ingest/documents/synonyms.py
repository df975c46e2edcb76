"""What pages call their columns: patterns over a header in lower case, without units, counts and punctuation.

A name that is no field of the registry is read by a rule of its own: `gpu` may hold a count or a sentence, `network` a
kind of network and a bandwidth. The first pattern that matches the whole header counts.
"""

import re

_DISK = r"(?:premium (?:ssd|storage) )?(?:disks? )?"
_SPEED = r"(?:iops|throughput|speed|bandwidth|performance|i o)?(?: iops)?"
_GPU = r"(?:gpus?|accelerators?|graphics(?: cards?)?|video)"

_TABLE: tuple[tuple[str, str], ...] = (
    (r"(?:azure |vm |instance )?(?:sizes?|skus?)(?: names?)?|(?:vm|instance|machine|virtual machine)(?: (?:type|size|name|sku))?s?", "name"),
    (r"(?:azure )?(?:vm|instance|virtual machine) (?:size|type|sku) names?|names?|instances?|types?|flavou?rs?|shapes?", "name"),
    (r"v ?cpus?|v ?cores?|virtual (?:cpus?|cores?)|(?:v ?cpu |cpu |physical |processor )?cores?|(?:v ?cpu|cpu)s? cores?|v ?cpu s", "vcpus"),
    (r"cpus?|processors?|cpu (?:model|type|family)|processor (?:model|type|family)", "cpu"),
    (r"(?:cpu |processor )?architecture|arch", "arch"),
    (r"(?:system |host |vm |main |instance )?(?:memory|ram)(?: size| capacity)?", "memory_gib"),
    (rf"(?:total )?{_GPU} ?(?:memory|vram|ram|frame ?buffer|hbm)(?: size| capacity)?(?: (?:per|each|total).*)?|vram|frame ?buffer", "gpu_memory"),
    (rf"(?:memory|vram|ram) (?:per|of each) {_GPU}|(?:total )?v ?ram", "gpu_memory"),
    (rf"{_GPU}(?: (?:partitions?|counts?|quantity|cards?|s))?(?: per vm)?", "gpu"),
    (rf"{_GPU} (?:models?|types?|names?|families|family)", "gpu_model"),
    (rf"{_GPU} (?:interconnects?|links?)|nv ?link(?: interconnect)?", "gpu_interconnect"),
    (r"temp(?:orary)? (?:disks?|storage) (?:random )?read(?: rr)? ?(?:speed|throughput|bandwidth)?(?: iops)?", "temp_disk_read"),
    (r"temp(?:orary)? (?:disks?|storage) (?:random )?write(?: rw)? ?(?:speed|throughput|bandwidth)?(?: iops)?", "temp_disk_write"),
    (rf"cached(?: and temp(?:orary)? storage)? (?:disks? )?{_SPEED}", "cached_disk"),
    (r"(?:local )?temp(?:orary)?(?: (?:storage|disks?|ssds?|nvme|local|size|capacity))+", "temp_disk"),
    (r"local (?:temp(?:orary)? )?(?:storage|disks?|ssd)(?: (?:size|capacity|ssd))?|(?:scratch|resource) disks?(?: size)?", "temp_disk"),
    (r"(?:local |direct disks? )?nvme(?: (?:disks?|drives?|ssds?|storage))?|direct disks? nvme|local nvme (?:disks?|ssds?|storage)", "nvme"),
    (r"(?:local )?nvme (?:disks? |drives? |ssds? |storage )?(?:size|capacity)(?: per disk)?", "nvme_size"),
    (r"(?:remote(?: storage)?|data|remote data|managed|premium)(?: storage)? disks?", "max_data_disks"),
    (rf"uncached burst (?:special |ultra disk and premium ssd v2 |ultra disk )(?:disks? )?{_SPEED}", "ultra_disk_burst"),
    (rf"uncached (?:special |ultra disk and premium ssd v2 |ultra disk )(?:disks? )?burst ?{_SPEED}", "ultra_disk_burst"),
    (rf"uncached (?:special |ultra disk and premium ssd v2 |ultra disk )(?:disks? )?{_SPEED}", "ultra_disk"),
    (rf"(?:uncached burst {_DISK}|burst uncached {_DISK}|uncached {_DISK}burst ?){_SPEED}", "uncached_disk_burst"),
    (rf"(?:uncached |remote(?: storage)? ){_DISK}{_SPEED}|data disks? (?:iops|throughput|speed)|disks? (?:iops|throughput|speed|bandwidth)", "uncached_disk"),
    (r"iops|storage throughput", "uncached_disk"),
    (r"front ?end nics?|(?:front ?end )?(?:(?:v ?)?nics?|network (?:interfaces?|adapters?)(?: cards?)?)(?: nics?)?", "max_nics"),
    (r"scale ?(up|out) nics?", "scale_nics"),
    (r"scale ?(up|out) (?:network )?bandwidth", "scale_bandwidth"),
    (r"front ?end (?:network )?bandwidth|(?:expected |total |vm )?(?:network |networking |nics? |ethernet )+(?:bandwidth|throughput|speed|performance)", "network_mbps"),
    (r"(?:expected |total |vm )?bandwidth|(?:front ?end|ethernet)(?: network)?", "network_mbps"),
    (r"(?:expected )?(?:bandwidth|network) (?:network|mbps)", "network_mbps"),
    (r"network(?:ing)?(?: (?:connectivity|type|interconnect))?|interconnect|connectivity", "network"),
    (r"infini ?band(?: (?:bandwidth|network|support|speed))?|(?:back ?end|rdma)(?: network)?(?: bandwidth)?|rdma(?: capable| support)?", "infiniband"),
    (r"virtual workstations?", "virtual_workstations"),
    (r"virtual applications?", "virtual_applications"),
    (r"series|size series|vm series|family|acu|status|notes?|comments?|descriptions?|use cases?|workloads?", "ignored"),
)  # fmt: skip

_COMPILED = tuple((re.compile(f"^(?:{pattern})$"), name) for pattern, name in _TABLE)


def find_field(key: str) -> tuple[str, str] | None:
    """Give the column's name and its distinguishing part (`up` of scale-up), None for a column nobody knows."""
    for pattern, name in _COMPILED:
        if found := pattern.match(key):
            return name, next((part for part in found.groups() if part), "")
    return None
