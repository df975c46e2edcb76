// Before the first paint: the theme that was chosen, so that the page does not flash in the other one, and the prices
// that were where somebody arrives without a question. A URL with one means the same to everybody.
try {
  const root = document.documentElement;
  root.classList.add("js");
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  const url = new URL(location.href);
  const names = (root.dataset.prices ?? "").split(" ");
  if (!url.search) {
    const chosen = JSON.parse(localStorage.getItem("prices")) ?? {};
    for (const name of names) if (chosen[name]) url.searchParams.set(name, chosen[name]);
    if (url.href !== location.href) location.replace(url);
  }
} catch {
  // Storage may be forbidden; the system's theme and prices in US dollars it is.
}
