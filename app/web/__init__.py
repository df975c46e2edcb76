"""Pages for browsers: search, sizes, comparisons, fit. Complete without JavaScript; the URL is the state.

To add a page:

1. A module here with its parameter model (a `QueryParams`; the URL's query), an `async def render(request)` that runs
   the same functions as the API by `request.executor` and returns `render_page(request, "NAME.html", …)`, and
   `PAGE = PageContent(params=…, render=render)`. List it with its path in `PAGES` in `app.web.serving`; the
   navigation is `_NAVIGATION` in `app.web.rendering`.
2. `templates/NAME.html`, which extends `base.html` and uses the macros of `components.html` (table cells, prices, ages,
   badges, chips, sources, form fields, empty state); filters for numbers and money are in `app.web.rendering`.
3. `static/css/NAME.css` only for what the components lack; colours, spaces and sizes are the tokens of `tokens.css`.
   A script is a module in `frontend/src`, imported by `app.js`; the page must be complete without it.
4. A row in `PAGES` of `tests/browser/pages.py`: each state of the page that is worth a look. It is then checked by axe
   in both themes, on phone and desktop, with and without JavaScript, for errors of the console, and has screenshots.
5. `make check`, `make assets screenshots`, and look at build/screenshots.

Parsing, errors at the field that caused them, clean URLs, caching, ETags and security headers come by themselves.
"""
