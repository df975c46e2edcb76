"""Suggestions for unknown names: synonyms from a table, else names within one or two typos.

A wrong suggestion is worse than none, because people follow it without a second look.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

TWO_TYPOS_LENGTH, ONE_TYPO_LENGTH = 8, 4
"""Names of at least this many letters and digits match within two typos, or one; shorter ones must be equal.

`nearest` takes three letters for the only name of four that has one more: `nam` for `name`.
"""

MAX_NAME_LENGTH = 60
"""Longer names match nothing."""

_SYNONYMS = """
gpu_model gpu_name gpu_type gpu_family gpu_id gpus_model accelerator card -> gpu gpu_model
vendor gpu_maker gpu_brand manufacturer -> gpu_vendor
gpus gpu_count num_gpus n_gpus gpu_num -> min_gpus gpu_count
vram min_vram gpu_memory gpu_mem gpu_ram min_gpu_memory gpu_memory_gib vram_gib -> min_gpu_mem gpu_memory_gib
max_vram max_gpu_memory -> max_gpu_mem
vram_per_gpu gpu_memory_per_gpu gpu_memory_gib_per_gpu -> min_gpu_mem_per_gpu gpu_memory_gib_per_gpu
min_vram_per_gpu min_gpu_memory_per_gpu -> min_gpu_mem_per_gpu gpu_memory_gib_per_gpu
vcpu cpus cores min_cpu min_cpus min_cores cpu_count -> min_vcpus vcpus
max_cpu max_cpus max_cores -> max_vcpus
vcpus -> min_vcpus
memory memory_gib ram min_ram mem min_mem min_memory_gib -> min_memory memory_gib memory_optimized
max_ram max_mem max_memory_gib -> max_memory
disk local_disk min_disk local_disk_gib storage -> min_local_disk storage_optimized
temp_disk -> temp_disk_gib
network network_gbps network_mbps bandwidth -> min_network_gbps network_mbps
disks data_disks max_data_disks -> min_data_disks max_data_disks
nics max_nics network_interfaces -> min_nics max_nics
iops disk_iops uncached_disk_iops -> min_uncached_disk_iops uncached_disk_iops
processor cpu_model cpu_generation -> cpu cpu_model
infiniband_gbps -> min_infiniband_gbps
price cost usd usd_per_hour hourly_price price_per_hour -> usd_per_hour cost_per_hour max_usd_per_hour
max_price price_max max_cost max_usd max_hourly_price -> max_usd_per_hour budget_usd_per_month
max_usd_per_hour budget max_budget max_usd_per_month -> budget_usd_per_month max_usd_per_month max_usd_per_hour
budget_usd_per_month -> budget_usd_per_month max_usd_per_month max_usd_per_hour
min_price -> min_usd_per_hour
price_per_gpu -> usd_per_gpu_hour
price_per_vcpu price_per_core price_per_cpu -> usd_per_vcpu_hour
price_per_score price_per_coremark -> usd_per_1000_coremark_hour
price_per_gib price_per_gb -> usd_per_memory_gib_hour usd_per_gpu_gib_hour
spot -> purchase=spot spot_usd_per_hour
on_demand -> purchase=on_demand on_demand_usd_per_hour
reserved reservation ri -> purchase=reserved_1y purchase=reserved_3y
savings savings_plan -> purchase=savings_1y purchase=savings_3y
linux -> os=linux
windows -> os=windows
system operating_system platform -> os
size sizes vm sku vm_size instance instance_type machine_type -> name size
family vm_family size_family -> series
arm aarch64 -> arm64
x86 x86_64 amd64 intel64 -> x64
gpu -> gpu_accelerated
fpga -> fpga_accelerated
hpc -> high_performance_compute
compute -> compute_optimized
general -> general_purpose
active available live ga -> current
deprecated ending -> retiring
cloud clouds csp -> provider
amazon amazon_web_services ec2 -> aws
google google_cloud gcloud gce -> gcp
microsoft microsoft_azure -> azure
oracle oracle_cloud -> oci
uk -> GB
location locations regions region -> region regions
zone zones -> min_zones zones region
page offset skip page_token start -> cursor
per_page page_size top max_results pagesize -> limit
order order_by orderby sort_by sortby -> sort
columns select cols -> fields
query search text keyword -> q
quantization quant precision data_type datatype torch_dtype -> dtype
context context_tokens context_length context_size max_context ctx -> context_tokens sequence_tokens context
max_model_len sequence_length -> context_tokens sequence_tokens context
batch_size batch users concurrent_users concurrency -> concurrency users
nodes vms max_vms -> max_nodes
method training training_method finetune fine_tune finetuning -> train
date day on -> as_of
float16 half f16 -> fp16
bfloat16 bfloat -> bf16
float32 float f32 -> fp32
float8 f8 fp8_e4m3 -> fp8
4bit 4_bit q4 -> int4
8bit 8_bit q8 -> int8
"""
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    name: tuple(meant.split())
    for names, _, meant in (line.partition(" -> ") for line in _SYNONYMS.splitlines())
    for name in names.split()
}
"""Names that other tools use, and what they are called here, response fields among them; the first known one is used.

In `name=value`, `value` is what to send for that name. Each name stands for its bounds, too: `min_` or `max_`
before it means the bound of what it means alone.
"""

_BOUNDS = {"min_": "max_", "max_": "min_"}
"""Prefixes of bounds, each with its opposite."""

_KINDS = {"min_": "lower", "max_": "upper"}
_OPPOSITES = (("min", "max"), ("max", "min"), ("cpu", "gpu"), ("gpu", "cpu"))
"""Words with opposite meanings that differ by a letter or two, so spelling alone would confuse them."""


def nearest(name: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that a wrong one may mean: its synonym, else names within a few typos, nearest first.

    Never suggests the opposite bound, or a GPU field for a CPU field.
    """
    names, written = list(candidates), re.sub(r"[\s-]", "_", name.strip().lower())
    bound = next((prefix for prefix in _BOUNDS if written.startswith(prefix)), "")
    of_field = SYNONYMS.get(written.removeprefix(bound), ()) if bound else ()
    bounds = (bound + field.removeprefix("min_").removeprefix("max_") for field in of_field)
    meant = [meaning for meaning in (*SYNONYMS.get(written, ()), *bounds) if meaning.partition("=")[0] in names]
    opposite = _opposite_in(written, _OPPOSITES)
    alike = [text for text in names if not opposite(text)]
    suggested = tuple(text for text in meant if text in alike or "=" in text)[:1]
    return suggested or closest_spellings(name, alike) or _one_letter_longer(written, alike)


def _one_letter_longer(written: str, names: Iterable[str]) -> tuple[str, ...]:
    longer = [name for name in names if len(name) == ONE_TYPO_LENGTH]
    near = [name for name in longer if any(name[:at] + name[at + 1 :] == written for at in range(ONE_TYPO_LENGTH))]
    return tuple(near) if len(near) == 1 and written.isalpha() else ()


def _opposite_in(written: str, pairs: Iterable[tuple[str, str]]) -> Callable[[str], bool]:
    """Return a predicate that tells whether a text has the opposite of a word in the name; scans a long name once."""
    ours = [pair for pair in pairs if pair[0] in written and pair[1] not in written]
    return lambda text: any(word not in text and opposite in text for word, opposite in ours)


def only_bound(name: str, candidates: Iterable[str]) -> str:
    """Return the text "only the lower bound exists: min_x" for an unknown `max_x`, or the reverse; else empty."""
    names, written = list(candidates), name.strip().lower()
    opposite = next((other for bound, other in _BOUNDS.items() if written.startswith(bound)), "")
    near = nearest(opposite + written[len(opposite) :], names) if opposite else ()
    return f"only the {_KINDS[opposite]} bound exists: {near[0]}" if near else ""


def starting_with(name: str, candidates: Iterable[str], limit: int = 1) -> tuple[str, ...]:
    """Return the known names that start with a name, shortest first, else those within a few typos."""
    begun = _normalize(name)
    spelled = _normalize_all(list(candidates))
    longer = [word for word, letters in spelled if letters.startswith(begun)] if len(begun) >= ONE_TYPO_LENGTH else []
    return tuple(sorted(longer, key=lambda word: (len(word), word))[:limit]) or _within_typos(begun, spelled, limit)


def closest_spellings(name: str, candidates: Iterable[str], limit: int = 1) -> tuple[str, ...]:
    """Return the known names within the allowed typos: insertions, deletions, substitutions, transpositions."""
    return _within_typos(_normalize(name), _normalize_all(list(candidates)), limit)


def _within_typos(written: str, spelled: Sequence[tuple[str, str]], limit: int) -> tuple[str, ...]:
    """Return the names whose letters, which stand beside them, are within the allowed typos of those written.

    Of equally near names the one that begins alike for longer is first: `min_vpus` is `min_vcpus` before `min_gpus`.
    """
    from rapidfuzz import process  # noqa: PLC0415  # 20 ms, which a command without a typo is spared
    from rapidfuzz.distance import OSA, Prefix  # noqa: PLC0415

    allowed = 2 if len(written) >= TWO_TYPOS_LENGTH else 1 if len(written) >= ONE_TYPO_LENGTH else 0
    if len(written) > MAX_NAME_LENGTH:
        return ()
    spellings = [letters for _, letters in spelled]
    near = process.extract(written, spellings, scorer=OSA.distance, score_cutoff=allowed, limit=None)
    measured = ((typos, -Prefix.similarity(written, letters), spelled[place][0]) for letters, typos, place in near)
    return tuple(candidate for *_, candidate in sorted(measured))[:limit]


def did_you_mean(names: Iterable[str], after: str = "", *, sent: str = "") -> str:
    """Return "did you mean …?" followed by `after`; empty if there are no names.

    Where the name that was `sent` is of an hour and the one that is meant of a month, or the reverse, that is said.
    """
    alternatives = " or ".join(names)
    units = {("hour", "month"): " It is USD a month", ("month", "hour"): " It is USD an hour"}
    unit = next((text for pair, text in units.items() if _opposite_in(sent, [pair])(alternatives)), "")
    return f"did you mean {alternatives}?{unit}{after}" if alternatives else ""


def join_with_or(words: Sequence[str]) -> str:
    """Return words as alternatives: `a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _normalize(name: str) -> str:
    """Return a name in lowercase and without separators, which do not count as typos."""
    lowered = name.lower()
    return lowered.translate(_ASCII_SEPARATORS) if lowered.isascii() else re.sub(r"[\W_]", "", lowered)


def _normalize_all(names: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return each name with what `_normalize` makes of it: a thousand at once take a twentieth of the time."""
    lines = "\n".join(names)
    if lines.count("\n") != len(names) - 1 or not lines.isascii():
        return [(name, _normalize(name)) for name in names]
    return [*zip(names, lines.lower().translate(_ASCII_SEPARATORS_OF_LINES).split("\n"), strict=True)]


_ASCII_SEPARATORS = {number: None for number in range(128) if not chr(number).isalnum()}
"""What `[\\W_]` matches among ASCII characters; to leave them out takes a fifth of the time of the expression."""


_ASCII_SEPARATORS_OF_LINES = {number: None for number in _ASCII_SEPARATORS if number != ord("\n")}
