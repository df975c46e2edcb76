"""`python -m tests.browser [NAME ...]`: screenshots of every page, light and dark, on phone and desktop.

They are written to build/screenshots. Names, or beginnings of names, choose pages.
"""

import sys

from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.browser.conftest import VIEWPORTS, launch
from tests.browser.pages import PAGES
from tests.conftest import TODAY
from tests.seeded import seeded_sqlite_url
from tests.servers import server

FOLDER = PROJECT / "build" / "screenshots"
THEMES = ("light", "dark")


def main(names: list[str]) -> None:
    """Write the screenshots."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_sqlite_url()), today=lambda: TODAY)
    chosen = [state for state in PAGES if not names or state.name.startswith(tuple(names))]
    with server(service) as url, launch() as browser:
        for theme in THEMES:
            for device, viewport in VIEWPORTS.items():
                context = browser.new_context(color_scheme=theme, viewport=viewport)  # type: ignore[arg-type]
                page = context.new_page()
                for state in chosen:
                    page.goto(f"{url}{state.url}", wait_until="networkidle")
                    page.screenshot(path=FOLDER / f"{state.name}-{device}-{theme}.png")
                context.close()
    print(f"{len(chosen) * 4} screenshots in {FOLDER}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
