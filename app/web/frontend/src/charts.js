// Loads the chart library when a chart comes into view, and only on pages that have one.
const watcher = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    import(new URL(target.dataset.chartScript, location.href).href);
  }
});

function watch() {
  for (const element of document.querySelectorAll("[data-chart-script$='.js']")) if (!element.dataset.drawn) watcher.observe(element);
}

watch();
document.addEventListener("swapped", watch);
