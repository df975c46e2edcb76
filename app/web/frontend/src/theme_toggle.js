// The button that goes through the system's theme, light and dark, and remembers it.
const THEMES = ["system", "light", "dark"];
const root = document.documentElement;

function show(button) {
  button.hidden = false;
  button.querySelector("[data-theme-name]").textContent = root.dataset.theme ?? "system";
}

for (const button of document.querySelectorAll("[data-theme-toggle]")) {
  show(button);
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "system") + 1) % THEMES.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("theme", next);
    } catch {
      // Not remembered, then.
    }
    show(button);
    window.dispatchEvent(new Event("themechange"));
  });
}
