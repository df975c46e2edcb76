"""The pages and their states: each row is checked by the tests of this folder and has screenshots.

To add a page is to add its rows here.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageState:
    """A state of a page that is worth a look: the name of its screenshots, its URL, the status of the response."""

    name: str
    url: str
    status: int = 200


PAGES = (
    PageState("search", "/"),
    PageState("search-filtered", "/?gpu=H100&region=westeurope,eastus&unit=month&currency=EUR&sort=usd_per_hour"),
    PageState("search-disputed", "/?disputed=true&limit=25"),
    PageState("search-columns", "/?gpu=A100&columns=vcpus,price,spot_usd_per_hour,reserved_3y_usd_per_hour,nvlink"),
    PageState("search-empty", "/?gpu=H100&min_vcpus=1000&region=westeurope"),
    PageState("search-invalid", "/?min_vcpus=lots&gpu=H1000", status=422),
    PageState("not-found", "/ui/nothing", status=404),
)
