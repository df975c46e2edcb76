// Before the first paint: the theme that was chosen, so that the page does not flash in the other one.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system's theme it is.
}
document.documentElement.classList.add("js");
