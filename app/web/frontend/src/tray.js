// The sizes to compare, which stay while one searches and goes from page to page, as long as the tab is open.
const KEY = "compared";
const MOST = 8;
const tray = document.getElementById("tray");
let names = [];
try {
  names = JSON.parse(sessionStorage.getItem(KEY)) ?? [];
} catch {
  // Storage may be forbidden; they are kept on this page, then.
}

function choose(name, wanted) {
  names = wanted ? [...new Set([...names, name])].slice(0, MOST) : names.filter((one) => one !== name);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(names));
  } catch {
    // Not kept, then.
  }
  show();
}

function chip(name) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "chip mono";
  button.textContent = name.replace(/^Standard_/, "");
  button.setAttribute("aria-label", `Do not compare ${name}`);
  button.addEventListener("click", () => {
    choose(name, false);
    (tray.querySelector(".chip") ?? document.getElementById("main")).focus();
  });
  item.append(button);
  return item;
}

function show() {
  for (const check of document.querySelectorAll("[data-compared]")) {
    check.checked = names.includes(check.value);
    check.disabled = names.length === MOST && !check.checked;
  }
  tray.hidden = !names.length;
  tray.querySelector("ul").replaceChildren(...names.map(chip));
  tray.elements.name.value = names.join(",");
  const button = tray.querySelector("[type=submit]");
  button.textContent = names.length < 2 ? "Check another to compare" : `Compare ${names.length}`;
  button.disabled = names.length < 2;
}

// They are compared by the prices of this page.
document.addEventListener("formdata", ({ target, formData }) => {
  const params = new URL(location.href).searchParams;
  const carried = target === tray ? (tray.dataset.carried ?? "").split(" ") : [];
  for (const name of carried) if (params.get(name)) formData.set(name, params.get(name));
});

document.addEventListener("change", ({ target }) => {
  if (target.hasAttribute("data-compared")) choose(target.value, target.checked);
});
document.addEventListener("swapped", show);
window.addEventListener("pageshow", show);
