"""Kinds of questions: the SQL of their answers, their words, and the call that a program makes for them.

Each query returns columns for the words, and `answer`. `{day}` is the day of the question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Questions of one kind: at most `count` rows of `sql`."""

    name: str
    count: int
    sql: str
    question: str
    tool: str
    arguments: Callable[[Row], dict[str, Any]]
    read: Callable[[Any], Any]


def value(name: str) -> Callable[[Any], Any]:
    """Return what reads a field of the first item."""
    return lambda content: content["items"][0][name]


def accepted(content: Any) -> Any:
    """Read the value of the first fact: a number where it is one."""
    said = content["facts"][0]["value"]
    try:
        return float(said)
    except ValueError:
        return said


def total(content: Any) -> Any:
    """Read how many there are."""
    return content["total"]


def of_fact(field: str) -> Callable[[Row], dict[str, Any]]:
    """Return what asks for one fact of a size."""
    return lambda row: {"size": row["name"], "fields": field}


def facts_of(field: str, condition: str = "1 = 1") -> str:
    """Return the query of the accepted value of a field, of sizes in a scattered order."""
    return f"""
        select size.name, {NUMBER} as answer from fact join size on size.key = fact.subject
        where fact.kind = 'size' and fact.field = '{field}' and fact.verdict = 'accepted' and {condition}
        order by length(size.name), size.name
    """


NUMBER = "cast(coalesce(corrected_value, value) as double precision)"
TEXT = "coalesce(corrected_value, value)"
ORDERABLE = """
    (size.retirement_date is null or size.retirement_date > '{day}')
    and (size.withdrawn is null or not size.withdrawn)
"""
STATUS = """
    case when retirement_date <= '{day}' then 'retired' when withdrawn then 'withdrawn'
    when retirement_date is not null then 'retiring' when preview then 'preview' else 'current' end
"""
USD = "nano_usd_per_hour / 1000000000.0"


def here(row: Row) -> dict[str, Any]:
    """Return the arguments for the price of a size in a region."""
    return {"name": row["name"], "region": row["region_name"], "status": "any"}


def price_query(purchase: str, os: str = "linux") -> str:
    """Return the query of today's prices by size and region; those of spot are offers for a year only."""
    recent = " and seen_until >= '2026-01-01' and not approximate_date" if purchase == "spot" else ""
    return f"""
        select size.name, region.name as region_name, {USD} as answer from current_price
        join size on size.key = size_key join region on region.code = region
        where os = '{os}' and purchase = '{purchase}'{recent}
        order by length(size.name), region.name, size.name
    """


def count_query(condition: str, column: str = "1") -> str:
    """Return the query that counts the sizes that can be ordered."""
    return f"select {column}, count(*) as answer from size where {ORDERABLE} and {condition}"


FAMILIES = (
    Family(
        name="gpu-memory",
        count=30,
        sql=facts_of("gpu_memory_gib", "size.gpu_count > 0"),
        question="How many GiB of GPU memory does {name} have in total?",
        tool="explain_size",
        arguments=of_fact("gpu_memory_gib"),
        read=accepted,
    ),
    Family(
        name="vcpus",
        count=20,
        sql=facts_of("vcpus"),
        question="How many vCPUs does {name} have?",
        tool="explain_size",
        arguments=of_fact("vcpus"),
        read=accepted,
    ),
    Family(
        name="memory",
        count=20,
        sql=facts_of("memory_gib"),
        question="How much memory (GiB) does {name} have?",
        tool="find_sizes",
        arguments=lambda row: {"name": row["name"], "status": "any"},
        read=value("memory_gib"),
    ),
    Family(
        name="fractions",
        count=6,
        sql="""
            select name, cast(gpu_count_numerator as varchar) || '/' || cast(gpu_count_denominator as varchar) as answer
            from size where gpu_count_denominator > 1 order by name
        """,
        question="What part of a GPU does {name} have, as a fraction?",
        tool="find_sizes",
        arguments=lambda row: {"name": row["name"], "status": "any"},
        read=value("gpu_fraction"),
    ),
    Family(
        name="cpu-model",
        count=10,
        sql=facts_of("cpu_model").replace(NUMBER, TEXT),
        question="Which processor does {name} have?",
        tool="explain_size",
        arguments=of_fact("cpu_model"),
        read=accepted,
    ),
    Family(
        name="who-says",
        count=12,
        sql="""
            select size.name, fact.source_id as answer from fact join size on size.key = fact.subject
            where fact.kind = 'size' and fact.field = 'memory_gib' and fact.verdict = 'accepted'
            order by length(size.name), size.name
        """,
        question="Which source is the memory of {name} taken from? Give its id.",
        tool="explain_size",
        arguments=of_fact("memory_gib"),
        read=lambda content: content["facts"][0]["source"],
    ),
    Family(
        name="disputes",
        count=25,
        sql="""
            select size.name, fact.field, fact.source_id,
                coalesce(fact.corrected_value, fact.value) as answer
            from fact join size on size.key = fact.subject
            where fact.kind = 'size' and fact.verdict = 'disputed' and not exists (
                select 1 from fact as other where other.kind = fact.kind and other.subject = fact.subject
                and other.field = fact.field and other.verdict = 'disputed' and other.source_id != fact.source_id
            )
            order by size.name, fact.field
        """,
        question="Sources disagree on the {field} of {name}. Which value was not accepted?",
        tool="explain_size",
        arguments=lambda row: {"size": row["name"], "fields": row["field"]},
        read=lambda content: content["disputes"][0]["other"],
    ),
    Family(
        name="gpu-count",
        count=10,
        sql=f"""
            select coalesce(gpu.family, size.gpu_model) as family, count(*) as answer
            from size left join gpu on gpu.id = size.gpu_id
            where {ORDERABLE} and size.gpu_model is not null group by 1 order by 1
        """,
        question="How many sizes that can be ordered have a GPU of the family {family}?",
        tool="find_sizes",
        arguments=lambda row: {"gpu": row["family"], "limit": 1},
        read=total,
    ),
    Family(
        name="at-least-gpu-memory",
        count=6,
        sql=" union all ".join(
            count_query(f"gpu_memory_gib >= {gib}", f"{gib} as gib") for gib in (16, 80, 160, 320, 640, 1000)
        ),
        question="How many sizes that can be ordered have at least {gib} GiB of GPU memory?",
        tool="find_sizes",
        arguments=lambda row: {"min_gpu_mem": f"{row['gib']} GB", "limit": 1},
        read=total,
    ),
    Family(
        name="at-least-memory",
        count=6,
        sql=" union all ".join(
            count_query(f"memory_gib >= {gib} and gpu_count = 0", f"{gib} as gib")
            for gib in (64, 256, 512, 1024, 2048, 4096)
        ),
        question="How many CPU sizes that can be ordered have at least {gib} GiB of memory?",
        tool="find_sizes",
        arguments=lambda row: {"min_memory": row["gib"], "max_gpus": 0, "limit": 1},
        read=total,
    ),
    Family(
        name="series",
        count=10,
        sql="""
            select series.name, count(*) as answer from size join series on series.id = size.series_id
            group by series.name having count(*) > 2 order by series.name
        """,
        question="How many sizes of the series {name} are known, retired ones included?",
        tool="find_sizes",
        arguments=lambda row: {"series": row["name"], "status": "any", "limit": 1},
        read=total,
    ),
    Family(
        name="features",
        count=6,
        sql=" union all ".join(
            count_query(name, f"'{name}' as feature")
            for name in (
                "nvlink",
                "infiniband",
                "ultra_disk",
                "nested_virtualization",
                "hibernation",
                "premium_storage",
            )
        ),
        question="How many sizes that can be ordered have {feature}?",
        tool="find_sizes",
        arguments=lambda row: {"features": row["feature"], "limit": 1},
        read=total,
    ),
    Family(
        name="on-demand",
        count=35,
        sql=price_query("on_demand"),
        question="What does {name} cost an hour on demand (Linux) in {region_name}, in US dollars?",
        tool="find_sizes",
        arguments=here,
        read=value("usd_per_hour"),
    ),
    Family(
        name="windows",
        count=10,
        sql=price_query("on_demand", "windows"),
        question="What does {name} with Windows cost an hour on demand in {region_name}, in US dollars?",
        tool="find_sizes",
        arguments=lambda row: {**here(row), "os": "Windows"},
        read=value("usd_per_hour"),
    ),
    Family(
        name="spot",
        count=20,
        sql=price_query("spot"),
        question="What does {name} cost an hour on spot (Linux) in {region_name}, in US dollars?",
        tool="find_sizes",
        arguments=lambda row: {**here(row), "purchase": "Spot"},
        read=value("usd_per_hour"),
    ),
    Family(
        name="reserved",
        count=8,
        sql=price_query("reserved_3y"),
        question="What does {name} cost an hour, reserved for three years, in {region_name}, in US dollars?",
        tool="find_sizes",
        arguments=lambda row: {**here(row), "purchase": "3-year reserved"},
        read=value("usd_per_hour"),
    ),
    Family(
        name="past",
        count=15,
        sql=f"""
            select size.name, region.name as region_name, '2024-06-01' as day, {USD} as answer
            from price join size on size.key = size_key join region on region.code = region
            where os = 'linux' and purchase = 'on_demand' and valid_from <= '2024-06-01' and seen_until >= '2024-06-01'
            and not exists (
                select 1 from price as other where other.size_key = price.size_key and other.region = price.region
                and other.os = price.os and other.purchase = price.purchase and other.valid_from <= '2024-06-01'
                and (other.valid_from != price.valid_from or other.source_id != price.source_id)
            )
            order by length(size.name), region.name, size.name
        """,
        question="What did {name} cost an hour on demand (Linux) in {region_name} on {day}, in US dollars?",
        tool="price_history",
        arguments=lambda row: {"size": row["name"], "region": row["region_name"], "as_of": row["day"]},
        read=lambda content: content["in_force"]["usd_per_hour"],
    ),
    Family(
        name="first-price",
        count=8,
        sql="""
            select size.name, region.name as region_name, cast(min(valid_from) as varchar) as answer
            from price join size on size.key = size_key join region on region.code = region
            where os = 'linux' and purchase = 'on_demand'
            group by size.name, region.name having count(*) between 2 and 8
            order by length(size.name), region.name, size.name
        """,
        question="Since which day is an on-demand Linux price of {name} in {region_name} known?",
        tool="price_history",
        arguments=lambda row: {"size": row["name"], "region": row["region_name"], "limit": 50},
        read=lambda content: min(price["since"] for price in content["prices"]),
    ),
    Family(
        name="cheapest-region",
        count=12,
        sql="""
            select size.name, min(region.code) as answer from current_price as here
            join size on size.key = size_key join region on region.code = here.region
            where os = 'linux' and purchase = 'on_demand' and median_nano_usd is null and not exists (
                select 1 from current_price as other where other.size_key = here.size_key and other.os = here.os
                and other.purchase = here.purchase and other.region != here.region
                and other.nano_usd_per_hour <= here.nano_usd_per_hour and other.median_nano_usd is null
            )
            group by size.name order by length(size.name), size.name
        """,
        question="In which region is {name} the cheapest on demand (Linux)? Give the region's code.",
        tool="explain_size",
        arguments=lambda row: {"size": row["name"]},
        read=lambda content: content["regions"]["cheapest"][0]["region"],
    ),
    Family(
        name="regions",
        count=8,
        sql="""
            select size.name, count(*) as answer from current_price join size on size.key = size_key
            where os = 'linux' and purchase = 'on_demand' group by size.name order by length(size.name), size.name
        """,
        question="In how many regions is an on-demand Linux price of {name} known?",
        tool="explain_size",
        arguments=lambda row: {"size": row["name"]},
        read=lambda content: content["regions"]["priced"],
    ),
    Family(
        name="cheapest-with",
        count=8,
        sql=" union all ".join(
            f"""
            select * from (
                select '{region}' as region, {gib} as gib, min({USD}) as answer from current_price
                join size on size.key = size_key
                where os = 'linux' and purchase = 'on_demand' and region = '{region}' and gpu_memory_gib >= {gib}
                and {ORDERABLE}
            ) as cheapest_{number}
            """
            for number, (region, gib) in enumerate(
                (region, gib) for region in ("eastus", "westeurope", "westus3", "japaneast") for gib in (24, 80)
            )
        ),
        question="What does the cheapest size with {gib} GiB of GPU memory or more cost an hour in {region}?",
        tool="find_sizes",
        arguments=lambda row: {"min_gpu_mem": row["gib"], "region": row["region"], "limit": 1},
        read=value("usd_per_hour"),
    ),
    Family(
        name="fit-needs",
        count=4,
        sql=" union all ".join(
            f"""
            select {gib} as gib, {vcpus} as vcpus, count(distinct size.key) as answer from size
            join current_price on size.key = size_key
            where os = 'linux' and purchase in ('on_demand', 'spot') and region = 'eastus' and gpu_memory_gib >= {gib}
            and vcpus >= {vcpus} and {ORDERABLE}
            """
            for gib, vcpus in ((16, 8), (48, 16), (80, 24), (320, 96))
        ),
        question="How many sizes meet a need of {gib} GiB of GPU memory and {vcpus} vCPUs with one VM in East US?",
        tool="fit_workload",
        arguments=lambda row: {
            "min_gpu_mem": row["gib"],
            "min_vcpus": row["vcpus"],
            "region": "East US",
            "limit": 1,
        },
        read=total,
    ),
    Family(
        name="dearer-by",
        count=8,
        sql="""
            select small.name as one, large.name as other, 'West Europe' as region_name,
                100.0 * (dear.nano_usd_per_hour - cheap.nano_usd_per_hour) / cheap.nano_usd_per_hour as answer
            from size as small join size as large on large.series_id = small.series_id and large.key > small.key
            join current_price as cheap on cheap.size_key = small.key
            join current_price as dear on dear.size_key = large.key
            where cheap.region = 'westeurope' and dear.region = 'westeurope' and cheap.os = 'linux'
            and dear.os = 'linux' and cheap.purchase = 'on_demand' and dear.purchase = 'on_demand'
            and dear.nano_usd_per_hour > cheap.nano_usd_per_hour
            and dear.nano_usd_per_hour < 3 * cheap.nano_usd_per_hour
            order by length(small.name), small.name, large.name
        """,
        question="By how many percent is {other} dearer than {one} on demand in {region_name}?",
        tool="compare_sizes",
        arguments=lambda row: {"sizes": [row["one"], row["other"]], "region": "West Europe", "fields": "usd_per_hour"},
        read=lambda content: content["fields"][0]["percent"][1],
    ),
    Family(
        name="retirement",
        count=12,
        sql="""
            select name, cast(retirement_date as varchar) as answer from size where retirement_date is not null
            order by length(name), name
        """,
        question="On which day does or did {name} retire?",
        tool="explain_size",
        arguments=lambda row: {"size": row["name"]},
        read=lambda content: content["retirement_date"],
    ),
    Family(
        name="status",
        count=10,
        sql=f"select name, {STATUS} as answer from size order by retirement_date, name",
        question="What is the status of {name}: current, preview, retiring, withdrawn or retired?",
        tool="explain_size",
        arguments=lambda row: {"size": row["name"]},
        read=lambda content: content["status"],
    ),
)
