"""The clouds whose sizes the catalog has: how each writes the names of sizes and regions, and what its API defines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    region_separators: re.Pattern[str]
    """What does not count in the name of a region; what tells two codes apart is not among it."""
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

PROVIDERS: Mapping[str, Provider] = {provider.id: provider for provider in (AZURE,)}
"""Every provider by its id."""

UNKNOWN_PUBLISHER = "unknown"
"""The publisher of sources that name none."""

DEFAULT_PROVIDER = AZURE
"""The provider that is meant where neither a source nor a request says which; there is no other yet."""


def provider_of(publisher: str) -> Provider:
    """Return the provider whose sizes a publisher's sources describe; a publisher of no provider has the default."""
    return next((one for one in PROVIDERS.values() if publisher in one.publishers), DEFAULT_PROVIDER)


def is_other_vendor(publisher: str) -> bool:
    """Return whether a named publisher is not a provider of the catalog."""
    return publisher != UNKNOWN_PUBLISHER and not any(publisher in one.publishers for one in PROVIDERS.values())
