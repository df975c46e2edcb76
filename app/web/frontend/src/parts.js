// Loads a part of another page when its place comes into view: `data-part` is the URL, its hash the part.
const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    fill(target);
  }
});

async function fill(place) {
  const url = new URL(place.dataset.part, location.href);
  const response = await fetch(url, { headers: { accept: "text/html" } });
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  place.replaceChildren(...page.querySelector(url.hash).childNodes);
}

for (const place of document.querySelectorAll("[data-part]")) watcher.observe(place);
