// A button with `data-copy` puts that text onto the clipboard, one with `data-copy-from` that of a URL, where the browser
// allows it, and says so.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  try {
    const { copy, copyFrom } = button.dataset;
    await navigator.clipboard.writeText(copy ?? (await (await fetch(copyFrom)).text()));
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
});
