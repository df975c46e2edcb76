// A field with `data-suggest` has suggestions while one types: the URL, which the text is put behind, answers with them.
// The browser shows the options of the field's list, and the keyboard chooses among them.
const PAUSE_MS = 120;
let timer;

document.addEventListener("input", ({ target }) => {
  if (!target.dataset.suggest) return;
  clearTimeout(timer);
  const text = target.value;
  if (text.trim()) timer = setTimeout(() => fill(target, text), PAUSE_MS);
});

async function fill(field, text) {
  const comma = field.name === "add" ? text.lastIndexOf(",") + 1 : 0; // Of several names the last is typed.
  const response = await fetch(field.dataset.suggest + encodeURIComponent(text.slice(comma).trimStart()));
  if (!response.ok || field.value !== text) return;
  const found = await response.json();
  field.list.replaceChildren(...found.map(({ value, label }) => new Option(label, text.slice(0, comma) + value)));
}
