"""Reads the files of a provider as the users of gpuhunt and of instances-api-client do, and prints what they get."""

import io
import json
import sys
import time
import urllib.request

from gpuhunt._internal.catalog import Catalog, ProviderCatalog
from gpuhunt._internal.storage import load
from instances_api_client import client as instances

url = sys.argv[1]

with urllib.request.urlopen(f"{url}/files/azure/gpuhunt.csv") as response:
    items = list(load(io.TextIOWrapper(response, encoding="utf-8"), provider="azure"))
catalog = Catalog(balance_resources=False, auto_reload=False)
catalog.catalog["azure"], catalog.loaded_at = ProviderCatalog(version="1", items=items), time.monotonic()
offers = catalog.query(provider="azure", min_gpu_memory=80, min_gpu_count=8, spot=False)
cheapest = min(offers, key=lambda offer: offer.price)

instances.GLOBAL_SERVICES_JSON_URLS["azure"] = f"{url}/files/azure/instances.json"
sizes = [size for page in instances.APIV1Client("").get_all_global_instances("azure") for size in page]

print(
    json.dumps(
        {
            "gpuhunt": {
                "rows": len(items),
                "cheapest": {"name": cheapest.instance_name, "region": cheapest.location, "usd": cheapest.price},
            },
            "instances": {
                size.instance_type: {
                    "vcpu": size.vcpu,
                    "memory": size.memory,
                    "gpu": size.gpu,
                    "linux": size.pricing.get("westeurope", {}).get("linux", {}).get("ondemand"),
                }
                for size in sizes
            },
        }
    )
)
