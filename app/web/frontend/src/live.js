// Forms and links with `data-swap` show their answer without a reload.
// A form with `data-live` is the state of its page: a link there is a change of what the form has now, whatever page it
// was written for; a new question replaces the one under way; and what is entered meanwhile stays.
const main = document.getElementById("main");
const status = document.getElementById("announcement");
const failure = document.getElementById("failure");
const withoutHash = (url) => url.split("#")[0];

let asked; // The question under way.
let current = withoutHash(location.href); // The URL of the newest question.
let shown = current; // The URL whose answer is on the screen.
const liveForm = () => main.querySelector("form[data-live][data-swap]");
let settled = liveForm() && urlOf(liveForm()).search; // What the form of that answer would send.

async function ask(url, { push = true, keeps = true } = {}) {
  if (asked && current === withoutHash(url)) return;
  asked?.abort();
  const question = (asked = new AbortController());
  if (push && withoutHash(url) !== current) history.pushState(null, "", url);
  current = withoutHash(url);
  failure.hidden = true;
  main.setAttribute("aria-busy", "true");
  status.textContent = "Waiting for the answer";
  const sent = keeps ? entries() : null;
  try {
    const response = await fetch(url, { signal: question.signal, headers: { accept: "text/html" } });
    if (response.status >= 500) throw new Error(response.statusText);
    if (new URL(response.url).pathname !== location.pathname) return location.assign(response.url); // Another page.
    const answer = new DOMParser().parseFromString(await response.text(), "text/html");
    await pointerReleased();
    if (asked !== question) return;
    current = shown = withoutHash(response.url);
    history.replaceState(null, "", response.url + new URL(url).hash);
    swap(answer, sent);
  } catch (error) {
    if (asked !== question) return;
    console.info(error);
    failure.hidden = false;
    status.textContent = "";
  }
  asked = undefined;
  main.removeAttribute("aria-busy");
}

// A swap between pressing and releasing a button would lose the click.
let pressed;
document.addEventListener("pointerdown", () => {
  let release;
  pressed = new Promise((resolve) => (release = resolve));
  for (const type of ["pointerup", "pointercancel", "dragend"]) document.addEventListener(type, () => setTimeout(release), { once: true });
});
const pointerReleased = () => pressed;

// What identifies an element in the page and in the answer.
function keyOf(element) {
  if (element.id) return `#${element.id}`;
  if (element.name) return `${element.name}=${element.value}`;
  return element.textContent;
}

const controls = (within) => within.querySelectorAll("input:not([type=hidden]), select, textarea");
const keyOfControl = (one) => (one.type === "checkbox" || one.type === "radio" ? `${one.name}=${one.value}` : one.name || one.dataset.sets);
const valueOf = (one) => (one.type === "checkbox" || one.type === "radio" ? one.checked : one.value);
const entries = () => new Map([...controls(main)].map((one) => [keyOfControl(one), valueOf(one)]));

function swap(answer, sent) {
  const fresh = answer.getElementById("main");
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  const focusKey = focused && keyOf(focused);
  const selection = focused?.type === "text" || focused?.type === "search" ? [focused.selectionStart, focused.selectionEnd] : null;
  const opened = new Map([...main.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const scrolled = [...main.querySelectorAll("[id]")].filter((one) => one.scrollTop || one.scrollLeft);
  const places = scrolled.map((one) => [one.id, one.scrollTop, one.scrollLeft]);
  const popovers = [...main.querySelectorAll("[id]:popover-open")].map((one) => one.id);
  const now = entries();
  if (sent) keepOrder(fresh);
  main.replaceChildren(...fresh.childNodes);
  document.title = answer.title;
  settled = liveForm() && urlOf(liveForm()).search;
  for (const one of sent ? controls(main) : []) {
    const key = keyOfControl(one);
    if (now.has(key) && now.get(key) !== sent.get(key)) one[typeof now.get(key) === "boolean" ? "checked" : "value"] = now.get(key);
  }
  for (const [id, open] of opened) {
    const one = document.getElementById(id);
    if (one && !one.querySelector(".error")) one.open = open;
  }
  for (const id of popovers) document.getElementById(id)?.showPopover?.();
  for (const [id, top, left] of places) document.getElementById(id)?.scrollTo(left, top);
  if (focused) {
    const same = [...main.querySelectorAll("a, button, input, select, textarea, summary")].find((one) => keyOf(one) === focusKey);
    (same ?? main).focus({ preventScroll: true });
    if (selection && same) same.setSelectionRange(...selection);
  }
  document.dispatchEvent(new Event("swapped"));
  status.textContent = main.querySelector("h1").textContent;
}

// Choices stay where they are, under the pointer, though their counts change; a family of GPUs keeps its kinds below it.
function keepOrder(fresh) {
  for (const list of fresh.querySelectorAll("[data-choices]")) {
    const before = [...(document.getElementById(list.id)?.querySelectorAll("input") ?? [])].map(keyOfControl);
    const place = (row) => before.indexOf(keyOfControl(row.querySelector("input"))) >>> 0; // New ones, with -1, are last.
    const families = [];
    for (const row of list.children) {
      if (row.matches(".below")) families.at(-1).push(row);
      else families.push([row]);
    }
    const first = (family) => Math.min(...family.map(place));
    for (const [head, ...kinds] of families.sort((one, other) => first(one) - first(other))) {
      list.append(head, ...kinds.sort((one, other) => place(one) - place(other)));
    }
  }
}

// The URL of a form's state, without empty values and defaults.
function urlOf(form) {
  const url = new URL(form.action);
  url.search = new URLSearchParams(new FormData(form));
  return url;
}

const listOf = (params, name) => (params.get(name) ?? "").toLowerCase().split(",");

// Changes the form as a link does that was written for the page that is shown.
function applyLink(form, target) {
  const was = new URL(shown).searchParams;
  const defaults = JSON.parse(form.dataset.defaults ?? "{}");
  for (const name of new Set([...was.keys(), ...target.keys()])) {
    if (was.get(name) === target.get(name)) continue;
    const [before, after] = [listOf(was, name), listOf(target, name)];
    for (const control of [...form.elements].filter((one) => one.name === name)) {
      if (control.type === "checkbox") {
        const value = control.value.toLowerCase();
        if (before.includes(value) !== after.includes(value)) control.checked = after.includes(value);
      } else {
        const wanted = target.get(name) ?? defaults[name] ?? "";
        control.value = wanted;
        if (control.options && control.value !== wanted) control.add(new Option(wanted, wanted, true, true));
      }
    }
  }
}

// The URL that a link leads to from what the form has now; a number of a page is that of the list that is shown alone.
function urlByLink(form, link) {
  const target = new URL(link.href);
  const isShown = !asked && urlOf(form).search === settled;
  applyLink(form, target.searchParams);
  const url = urlOf(form);
  for (const [name, value] of target.searchParams) {
    if (!form.elements[name] && (name !== "page" || isShown)) url.searchParams.set(name, value);
  }
  url.hash = target.hash;
  return url.href;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const form = liveForm();
  const isReset = link.dataset.swap === "reset" || !form;
  ask(isReset ? link.href : urlByLink(form, link), { keeps: !isReset });
  if (link.rel) main.querySelector("[data-results]").scrollIntoView();
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-swap]") || form.getAttribute("method") === "post") return;
  event.preventDefault();
  if (form.matches(":popover-open") && event.submitter) form.hidePopover();
  ask(urlOf(form).href);
});

// The filter in the head of a column sets fields of the form: a text, or bounds (`>=8`, `<64`, `8..64`, `8`).
function setFields(form, names, text) {
  const written = text.replaceAll(/[,\s]/g, "").replace("≥", ">").replace("≤", "<");
  const [first, second] = written.split(/\.\.|–/);
  const amount = first.replace(/^[<>]?=?/, "");
  const isLeast = written.startsWith(">") || !/^[\d.]/.test(amount);
  const bounds = second !== undefined ? [first, second] : [written.startsWith("<") ? "" : amount, isLeast ? "" : amount];
  names.forEach((name, index) => (form.elements[name].value = names.length === 1 ? text : bounds[index]));
}

// A form of filters sends itself when a value changes; text when it is left, or by Enter.
document.addEventListener("change", ({ target }) => {
  if (target.dataset.sets) setFields(target.form, target.dataset.sets.split(" "), target.value);
  if (target.form?.hasAttribute("data-live")) target.form.requestSubmit();
});

window.addEventListener("popstate", () => {
  if (withoutHash(location.href) === current) return;
  if (new URL(current).pathname === location.pathname) ask(location.href, { push: false, keeps: false });
  else location.reload();
});

const again = () => ask(location.href, { push: false });
failure.querySelector("button").addEventListener("click", again);
window.addEventListener("online", () => failure.hidden || again());

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  document.querySelector("input[name=q]")?.focus();
});
