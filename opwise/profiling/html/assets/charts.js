// Charts: made when they come into sight, made anew in the other colours, as wide as their element.

const FONT = "system-ui, sans-serif";

/**
 * Keep a chart in an element. option: a function that returns what ECharts is to draw; click: called
 * with what was clicked. Returns {update, chart}.
 */
function keepChart(host, option, click) {
  let chart = null;
  const kept = {
    get chart() {
      return chart;
    },
    update() {
      if (!chart) return;
      chart.clear(); // or custom series keep parts of what they drew before
      chart.setOption({ ...base(), ...option() }, { notMerge: true });
    },
  };
  const start = () => {
    if (chart) return;
    chart = echarts.init(host);
    if (click) chart.on("click", click);
    kept.update();
  };
  new IntersectionObserver((entries, observer) => {
    if (entries.some((entry) => entry.isIntersecting)) {
      observer.disconnect();
      start();
    }
  }, { rootMargin: "300px" }).observe(host);
  // On paper all is in sight.
  window.addEventListener("beforeprint", () => host.clientWidth && start());
  new ResizeObserver(() => {
    if (chart && host.clientWidth) {
      chart.resize();
      kept.update();
    }
  }).observe(host);
  onColors(() => kept.update());
  return kept;
}

/**
 * A text as ECharts may have it. It keeps the widths of texts in a plain object: one that is called
 * as what every object has, `__proto__` or `constructor`, would change all objects of the page.
 */
const drawn = (label) => (label in {} ? `\u200b${label}` : label);

function base() {
  return {
    animation: false, textStyle: { fontFamily: FONT, color: color("ink") },
    aria: { enabled: false },
  };
}

function tooltip(node, more = {}) {
  return {
    backgroundColor: color("panel"), borderColor: color("line"), padding: 10, confine: true,
    textStyle: { color: color("ink"), fontSize: 12, fontFamily: FONT },
    // A node, not a text: what is in a profile is never read as HTML.
    formatter: (found) => node(found) ?? el("span"), ...more,
  };
}

const tipBody = (title, pairs) =>
  el("div", { class: "chart-tip" }, el("code", {}, cut(title, 220)), facts(pairs));

function axis(more = {}) {
  return {
    axisLine: { lineStyle: { color: color("line") } }, axisTick: { show: false },
    axisLabel: { color: color("soft"), fontSize: 11, hideOverlap: true, ...(more.axisLabel ?? {}) },
    splitLine: { lineStyle: { color: color("line"), opacity: 0.6 } },
    nameTextStyle: { color: color("soft"), fontSize: 11 },
    ...Object.fromEntries(Object.entries(more).filter(([name]) => name !== "axisLabel")),
  };
}

/** A box from one place to another on two axes, with its text cut to fit; for custom series. */
function boxItem(api, [x1, x2, row], height, style, label) {
  const [left, top] = api.coord([x1, row]);
  const right = api.coord([x2, row])[0];
  const w = Math.max(right - left, 0.6);
  return {
    type: "rect",
    shape: { x: left, y: top - height / 2, width: w > 3 ? w - 1 : w, height: height - 1, r: w > 6 ? 2 : 0 },
    style,
    // ECharts draws a box anew with what it finds here, and keeps the text of a box without any.
    textContent: {
      ignore: w <= 40 || !label,
      style: {
        text: drawn(label), fill: style.ink, fontSize: 11, fontFamily: FONT, overflow: "truncate",
        width: Math.max(w - 9, 1), ellipsis: "…", lineHeight: 14,
      },
    },
    textConfig: { position: "insideLeft", distance: 5, inside: true },
    emphasis: { style: { stroke: color("ink"), lineWidth: 1 } },
  };
}
