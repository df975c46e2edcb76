// The prices that were chosen last are kept, also for tomorrow; theme.js puts them into a URL without a query.
// Regions that were chosen are first in the list of regions.
const KEY = "prices";
const MOST = 5;
const names = () => (document.documentElement.dataset.prices ?? "").split(" ").filter(Boolean);

let shown = new URL(location.href).searchParams;

// What a link brought is no choice: only what changes on the page is.
function remember() {
  if (document.querySelector("#main .error")) return;
  const params = new URL(location.href).searchParams;
  const changed = names().filter((name) => params.get(name) !== shown.get(name));
  shown = params;
  try {
    const chosen = JSON.parse(localStorage.getItem(KEY)) ?? {};
    for (const name of changed) chosen[name] = params.get(name) ?? undefined;
    chosen.regions = [...new Set([...(chosen.region ?? "").split(","), ...(chosen.regions ?? [])])].filter(Boolean).slice(0, MOST);
    localStorage.setItem(KEY, JSON.stringify(chosen));
  } catch {
    // Storage may be forbidden; they are those of this page, then.
  }
}

function sortRegions() {
  try {
    const list = document.getElementById("regions");
    const { regions = [] } = JSON.parse(localStorage.getItem(KEY)) ?? {};
    list?.prepend(...regions.flatMap((code) => [...list.options].filter((option) => option.value === code)));
  } catch {
    // In the order of names, then.
  }
}

sortRegions();
document.addEventListener("swapped", () => {
  remember();
  sortRegions();
});
