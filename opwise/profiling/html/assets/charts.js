// Charts: drawn when they come into view, redrawn in other colours and when their element is resized.

const FONT = "system-ui, sans-serif";

/**
 * Keep a chart in an element. option: a function that returns the option of ECharts; click: called
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
      chart.clear(); // or custom series keep parts of their last drawing
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
  // On paper everything is in view.
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
 * A text that is safe for ECharts, which keeps the widths of texts in a plain object: a text such as
 * `__proto__` or `constructor` would change all objects of the page.
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

/** A box between two points on a row, with its text cut to fit; for custom series. */
function boxItem(api, [x1, x2, row], height, style, label) {
  const [left, top] = api.coord([x1, row]);
  const right = api.coord([x2, row])[0];
  const w = Math.max(right - left, 0.6);
  return {
    type: "rect",
    shape: { x: left, y: top - height / 2, width: w > 3 ? w - 1 : w, height: height - 1, r: w > 6 ? 2 : 0 },
    style,
    // ECharts reuses a box: without a text here, it would keep its old one.
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
