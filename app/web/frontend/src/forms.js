// Forms send no empty values and no defaults, as the server would only redirect to the URL without them.
document.addEventListener("formdata", (event) => {
  const defaults = JSON.parse(event.target.dataset.defaults ?? "{}");
  const kept = [...event.formData].filter(([, value]) => value !== "");
  const joined = new Map();
  for (const [name, value] of kept) joined.set(name, joined.has(name) ? `${joined.get(name)},${value}` : value);
  for (const name of new Set(event.formData.keys())) event.formData.delete(name);
  for (const [name, value] of joined) if (value !== defaults[name]) event.formData.set(name, value);
});

// A form of filters sends itself when a value changes; text when it is left, or by Enter.
let waiting;
document.addEventListener("change", ({ target }) => {
  const form = target.form;
  if (!form?.hasAttribute("data-live")) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => form.requestSubmit(), 150);
});
document.addEventListener("submit", () => clearTimeout(waiting), { capture: true });
