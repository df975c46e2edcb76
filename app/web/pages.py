"""The pages, in the order of their routes."""

from app.web.serving import Page

PAGES: tuple[Page, ...] = (
    Page(path="/", module="search"),
    Page(path="/ui/sizes/{name}.md", module="size_markdown"),  # before the page of a size, whose path has any name
    Page(path="/ui/sizes/{name}", module="size_page"),
    Page(path="/ui/sizes/{name}/models", module="size_page", name="MODELS_PAGE"),
    Page(path="/ui/compare", module="compare"),
    Page(path="/ui/fit", module="fit", posts=True),
    Page(path="/ui/changes", module="changes"),
    Page(path="/ui/conflicts", module="conflicts"),
    Page(path="/ui/retirements", module="retirements"),
    Page(path="/ui/retirements/plan", module="retirement_plan", posts=True),
    Page(path="/ui/retirements/plan.csv", module="retirement_plan", name="CSV", posts=True),
    Page(path="/ui/explore", module="explore"),
)
