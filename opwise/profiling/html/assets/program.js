// The whole program: a time line of its calls, with those of compiled functions, and its lines.

const P = D.program;
const PROGRAM_ROW = 21;

/** Name a line or a library of the program. */
function placeName(name, line) {
  return line < 0 ? text(name) : `${lineText(line)} ${text(name)}`.trim();
}

function boxStyle(called, ns, line) {
  // A line that is mostly in functions has their colour.
  const name = line < 0 ? "flame-scope" : called > ns / 2 ? "flame-op" : "flame-line";
  return { fill: color(name), ink: color("flame-ink") };
}

const programChart = keepChart(byId("program-chart"), () => {
  const depth = P.boxes.reduce((most, box) => Math.max(most, box[0]), 0) + 1;
  const top = P.calls.length ? 1 : 0;
  return {
    grid: { left: 8, right: 8, top: 4, bottom: 26 },
    xAxis: axis({ type: "value", min: 0, max: P.ns, axisLine: { onZero: false, lineStyle: { color: color("line") } }, axisLabel: { formatter: (v) => time(v), showMaxLabel: false }, splitLine: { show: false } }),
    yAxis: { type: "value", min: -0.5, max: depth + top - 0.5, inverse: true, show: false },
    tooltip: tooltip(({ dataIndex, seriesIndex }) => {
      if (seriesIndex === 1) {
        const [f, from, ns, number] = P.calls[dataIndex];
        return tipBody(`call ${whole(number)} of ${FUNCTIONS[f].label}`, [["time in Applys", time(ns)], ["at", time(from)]]);
      }
      const [, from, ns, called, name, line] = P.boxes[dataIndex];
      return tipBody(line < 0 ? text(name) : lineSource(line) || placeName(name, line), [
        line < 0 ? null : ["line", `${lineText(line)} ${text(name)}`],
        ["time", time(ns)], ["of the program", percent(ns / P.ns)],
        called ? ["in calls of functions", percent(called / ns)] : null, ["at", time(from)]]);
    }),
    series: [{
      type: "custom", clip: true, data: P.boxes.map(([row, from, ns]) => [from, from + ns, row + top]),
      encode: { x: [0, 1], y: 2 },
      renderItem: (params, api) => {
        const [row, from, ns, called, name, line] = P.boxes[params.dataIndex];
        const label = line < 0 ? text(name) : `${placeName(name, line)}  ${lineSource(line)}`;
        return boxItem(api, [from, from + ns, row + top], PROGRAM_ROW, boxStyle(called, ns, line), label);
      },
    }, {
      type: "custom", clip: true, data: P.calls.map(([, from, ns]) => [from, from + ns, 0]),
      encode: { x: [0, 1], y: 2 },
      renderItem: (params, api) => {
        const [f, from, ns] = P.calls[params.dataIndex];
        return boxItem(api, [from, from + ns, 0], PROGRAM_ROW, { fill: series(f), ink: "#fff" }, FUNCTIONS[f].label);
      },
    }],
  };
});

function showProgram() {
  if (!P) return;
  byId("program").hidden = false;
  document.querySelector('nav a[href="#program"]').hidden = false;
  byId("program-note").textContent = `where its main thread was, looked at every ${time(P.period)}`;
  const depth = P.boxes.reduce((most, box) => Math.max(most, box[0]), 0) + 1;
  byId("program-chart").hidden = !P.boxes.length;
  byId("program-chart").style.height = `${(depth + (P.calls.length ? 1 : 0)) * PROGRAM_ROW + 30}px`;
  byId("program-legend").replaceChildren(
    ...(P.calls.length ? [el("span", {}, el("i", { class: "dot s1" }), "above: the first and the slowest calls of functions")] : []),
    ...[["line", "line"], ["line that is mostly in calls of functions", "op"], ["library", "scope"]]
      .map(([name, kind]) => el("span", {}, el("i", { class: `dot f-${kind}` }), name)),
    P.before ? el("span", { class: "soft" }, `Before it Python started, in ${time(P.before)}.`) : "");
  byId("program-rows").replaceChildren(el("table", { class: "plain program-rows" },
    el("tr", {}, ...["time", "share", "in functions", "line, above those it called"].map((title) => el("th", {}, title))),
    ...P.rows.map(([level, ns, called, name, line]) => el("tr", {},
      el("td", {}, figureNode(ns, TIMES)), el("td", {}, percent(ns / P.ns)),
      el("td", {}, called ? percent(called / ns) : ""),
      el("td", { title: line < 0 ? "" : `${linePath(line)}\n${lineSource(line)}`, style: { "padding-left": `${Math.min(level, 12) * 14}px` } },
        el("span", { class: "place" }, placeName(name, line)), " ", line < 0 ? null : code(lineSource(line))))),
    P.more ? el("tr", {}, el("td", { class: "soft" }, `and ${plural(P.more, "more line")}`)) : null));
  programChart.update();
}
