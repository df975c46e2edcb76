"""Column synonyms: the headers by which pages name each column, as patterns over `columns.header_key`.

The first column with a pattern that matches the whole header wins, so more specific columns come first. A name that is
no field of a size is read by a reader of its own: `gpu` may hold a count or a sentence, `network` a kind of network and
a bandwidth, `ignored` holds no facts.
"""

import re

_DISK = r"(?:premium (?:ssd|storage) )?(?:storage )?(?:disks? )?"
_SPEED = r"(?:iops|throughput|speed|bandwidth|performance|i o)?(?: iops)?"
_RATE = r"(?:iops|throughput|speed|bandwidth)(?: iops)?"
_TEMP_DISK = r"(?:temp(?:orary)? (?:disks?|storage)|local disks?)"
_ULTRA_DISK = r"(?:special |ultra disk and premium ssd v2 |ultra disk )(?:disks? )?"
_SIZE = r"(?: (?:size|capacity))?"
_GPU = r"(?:gpus?|accelerators?|graphics(?: cards?)?|video)"

_SYNONYMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "name",
        (
            r"(?:azure |vm |instance )?(?:sizes?|skus?)(?: names?)?",
            r"(?:vm|instance|machine|virtual machine)(?: (?:type|size|name|sku))?s?",
            r"(?:azure )?(?:vm|instance|virtual machine) (?:size|type|sku) names?",
            r"names?",
            r"instances?",
            r"types?",
            r"flavou?rs?",
            r"shapes?",
        ),
    ),
    (
        "vcpus",
        (
            r"v ?cpus?",
            r"v ?cores?",
            r"virtual (?:cpus?|cores?)",
            r"(?:v ?cpu |cpu |physical |processor )?cores?",
            r"(?:v ?cpu|cpu)s? cores?",
            r"v ?cpu s",
            r"active v ?cpus?",
        ),
    ),
    (
        "parent_size",
        (r"(?:base|original|parent) sizes?",),
    ),
    (
        "cpu",
        (
            r"cpus?",
            r"processors?",
            r"cpu (?:model|type|family)",
            r"processor (?:model|type|family)",
        ),
    ),
    (
        "arch",
        (
            r"(?:cpu |processor )?architecture",
            r"arch",
        ),
    ),
    (
        "memory_gib",
        (r"(?:system |host |vm |main |instance )?(?:memory|ram)(?: size| capacity)?",),
    ),
    (
        "gpu_memory",
        (
            rf"(?:total )?{_GPU} ?(?:mem(?:ory)?|v?ram|frame ?buffer|hbm){_SIZE}(?: (?:per|each|total).*)?",
            r"vram",
            r"frame ?buffer",
            rf"(?:memory|vram|ram) (?:per|of each) {_GPU}",
            r"(?:total )?v ?ram",
        ),
    ),
    (
        "gpu",
        (rf"{_GPU}(?: (?:partitions?|fractions?|counts?|quantity|cards?|s))?(?: per vm)?",),
    ),
    (
        "gpu_model",
        (rf"{_GPU} (?:models?|types?|names?|families|family)",),
    ),
    (
        "gpu_interconnect",
        (
            rf"{_GPU} (?:interconnects?|links?)",
            r"nv ?link(?: interconnect)?",
        ),
    ),
    (
        "temp_disk_sequential_read",
        (rf"{_TEMP_DISK} sequential read(?: sr)? ?{_SPEED}",),
    ),
    (
        "temp_disk_sequential_write",
        (rf"{_TEMP_DISK} sequential write(?: sw)? ?{_SPEED}",),
    ),
    (
        "temp_disk_read",
        (rf"{_TEMP_DISK} (?:random )?read(?: rr)? ?{_SPEED}",),
    ),
    (
        "temp_disk_write",
        (rf"{_TEMP_DISK} (?:random )?write(?: rw)? ?{_SPEED}",),
    ),
    (
        "temp_disk_burst",
        (rf"{_TEMP_DISK} burst ?{_SPEED}",),
    ),
    (
        "temp_disk_rate",
        (rf"{_TEMP_DISK} {_RATE}", rf"temp(?:orary)? read ?write (?:disks?|storage) {_RATE}"),
    ),
    (
        "cached_disk",
        (rf"cached(?: and {_TEMP_DISK})? (?:disks? )?(?:random read (?:rr )?)?{_SPEED}",),
    ),
    (
        "temp_disk",
        (
            r"(?:local )?temp(?:orary)?(?: (?:storage|disks?|ssds?|hdds?|nvme|local|size|capacity))+",
            r"local (?:temp(?:orary)? )?(?:storage|disks?|ssd|hdd)(?: (?:size|capacity|ssd))?",
            r"(?:scratch|resource) disks?(?: size)?",
        ),
    ),
    (
        "nvme_disk_rate",
        (rf"nvme (?:disks? )?{_RATE}(?: read(?: iops)?)?",),
    ),
    (
        "nvme",
        (
            r"(?:local |direct disks? )?nvme(?: (?:disks?|drives?|ssds?|storage))?",
            r"direct disks? nvme",
            r"local nvme (?:disks?|ssds?|storage)",
        ),
    ),
    (
        "nvme_size",
        (r"(?:total )?(?:local )?nvme (?:disks? |drives? |ssds? |storage )?(?:size|capacity)(?: per (?:disk|drive))?",),
    ),
    (
        "max_data_disks",
        (r"(?:remote(?: storage)?|data|remote data|managed|premium)(?: storage)? disks?", r"remote storage"),
    ),
    (
        "ultra_disk_burst",
        (
            rf"(?:uncached burst|burst uncached) {_ULTRA_DISK}{_SPEED}",
            rf"uncached {_ULTRA_DISK}burst ?{_SPEED}",
        ),
    ),
    (
        "ultra_disk",
        (rf"uncached {_ULTRA_DISK}{_SPEED}",),
    ),
    (
        "uncached_disk_burst",
        (rf"(?:uncached burst {_DISK}|burst uncached {_DISK}|uncached {_DISK}burst ?){_SPEED}",),
    ),
    (
        "uncached_disk",
        (
            rf"(?:uncached |remote(?: storage)? ){_DISK}{_SPEED}",
            rf"(?:data )?disks? {_RATE}",
            r"iops",
            r"storage throughput",
        ),
    ),
    (
        "local_ssd",
        (r"local solid state disks?",),
    ),
    (
        "local_ssd_size",
        (r"local solid state disks? (?:size|capacity)",),
    ),
    (
        "disk_cache_gib",
        (r"(?:temp )?disk cache(?: size)?",),
    ),
    (
        "l3_cache_mib",
        (r"l3 cache(?: size)?",),
    ),
    (
        "epc_memory_mib",
        (r"epc memory",),
    ),
    (
        "memory_bandwidth_gb_per_s",
        (r"(?:peak )?memory bandwidth",),
    ),
    (
        "cpu_base_ghz",
        (r"base (?:cpu )?frequency",),
    ),
    (
        "cpu_peak_ghz",
        (r"single core (?:peak frequency|frequency peak)",),
    ),
    (
        "cpu_all_core_peak_ghz",
        (r"all cores? (?:peak frequency|frequency peak)",),
    ),
    (
        "cpu_baseline_percent",
        (r"base cpu perf(?:ormance)?(?: of vm)?",),
    ),
    (
        "cpu_credits_initial",
        (r"initial (?:cpu )?credits",),
    ),
    (
        "cpu_credits_per_hour",
        (r"(?:cpu )?credits banked (?:per )?hour",),
    ),
    (
        "cpu_credits_max",
        (r"banked (?:cpu )?credits",),
    ),
    (
        "backend_nics",
        (r"back ?end nics?",),
    ),
    (
        "max_nics",
        (
            r"front ?end nics?",
            r"(?:front ?end )?(?:(?:ethernet )?(?:v ?)?nics?|network (?:interfaces?|adapters?)(?: cards?)?)(?: nics?)?",
        ),
    ),
    (
        "scale_nics",
        (r"scale ?(up|out) nics?",),
    ),
    (
        "scale_bandwidth",
        (r"scale ?(up|out) (?:network )?bandwidth",),
    ),
    (
        "network_mbps",
        (
            r"front ?end (?:network )?bandwidth",
            r"(?:expected |total |vm )?(?:network |networking |nics? |ethernet )+(?:bandwidth|speed)",
            r"(?:expected |total |vm )?(?:network |networking |nics? |ethernet )+(?:throughput|performance)",
            r"(?:expected |total |vm )?bandwidth",
            r"(?:front ?end|ethernet)(?: network)?",
            r"(?:expected )?(?:bandwidth|network) (?:network|mbps)",
        ),
    ),
    (
        "network",
        (
            r"network(?:ing)?(?: (?:connectivity|type|interconnect))?",
            r"interconnect",
            r"connectivity",
        ),
    ),
    (
        "infiniband",
        (
            r"infini ?band(?: (?:bandwidth|network|support|speed))?",
            r"(?:back ?end|rdma)(?: network)?(?: bandwidth)?",
            r"rdma(?: capable| support| performance| speed)?",
        ),
    ),
    (
        "virtual_workstations",
        (r"virtual workstations?",),
    ),
    (
        "virtual_applications",
        (r"virtual applications?",),
    ),
    (
        "ignored",
        (
            r"series",
            r"size series",
            r"vm series",
            r"family",
            r"acu",
            r"size types?",
            r"disabled v ?cpus?",
            r"os disk(?: size)?",
            r"cpu perf(?:ormance)?(?: of vm)?",
            r"status",
            r"notes?",
            r"comments?",
            r"descriptions?",
            r"use cases?",
            r"(?:best|recommended) (?:for|uses?)",
            r"typical uses?",
            r"roles?",
            r"purposes?",
            r"sources?",
            r"remarks?",
            r"availability",
            r"workloads?",
        ),
    ),
)

_COMPILED = tuple((re.compile(f"^(?:{'|'.join(patterns)})$"), name) for name, patterns in _SYNONYMS)


def find_field(key: str) -> tuple[str, str] | None:
    """Return the column's name and its qualifier (`up` of scale-up, else empty); None for an unknown header."""
    for pattern, name in _COMPILED:
        if match := pattern.match(key):
            return name, next((part for part in match.groups() if part), "")
    return None
