// Forms send no empty values, no defaults and no file that was not chosen, as the server would only redirect to the URL
// without them. A file stands in the place of the text of the same name.
document.addEventListener("formdata", (event) => {
  const defaults = JSON.parse(event.target.dataset.defaults ?? "{}");
  const kept = [...event.formData].filter(([, value]) => value !== "" && value.size !== 0);
  const joined = new Map();
  for (const [name, value] of kept) joined.set(name, joined.has(name) && value.size === undefined ? `${joined.get(name)},${value}` : value);
  for (const name of new Set(event.formData.keys())) event.formData.delete(name);
  for (const [name, value] of joined) if (value !== defaults[name]) event.formData.set(name, value);
});
