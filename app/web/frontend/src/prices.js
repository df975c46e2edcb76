// The prices that were chosen last are those of every page, also tomorrow; theme.js puts them into a URL without any.
// Regions that were chosen are first in the list of regions.
const KEY = "prices";
const MOST = 5;
const names = () => (document.documentElement.dataset.prices ?? "").split(" ").filter(Boolean);

function remember() {
  if (document.querySelector("#main .error")) return;
  const params = new URL(location.href).searchParams;
  try {
    const chosen = JSON.parse(localStorage.getItem(KEY)) ?? {};
    for (const name of names()) chosen[name] = params.get(name) ?? undefined;
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
