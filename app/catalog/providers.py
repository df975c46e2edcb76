"""The clouds whose sizes the catalog has: how each writes the names of sizes and regions, and what its API defines."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, get_args

from app.catalog.fields import RESOURCE_SKUS_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A cloud that offers sizes, and the rules that its names follow."""

    id: str
    name: str
    publishers: frozenset[str] = frozenset()
    """The publishers whose sources describe sizes of this provider wherever they name no other."""
    size_prefix: str = ""
    """What the names of all sizes begin with, as it is written; a key is without it."""
    size_name: re.Pattern[str] = re.compile(r".+")
    """Pattern of all size names; a page with other names describes something else."""
    doubtful_size_name: re.Pattern[str] = re.compile(r"\s")
    """Blanks or a footnote mark: such a name is only accepted if a list of sizes has it."""
    region_separators: re.Pattern[str] = re.compile(r"\s")
    """What does not count in the name of a region; what distinguishes two codes is not among it."""
    region_form: re.Pattern[str] | None = None
    """How its regions are written, in lower case; no other provider writes any of its regions so. None: otherwise."""
    region_abbreviations: Mapping[str, str] = field(default_factory=dict)
    """Abbreviations of places in billing names and their form in region codes; used for suggestions only."""
    region_code: re.Pattern[str]
    """The whole of a region's code, after `region_separators` are dropped."""
    region_code_hint: str
    """What `region_code` allows, in words, with an example."""
    api_fields: frozenset[str] = frozenset()
    """The fields of a size that its API defines: a deployment gets what the API says, not what a page says."""
    constrained_key: re.Pattern[str] | None = None
    """How the keys of constrained sizes begin, of whose vCPUs some are disabled; its API gives those of the parent."""


AZURE = Provider(
    id="azure",
    name="Azure",
    publishers=frozenset({"Microsoft"}),
    size_prefix="Standard_",
    size_name=re.compile(r"[A-Za-z0-9][\w +-]*"),
    doubtful_size_name=re.compile(r"\s|_v\d{2,}$", re.IGNORECASE),
    region_separators=re.compile(r"[\s_-]"),
    region_abbreviations={
        "ae": "uae",
        "ap": "asia",
        "au": "australia",
        "br": "brazil",
        "ca": "canada",
        "ch": "switzerland",
        "de": "germany",
        "es": "spain",
        "eu": "europe",
        "fr": "france",
        "gb": "uk",
        "il": "israel",
        "in": "india",
        "it": "italy",
        "ja": "japan",
        "jp": "japan",
        "kr": "korea",
        "mx": "mexico",
        "no": "norway",
        "nz": "newzealand",
        "pl": "poland",
        "qa": "qatar",
        "se": "sweden",
        "usa": "us",
        "za": "southafrica",
    },
    region_code=re.compile(r"[a-z0-9]+"),
    region_code_hint="letters and digits, written like westeurope",
    api_fields=RESOURCE_SKUS_FIELDS,
    constrained_key=re.compile(r"[a-z]+\d+-\d"),
)

AWS = Provider(
    id="aws",
    name="AWS",
    publishers=frozenset(
        {"AWS", "moto", "apache-libcloud", "cluster-autoscaler aws", "karpenter-provider-aws", "skypilot-catalog aws"}
    ),
    region_form=re.compile(
        r"(?:af|ap|ca|cn|eu|il|me|mx|sa|us)(?:-gov|-iso[a-z]*)?-(?:north|south|east|west|central)(?:east|west)?-\d+.*"
    ),
    region_code=re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d+(?:-[a-z]+-\d+)?"),
    region_code_hint="written like us-east-1",
)

GCP = Provider(
    id="gcp",
    name="Google Cloud",
    publishers=frozenset({"Google", "google-cloud-pricing-cost-calculator", "google-cloud-compute-machine-types"}),
    region_form=re.compile(
        r"(?:africa|asia|australia|europe|me|northamerica|southamerica|us)"
        r"-(?:north|south|east|west|central)(?:east|west)?\d+"
    ),
    region_code=re.compile(r"[a-z]+-[a-z]+\d+"),
    region_code_hint="written like us-east1",
)


def _with_own_regions(id_: str, name: str, publishers: Iterable[str]) -> Provider:
    """Return a provider whose codes of regions others use, too: they begin with its id here (`lambda-us-east-1`)."""
    return Provider(
        id=id_,
        name=name,
        publishers=frozenset(publishers),
        region_form=re.compile(rf"{id_}(?:-.*)?"),
        region_code=re.compile(rf"{id_}(?:-[a-z0-9]+)*"),
        region_code_hint=f"{id_} for all of its regions, or written like {id_}-us-1",
    )


_OWN_REGIONS = (
    ("oci", "Oracle Cloud", ("Oracle", "karpenter-oci")),
    ("coreweave", "CoreWeave", ("CoreWeave", "cluster-autoscaler coreweave")),
    ("hyperstack", "Hyperstack", ("Hyperstack", "skypilot-catalog hyperstack")),
    ("lambda", "Lambda", ("Lambda", "skypilot-catalog lambda")),
    ("nebius", "Nebius", ("Nebius", "skypilot-catalog nebius")),
    ("runpod", "RunPod", ("RunPod", "gpu-pricing runpod")),
    ("verda", "Verda", ("Verda", "gpu-pricing verda", "skypilot-catalog verda")),
)

ProviderId = Literal["azure", "aws", "gcp", "oci", "coreweave", "hyperstack", "lambda", "nebius", "runpod", "verda"]
PROVIDER_IDS: tuple[ProviderId, ...] = get_args(ProviderId)

PROVIDERS: Mapping[str, Provider] = {
    provider.id: provider for provider in (AZURE, AWS, GCP, *(_with_own_regions(*row) for row in _OWN_REGIONS))
}
"""Every provider by its id."""

UNKNOWN_PUBLISHER = "unknown"
"""The publisher of sources that name none."""

DEFAULT_PROVIDER = AZURE
"""The provider that is meant where neither a source nor the form of a name says which."""


def provider_of(publisher: str) -> Provider:
    """Return the provider whose sizes a publisher's sources describe; a publisher of no provider has the default."""
    return next((provider for provider in PROVIDERS.values() if publisher in provider.publishers), DEFAULT_PROVIDER)


@lru_cache(maxsize=1_024)
def provider_of_region(name: str) -> Provider:
    """Return the provider that writes its regions like this: no code is that of two."""
    written = name.strip().lower()
    forms = ((provider, provider.region_form) for provider in PROVIDERS.values())
    return next((provider for provider, form in forms if form and form.fullmatch(written)), DEFAULT_PROVIDER)


def split_provider(name: str) -> tuple[Provider | None, str]:
    """Return the provider that stands before the name of a size, if any, and the name: `aws:m5.large`."""
    prefix, colon, rest = name.partition(":")
    provider = PROVIDERS.get(prefix.strip().lower()) if colon else None
    return (None, name) if provider is None else (provider, rest.strip())


def is_other_vendor(publisher: str) -> bool:
    """Return whether a named publisher is not a provider of the catalog."""
    return publisher != UNKNOWN_PUBLISHER and not any(
        publisher in provider.publishers for provider in PROVIDERS.values()
    )
