// Forms send no empty values and no defaults, as the server would only redirect to the URL without them.
document.addEventListener("formdata", (event) => {
  const defaults = JSON.parse(event.target.dataset.defaults ?? "{}");
  const kept = [...event.formData].filter(([, value]) => value !== "");
  const joined = new Map();
  for (const [name, value] of kept) joined.set(name, joined.has(name) ? `${joined.get(name)},${value}` : value);
  for (const name of new Set(event.formData.keys())) event.formData.delete(name);
  for (const [name, value] of joined) if (value !== defaults[name]) event.formData.set(name, value);
});
