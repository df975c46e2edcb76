// Charts, as SVG with a description; loaded only by pages that have one.
// An element with `data-chart="ID"` is filled from the option that is the JSON text of the element with that id.
import * as echarts from "echarts/core";
import { BarChart, LineChart, ScatterChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, MarkPointComponent, TooltipComponent } from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

echarts.use([BarChart, LineChart, ScatterChart, AriaComponent, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, MarkPointComponent, TooltipComponent, SVGRenderer]);

const drawn = new Map();

// The tokens of the theme that is shown; light-dark() is resolved by the browser in a probe.
function tokens() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: read("text"), muted: read("muted"), line: read("line"), surface: read("surface"), accent: read("accent"),
    series: [1, 2, 3, 4, 5].map((number) => read(`series-${number}`)),
  };
  probe.remove();
  return found;
}

function themed(option) {
  const { text, muted, line, surface, series } = tokens();
  const axis = {
    axisLine: { lineStyle: { color: muted } }, axisLabel: { color: muted }, nameTextStyle: { color: muted },
    splitLine: { lineStyle: { color: line } }, minorSplitLine: { lineStyle: { color: line, opacity: 0.4 } },
  };
  const font = getComputedStyle(document.body).fontFamily;
  return [
    { color: series, backgroundColor: "transparent", textStyle: { fontFamily: font, color: text }, categoryAxis: axis, valueAxis: axis, logAxis: axis, timeAxis: axis, legend: { textStyle: { color: text } } },
    {
      animation: false, aria: { enabled: true }, ...option,
      tooltip: {
        backgroundColor: surface, borderColor: line, textStyle: { color: text }, confine: true,
        valueFormatter: (value) => `${Number(value.toPrecision(5))} ${option.yAxis.name}`, ...option.tooltip,
      },
    },
  ];
}

function draw(element) {
  const source = document.getElementById(element.dataset.chart);
  if (!source) return;
  drawn.get(element)?.dispose();
  const [theme, option] = themed(JSON.parse(source.textContent));
  const chart = echarts.init(element, theme, { renderer: "svg" });
  chart.setOption(option);
  chart.on("click", ({ data }) => {
    if (data?.href) location.href = data.href;
  });
  drawn.set(element, chart);
  element.dataset.drawn = "true";
}

function drawAll() {
  for (const element of document.querySelectorAll("[data-chart]")) draw(element);
}

drawAll();
window.addEventListener("themechange", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
document.addEventListener("swapped", drawAll);
new ResizeObserver(() => drawn.forEach((chart) => chart.resize())).observe(document.body);
