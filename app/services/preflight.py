"""Check a plan of VMs against quotas: what it needs of each, what is missing, and where else it would fit.

What no file and no source says is unknown, and what is unknown never fits.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from app.cancellation import stop_if_cancelled
from app.catalog.names import RegionCode, as_written
from app.catalog.providers import ProviderId
from app.catalog.queries.lookups import suggest_regions
from app.catalog.queries.price_scope import KEYS, key_parameters
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import cached_statement
from app.db.dialects import Dialect
from app.db.statements import BoundStatement
from app.errors import UnknownInBody
from app.nearest import did_you_mean
from app.schemas.preflight import PreflightItemOut, PreflightOut, QuotaOut
from app.services.retirements import Names, load_sizes

FITS, MISSING, UNKNOWN, ERROR = "fits", "missing", "unknown", "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedVms:
    """VMs that a plan adds, and those of it that they take the place of."""

    size: str
    region: str
    count: int
    spot: bool
    id: str | None = None
    frees: "WantedVms | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCounted:
    """A line of a plan whose VMs cannot be counted, and why."""

    id: str | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A quota of a region, or of EVERYWHERE.

    `families` are how those of AWS's sizes that count towards it begin, of spot VMs or of others: `p4`, or `c` for c5.
    """

    provider: ProviderId
    region: str
    key: str
    name: str
    title: str
    limit: int | None
    used: int | None
    families: Sequence[str]
    spot: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a subscription may do with a size in a region."""

    family: str | None
    restriction: str | None
    closed_zones: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFiles:
    """What files say: quotas by provider and region, then by key; what is offered by key of the size and region.

    `regions` are those that the fields of the body name.
    """

    regions: Mapping[str, RegionCode]
    quotas: Mapping[tuple[str, str], Mapping[str, Quota]]
    offered: Mapping[tuple[str, str], Offered]


def quota_key(name: str) -> str:
    """Return what is equal in all spellings of a quota: Azure's lists of sizes and of usage write some differently."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


_UNBOUNDED = 10**12
"""What VMs of an unknown size may free."""
EVERYWHERE = "global"
"""In place of a region: quotas that Google Cloud has for all regions of a project together."""
_GPU_QUOTAS: Mapping[str, str] = {
    "a2-highgpu": "NVIDIA_A100_GPUS",
    "a2-megagpu": "NVIDIA_A100_GPUS",
    "a2-ultragpu": "NVIDIA_A100_80GB_GPUS",
    "a3-highgpu": "NVIDIA_H100_GPUS",
    "a3-megagpu": "NVIDIA_H100_MEGA_GPUS",
    "a3-ultragpu": "NVIDIA_H200_GPUS",
    "a4-highgpu": "NVIDIA_B200_GPUS",
    "a4x-highgpu": "NVIDIA_GB200_GPUS",
    "g2-standard": "NVIDIA_L4_GPUS",
    "nvidia-tesla-k80": "NVIDIA_K80_GPUS",
    "nvidia-tesla-p100": "NVIDIA_P100_GPUS",
    "nvidia-tesla-p4": "NVIDIA_P4_GPUS",
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
}
"""The metric of GPUs by machine type, or by the accelerator that is attached to an N1.

Most metrics are of Google's reference of `Quota.Metric` (Compute Engine API v1); those of H100 Mega, H200, B200 and
GB200 are read off published output of `gcloud compute regions describe`. Others, such as those of G4, are unknown.
"""


@dataclass(frozen=True, slots=True)
class _Charge:
    """What VMs need of a quota, at least and at most; None is unknown. `is_global` where it is one of EVERYWHERE."""

    name: str | None
    title: str
    least: int
    most: int | None
    unit: str = "vCPUs"
    is_global: bool = False

    def place(self, provider: str, region: str) -> tuple[str, str, str]:
        """Return whose quota it is: provider, region and key."""
        return provider, EVERYWHERE if self.is_global else region, quota_key(self.name or self.title)


@dataclass(slots=True)
class _Need:
    charge: _Charge
    sizes: dict[str, None] = field(default_factory=dict)
    least: int = 0
    most: int | None = 0

    def add(self, charge: _Charge, sign: int = 1) -> None:
        """Add what more VMs need, or take away what others free."""
        if sign > 0:
            self.least += charge.least
            self.most = None if self.most is None or charge.most is None else self.most + charge.most
        else:
            self.least -= _UNBOUNDED if charge.most is None else charge.most
            self.most = None if self.most is None else self.most - charge.least


def plan_preflight(catalog: Catalog, plan: Sequence[WantedVms | NotCounted], files: QuotaFiles) -> PreflightOut:
    """Check a plan; raises UnknownInBody for a region that there is not."""
    regions = catalog.snapshot.regions
    for field_name, region in files.regions.items():
        if region not in regions:
            hint = did_you_mean(suggest_regions(region, regions)) or "GET /regions lists them"
            raise UnknownInBody(field_name, f"there is no such region; {hint}", as_written(region))
    return _Preflight(catalog, files).check(plan)


class _Preflight:
    def __init__(self, catalog: Catalog, files: QuotaFiles) -> None:
        self._catalog, self._files = catalog, files
        self._names = Names.of(catalog, load_sizes(catalog))
        self._needs: dict[tuple[str, str, str], _Need] = {}
        self._quotas_of_aws: dict[str, dict[tuple[str, bool], dict[str, Quota]]] = {}
        self._listed = {region for _, region in files.offered}
        self._places: Mapping[str, set[str]] = {}

    def check(self, plan: Sequence[WantedVms | NotCounted]) -> PreflightOut:
        keys = [self._names.find_key(vms.size) if isinstance(vms, WantedVms) else None for vms in plan]
        self._places = _find_places(self._catalog, {key for key in keys if key is not None})
        for vms, key in zip(plan, keys, strict=True):
            if isinstance(vms, WantedVms) and key is not None and not self._names.errors(vms.size, key, vms.region):
                self._count(key, vms)
                freed = self._names.find_key(vms.frees.size) if vms.frees is not None else None
                if vms.frees is not None and freed is not None:
                    self._count(freed, vms.frees, sign=-1)
        items = [self._item(index, vms, key) for index, (vms, key) in enumerate(zip(plan, keys, strict=True))]
        quotas = [self._quota_out(place, need) for place, need in self._needs.items()]
        worst = (MISSING, UNKNOWN, FITS).index
        quotas.sort(key=lambda quota: (worst(quota.verdict), quota.provider, quota.region, quota.title))
        verdicts = {item.verdict for item in items} | {quota.verdict for quota in quotas}
        verdict = next((level for level in (ERROR, MISSING, UNKNOWN) if level in verdicts), FITS)
        return PreflightOut(verdict=verdict, quotas=quotas, items=items)

    def _count(self, key: str, vms: WantedVms, sign: int = 1) -> None:
        """Add what VMs need to the quotas of their region."""
        provider = self._names.sizes[key]["provider"]
        for charge in self._charges(key, vms.region, vms):
            need = self._needs.setdefault(charge.place(provider, str(vms.region)), _Need(charge))
            need.add(charge, sign)
            if sign > 0:
                need.sizes[self._names.sizes[key]["name"]] = None

    def _charges(self, key: str, region: str, vms: WantedVms) -> Iterator[_Charge]:
        """Yield what VMs of a size need of each quota in a region."""
        size = self._names.sizes[key]
        quotas = self._files.quotas.get((size["provider"], region), {})
        vcpus, parent = size["vcpus"], self._names.sizes.get(self._names.find_key(size["parent_size"] or "") or "")
        most = parent["vcpus"] if parent is not None else vcpus if size["parent_size"] is None else None
        of_vcpus = (vms.count * (vcpus or 0), vms.count * most if vcpus is not None and most is not None else None)
        if size["provider"] == "azure":
            for name, title in self._azure(key, region, spot=vms.spot):
                yield _Charge(name, title, *of_vcpus)
            yield _Charge("virtualMachines", "Virtual Machines", vms.count, vms.count, unit="VMs")
        elif size["provider"] == "aws":
            named = self._aws(size["family"] or "", region, spot=vms.spot)
            for quota in named:
                yield _Charge(quota.name, quota.title, *of_vcpus)
            if not named:
                yield _Charge(None, f"vCPUs of {size['family'] or size['name']} (no file has this quota)", *of_vcpus)
        elif size["provider"] == "gcp":
            yield from self._gcp(size, quotas, vms, of_vcpus)
        else:
            yield _Charge(None, f"quotas of {size['provider']} are not read", 0, None)

    def _aws(self, family: str, region: str, *, spot: bool) -> Sequence[Quota]:
        """Return the quotas of a family."""
        if (beginnings := self._quotas_of_aws.get(region)) is None:
            beginnings = self._quotas_of_aws[region] = defaultdict(dict)
            for quota in self._files.quotas.get(("aws", region), {}).values():
                for beginning in quota.families:
                    beginnings[beginning, quota.spot][quota.key] = quota
        named: dict[str, Quota] = {}
        for end in range(1, len(family) + 1):
            # `c` is of c5 and not of cr1, `p4` of p4d and not of p40.
            if family[end : end + 1].isdigit() is not family[end - 1].isdigit():
                named |= beginnings.get((family[:end], spot), {})
        return [*named.values()]

    def _azure(self, key: str, region: str, *, spot: bool) -> Iterator[tuple[str | None, str]]:
        """Yield the name and title of each quota of vCPUs: of spot VMs there is only that of the region."""
        if spot:
            yield "lowPriorityCores", "Total Regional Low-priority vCPUs"
            return
        yield "cores", "Total Regional vCPUs"
        offered = self._files.offered.get((key, region))
        family = self._names.sizes[key]["quota_family"] or (offered.family if offered is not None else None)
        yield family, family or f"family of {self._names.sizes[key]['name']}, which no source names"

    def _gcp(
        self, size: Mapping[str, Any], quotas: Mapping[str, Quota], vms: WantedVms, of_vcpus: tuple[int, int | None]
    ) -> Iterator[_Charge]:
        """Yield the quotas of Google Cloud: of vCPUs by the family of a size (N1 and E2 share CPUS), and of its GPUs.

        A project without quota of preemptible resources uses the standard one for them.
        """

        def spot_or(name: str) -> str:
            preemptible = quotas.get(quota_key(f"PREEMPTIBLE_{name}")) if vms.spot else None
            return preemptible.name if preemptible is not None and preemptible.limit else name

        family = str(size["family"] or "").upper()
        own = "CPUS" if family in ("N1", "E2", "F1", "G1") else f"{family}_CPUS"
        name = spot_or("CPUS")
        name = own if name == "CPUS" else name
        yield _Charge(name, name, *of_vcpus)
        everywhere = self._files.quotas.get((size["provider"], EVERYWHERE), {})
        if quota_key("CPUS_ALL_REGIONS") in everywhere:
            yield _Charge("CPUS_ALL_REGIONS", "CPUS_ALL_REGIONS", *of_vcpus, is_global=True)
        if size["gpu_count"] == 0:
            return
        metric = next((metric for part, metric in _GPU_QUOTAS.items() if part in size["name"]), None)
        gpus = vms.count * int(size["gpu_count"] or 0)
        of_gpus = (gpus, gpus if size["gpu_count"] is not None else None, "GPUs")
        if metric is None:
            yield _Charge(None, f"quota of the GPUs of {size['name']}, which no source names", *of_gpus)
        else:
            yield _Charge(spot_or(metric), spot_or(metric), *of_gpus)
        yield _Charge("GPUS_ALL_REGIONS", "GPUS_ALL_REGIONS", *of_gpus, is_global=True)

    def _quota_out(self, place: tuple[str, str, str], need: _Need) -> QuotaOut:
        provider, region, key = place
        quota = self._files.quotas.get((provider, region), {}).get(key) if need.charge.name is not None else None
        verdict = _verdict(quota, need.least, need.most)
        limit, used = (quota.limit, quota.used) if quota is not None else (None, None)
        missing, request, command = 0 if verdict == FITS else None, None, None
        if quota is not None and limit is not None and verdict == MISSING:
            needed = need.most if need.most is not None else need.least
            wanted = (used or 0) + needed
            missing = wanted - limit
            request, command = _request(quota, need, needed, wanted), _command(quota, wanted)
        return QuotaOut(
            provider=provider,
            region=region,
            quota=quota.name if quota is not None else need.charge.name,
            title=quota.title if quota is not None else need.charge.title,
            needed=need.most,
            needed_at_least=max(need.least, min(need.most or 0, 0)),
            used=used,
            limit=limit,
            missing=missing,
            verdict=verdict,
            sizes=[*need.sizes],
            request=request,
            command=command,
        )

    def _item(self, index: int, vms: WantedVms | NotCounted, key: str | None) -> PreflightItemOut:
        stop_if_cancelled()
        empty: dict[str, Any] = {"offered": None, "restriction": None, "closed_zones": [], "fits_in": []}
        if isinstance(vms, NotCounted):
            missing = dict.fromkeys(("size", "region", "count", "spot"))
            return PreflightItemOut(index=index, id=vms.id, **missing, **empty, verdict=UNKNOWN, details=[vms.detail])
        errors = [error.detail for error in self._names.errors(vms.size, key, vms.region)]
        sent = {"index": index, "id": vms.id, "count": vms.count, "spot": vms.spot}
        if key is None or errors:
            names = {"size": vms.size, "region": as_written(vms.region)}
            return PreflightItemOut(**sent, **names, **empty, verdict=ERROR, details=errors)
        region, size = str(vms.region), self._names.sizes[key]
        needs = [self._need_of(size["provider"], region, charge) for charge in self._charges(key, region, vms)]
        verdicts = {verdict for verdict, _ in needs}
        offered, restriction = self._is_offered(key, region), self._files.offered.get((key, region))
        details = [detail for verdict, detail in needs if verdict != FITS]
        why = restriction.restriction if restriction is not None else None
        if offered is None:
            details.append(f"no source lists {size['name']} in {region}")
            verdicts.add(UNKNOWN)
        if offered is False:
            details.append(f"the subscription may not use {size['name']} in {region}: {why or ''}")
            verdicts.add(MISSING)
        return PreflightItemOut(
            **sent,
            size=size["name"],
            region=region,
            verdict=next((level for level in (MISSING, UNKNOWN) if level in verdicts), FITS),
            offered=offered,
            restriction=why,
            closed_zones=list(restriction.closed_zones) if restriction is not None else [],
            fits_in=[*self._other_regions(key, vms)],
            details=details,
        )

    def _need_of(self, provider: str, region: str, charge: _Charge, *more: _Charge) -> tuple[str, str]:
        """Return the verdict of a quota with all that the plan needs of it, and with more, and what that means."""
        _, where, key = place = charge.place(provider, region)
        quota = self._files.quotas.get((provider, where), {}).get(key) if charge.name is not None else None
        total = replace(self._needs.get(place, _Need(charge)))
        for part in more:
            total.add(part)
        verdict = _verdict(quota, total.least, total.most)
        return verdict, f"{verdict}: {charge.title if quota is None else quota.title} in {where}"

    def _is_offered(self, key: str, region: str) -> bool | None:
        """Return whether a size is offered in a region, to the subscription if its list is given; None is unknown."""
        offered = self._files.offered.get((key, region))
        if offered is not None:
            return offered.restriction is None
        is_listed = region not in self._listed and region in self._places.get(key, ())
        return True if is_listed else None

    def _other_regions(self, key: str, vms: WantedVms) -> Iterator[str]:
        provider = self._names.sizes[key]["provider"]
        for seller, region in sorted(self._files.quotas):
            if seller == provider and region != vms.region and self._is_offered(key, region):
                charges = self._charges(key, region, vms)
                if all(self._need_of(provider, region, charge, charge)[0] == FITS for charge in charges):
                    yield region


def _verdict(quota: Quota | None, least: int, most: int | None) -> str:
    if quota is None or quota.limit is None:
        return UNKNOWN
    if most is not None and most <= 0:
        return FITS
    if least > 0 and (quota.used or 0) + least > quota.limit:
        return MISSING
    return FITS if most is not None and quota.used is not None and quota.used + most <= quota.limit else UNKNOWN


def _request(quota: Quota, need: _Need, needed: int, wanted: int) -> str:
    used = (
        f"{quota.used:,} {'is' if quota.used == 1 else 'are'} in use"
        if quota.used is not None
        else "it is not known how many are in use"
    )
    named = quota.title if quota.title == quota.name else f"{quota.title} ({quota.name})"
    return (
        f"Please raise the quota {named} in {quota.region} from {quota.limit:,} to {wanted:,}: "
        f"{', '.join(need.sizes)} will need {needed:,} {need.charge.unit} more, and {used}."
    )


def _command(quota: Quota, wanted: int) -> str | None:
    """Return the command by which the vendor is asked for a limit; Google is asked in its console."""
    if quota.provider == "aws":
        return (
            f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {quote(quota.name)} "
            f"--desired-value {wanted} --region {quote(quota.region)}"
        )
    if quota.provider == "azure" and quota.key != "virtualmachines":
        kind = "lowPriority" if quota.key == "lowprioritycores" else "dedicated"
        return (
            f"az quota update --resource-name {quote(quota.name)} --scope /subscriptions/$SUBSCRIPTION/providers/"
            f"Microsoft.Compute/locations/{quote(quota.region)} --limit-object value={wanted} "
            f"limit-object-type=LimitValue --resource-type {kind}"
        )
    return None


def _find_places(catalog: Catalog, keys: set[str]) -> Mapping[str, set[str]]:
    """Return the regions in which a source lists each size; of one that none lists anywhere those with a price."""
    places: dict[str, set[str]] = {}
    for table in ("availability", "offer"):
        listed = key_parameters(sorted(keys - places.keys()))
        for key, region in catalog.fetch(BoundStatement(_places_statement(table), listed)):
            places.setdefault(key, set()).add(region)
    return places


@cached_statement(2)
def _places_statement(sql: Dialect, table: str) -> str:
    return f"select distinct size_key, region from {table} where {sql.is_listed('size_key', KEYS)}"
