// Commands to copy name the address at which the page was opened.
function fill(within) {
  const base = new URL(document.querySelector(".brand").getAttribute("href"), location.href).href.replace(/\/$/, "");
  for (const element of within.querySelectorAll("[data-origin]")) element.textContent = base;
}

fill(document);
document.addEventListener("swapped", () => fill(document));
