// Points of a plot say at once what they are: under the pointer, with the focus, and at the first touch; a second one
// follows the link.
const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("aria-hidden", "true"); // What it says is the label of the link.
document.body.append(tip);
const pointOf = ({ target }) => target.closest?.(".points :is(a, [data-tip])") ?? null;
let shown = null;
let touched = false;

function show(point) {
  shown = point;
  tip.hidden = !point;
  if (!point) return;
  point.querySelector("title")?.remove(); // The browser's own tooltip comes late, and not at all on a phone.
  tip.textContent = point.dataset.tip ?? point.getAttribute("aria-label");
  const place = point.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(place.left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${place.top > tip.offsetHeight + 8 ? place.top - tip.offsetHeight - 6 : place.bottom + 6}px`;
}

show(null);
document.addEventListener("pointerover", (event) => {
  touched = event.pointerType === "touch" && pointOf(event) !== shown;
  show(pointOf(event));
});
document.addEventListener("focusin", (event) => show(pointOf(event)));
document.addEventListener("click", (event) => {
  if (!touched || !pointOf(event)) return; // a point without a link has nothing to follow
  event.preventDefault();
  touched = false;
});
document.addEventListener("scroll", () => show(null), true);
document.addEventListener("swapped", () => show(null));
