// The page of a difference: figures of both sides, the largest differences, and all rows.

const TABLES = D.tables.map(([name, columns]) => ({
  name: text(name),
  rows: columns.before_ns.map((before, id) => ({
    id, before, after: columns.after_ns[id], difference: columns.difference_ns[id],
    ratio: columns.ratio[id], p: columns.p[id], relation: D.relations[columns.relation[id]],
    verdict: D.verdicts[columns.verdict[id]], first: text(columns.label_before[id]),
    second: text(columns.label_after[id]), lines: columns.lines[id].map(text),
    label: text(columns.label_before[id]) || text(columns.label_after[id]),
    search: () => ({
      [text(name).toLowerCase()]: [text(columns.label_before[id]), text(columns.label_after[id])],
      line: [...columns.lines[id].map((place) => `${text(place)} ${SOURCES.get(text(place)) ?? ""}`),
        text(name) === "Line" ? [columns.label_before[id], columns.label_after[id]].map(text).join("\n") : ""],
      relation: D.relations[columns.relation[id]], verdict: D.verdicts[columns.verdict[id]],
    }),
  })),
}));
const SOURCES = new Map(D.sources.map(([place, source]) => [text(place), text(source)]));

const signed = (ns) => (known(ns) ? `${ns > 0 ? "+" : ns < 0 ? "−" : ""}${time(Math.abs(ns))}` : "–");
const times = (ratio) => (known(ratio) ? `${digits(ratio)}\u202f×` : "–");
const side = (ns) => (ns > 0 ? "is-slower" : "is-faster");

/** What was compared: a table of both sides, with differences highlighted. */
function showCompared() {
  byId("compared").append(el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, el("th", {}), el("th", {}, "before"), el("th", {}, "after"))),
    el("tbody", {}, ...D.compared.map((row) => row.map(text)).map(([what, before, after]) =>
      el("tr", { class: before === after ? "" : "differs" }, el("th", { scope: "row" }, what),
        el("td", {}, before || "–"), el("td", {}, after || "–"))))));
}

// --- cards ----------------------------------------------------------------------------------------

function pair(label, before, after, units, note) {
  const ratio = known(before) && known(after) && before ? after / before : null;
  const isEqual = ratio !== null && Math.abs(ratio - 1) < 0.005;
  return el("article", { class: "card pair" }, el("h2", {}, label),
    el("p", { class: "value" }, figureNode(before, units), el("span", { class: "arrow" }, "→"), figureNode(after, units)),
    el("p", { class: "note" }, ratio === null ? "" : isEqual ? "the same"
      : el("b", { class: ratio > 1 ? "is-slower" : "is-faster" }, times(ratio)), note ? ` ${note}` : ""));
}

/** What compiling a profile's functions took from the cache. */
function compiledHow(one) {
  if (!one.cached.every((kernels) => kernels === true)) return "compiled";
  return one.graphs_cached.some((graph) => graph === false) ? "rewritten, kernels cached" : "cached";
}

function showCards() {
  const { before, after } = D;
  byId("cards").append(...[
    pair("A call", before.each_ns, after.each_ns, TIMES, `over ${whole(before.calls)} and ${plural(after.calls, "call")}`),
    pair("Time in calls", before.call_ns, after.call_ns, TIMES),
    pair("Time in Applys", before.thunk_ns, after.thunk_ns, TIMES),
    before.python_ns || after.python_ns ? pair("In Python", before.python_ns, after.python_ns, TIMES) : null,
    known(before.peak) || known(after.peak) ? pair("Peak memory", before.peak, after.peak, SIZES) : null,
    pair("Compilation", before.compile_ns, after.compile_ns, TIMES,
      [before, after].map(compiledHow).join(" → ")),
    pair("Applys", before.applys, after.applys, COUNTS),
  ].filter(Boolean));
}

// --- the largest ----------------------------------------------------------------------------------

const MOST = 12;
const current = { table: null, rows: null };

const largest = () => [...current.table.rows].filter((row) => row.difference)
  .sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference)).slice(0, MOST);

const largestChart = keepChart(byId("largest-chart"), () => {
  const rows = largest();
  const most = Math.max(...rows.map((row) => Math.abs(row.difference)), 1);
  const room = byId("largest-chart").clientWidth;
  const wide = Math.min(420, room * 0.4);
  const end = most * (room < 500 ? 1.9 : 1.18); // room for the figure beside a bar
  return {
    grid: { left: wide + 12, right: 20, top: 4, bottom: 26 },
    xAxis: axis({ type: "value", min: -end, max: end, axisLabel: { formatter: signed, hideOverlap: true, showMinLabel: false, showMaxLabel: false } }),
    yAxis: axis({
      type: "category", inverse: true, data: rows.map((row) => row.id),
      axisLine: { show: false },
      axisLabel: { interval: 0, width: wide, overflow: "truncate", color: color("ink"), formatter: (id) => drawn(shortOp(current.table.rows[id].label)) },
      splitLine: { show: false },
    }),
    tooltip: tooltip(({ dataIndex }) => {
      const row = rows[dataIndex];
      return tipBody(row.label, [["before", time(row.before)], ["after", time(row.after)], ["difference", signed(row.difference)],
        known(row.ratio) ? ["ratio", times(row.ratio)] : null, row.relation ? ["relation", row.relation] : null, row.verdict ? ["verdict", row.verdict] : null]);
    }),
    series: [{
      type: "bar", barMaxWidth: 16,
      data: rows.map((row) => ({
        value: row.difference,
        itemStyle: { color: color(row.difference > 0 ? "slower" : "faster"), opacity: row.verdict === "noise" ? 0.35 : 1, borderRadius: 2 },
        label: { show: true, position: row.difference > 0 ? "right" : "left", formatter: () => signed(row.difference), color: color("soft"), fontSize: 11 },
      })),
    }],
  };
}, ({ dataIndex }) => choose(largest()[dataIndex]));

// --- tables ---------------------------------------------------------------------------------------

/** A bar from the middle: to the right if it takes longer after than before. */
function diverging(ns, most, isNoise) {
  const share = 50 * Math.min(Math.abs(ns) / most, 1);
  return el("span", { class: `diverging ${isNoise ? "is-noise" : ""}` },
    el("i", { class: `bar-fill ${side(ns)}`, style: { left: `${ns > 0 ? 50 : 50 - share}%`, width: `${share}%` } }),
    el("span", { class: "figure" }, signed(ns)));
}

const KINDS = { slower: "is-slower", faster: "is-faster", noise: "" };
const chip = (label, kind) => (label ? el("span", { class: `chip ${kind ?? ""}` }, label) : el("span"));

function labels(row) {
  if (row.first && row.second && row.first !== row.second) {
    return el("span", { title: `${row.first}\n→ ${row.second}` }, el("code", {}, row.first), el("span", { class: "soft" }, " → "), el("code", {}, row.second));
  }
  return el("code", { title: row.label }, row.label);
}

function differenceTable({ name, rows }) {
  const most = rows.reduce((m, row) => Math.max(m, Math.abs(row.difference)), 1);
  for (const row of rows) {
    row.weight = Math.abs(row.difference);
    row.line = row.lines[0] ?? "";
  }
  const some = (field) => rows.some((row) => known(row[field]) || (typeof row[field] === "string" && row[field]));
  return {
    name, rows, sort: "weight", choose,
    columns: [
      numeric("weight", "difference", "after less before; sorted by size", (v, row) => diverging(row.difference, most, row.verdict === "noise"), { width: 150 }),
      numeric("ratio", "ratio", "time after by time before", (v) => el("span", {}, known(v) ? times(v) : ""), { width: 78 }),
      some("line") ? textual("line", "line", "where it was written", (v) => el("span", { class: "line-cell", title: `${v}\n${SOURCES.get(v) ?? ""}` }, el("span", { class: "place" }, baseName(v)), " ", el("code", {}, SOURCES.get(v) ?? "")), { width: 230 }) : null,
      textual("label", name.toLowerCase(), "what it is, before and after", (v, row) => labels(row), some("line") ? { width: 240 } : { minWidth: 260, widthGrow: 3 }),
      some("verdict") ? textual("verdict", "verdict", "whether the difference is more than noise", (v) => chip(v, KINDS[v]), { width: 84 }) : null,
      some("relation") ? textual("relation", "relation", "how the Applys of the two sides match", (v) => chip(v, "is-scope"), { width: 112 }) : null,
      numeric("before", "before", "time in all calls, before; with several runs the median of a call", timeNode, { width: 92 }),
      numeric("after", "after", "time in all calls, after; with several runs the median of a call", timeNode, { width: 92 }),
      some("p") ? numeric("p", "p", "probability of so large a difference by chance: Mann-Whitney test on the runs, corrected for the number of rows", (v) => el("span", {}, known(v) ? (v < 0.001 ? "<0.001" : v.toFixed(3)) : ""), { width: 72 }) : null,
    ].filter(Boolean),
  };
}

// --- CPU and GPU ----------------------------------------------------------------------------------

function movedTable(host, name, columns) {
  const rows = columns.cpu.map((cpu, id) => ({
    id, cpu, device: columns.device[id], transfers: columns.transfers[id], host: columns.host[id],
    speedup: columns.speedup[id], label: text(columns.label[id]), line: text(columns.line[id]),
    why: text(columns.why[id]), search: () => ({}),
  }));
  for (const row of rows) {
    row.together = row.device + row.transfers + row.host;
    row.weight = Math.max(row.cpu, row.together);
  }
  const most = rows.reduce((m, row) => Math.max(m, row.weight), 1);
  const isLine = name === "Line";
  const lineNode = (v) => el("span", { class: "line-cell", title: `${v}\n${SOURCES.get(v) ?? ""}` },
    el("span", { class: "place" }, baseName(v)), " ", el("code", {}, SOURCES.get(v) ?? ""));
  const nameNode = (v, row) => (isLine && row.line ? lineNode(row.line) : el(row.line || !isLine ? "code" : "span", { title: v }, v));
  const share = (v) => (v ? barred(timeNode(v), v / most) : nothingNode());
  const speed = (v) => (known(v) ? el("b", { class: v < 1 ? "is-slower" : "is-faster" }, times(v)) : nothingNode());
  return makeTable(host, {
    name: `CPU and GPU, ${name}`, rows, sort: "weight", choose: () => {},
    columns: [
      numeric("cpu", "CPU", "time on the CPU alone", share, { width: 104 }),
      numeric("weight", "with GPU", "time on the device, in transfers and still on the CPU; sorted by the longer of both sides", (v, row) => share(row.together), { width: 104 }),
      numeric("speedup", "speed-up", "CPU time divided by the time with the GPU", speed, { width: 96 }),
      textual("places", "", "where the time with the GPU was", placesNode, { width: 72, headerSort: false }),
      ...PLACES.map(([field, help]) => numeric(field, { ...PLACE_TITLES, device: "GPU", host: "still on CPU" }[field], `time ${help}, with the GPU`, (v) => (v ? timeNode(v) : nothingNode()), { width: field === "host" ? 104 : 88 })),
      textual("label", name.toLowerCase(), "what it is", nameNode, isLine ? {} : { width: 270 }),
      rows.some((row) => row.line) && !isLine ? textual("line", "line", "where it was written", (v) => (v ? lineNode(v) : el("span")), { width: 210 }) : null,
      rows.some((row) => row.why) ? textual("why", "why on the CPU", "why it did not run on the device", null) : null,
    ].filter(Boolean),
  });
}

function showMoved() {
  if (!D.moved) return;
  byId("moved").hidden = false;
  document.querySelector('nav a[href="#moved"]').hidden = false;
  byId("moved-words").append(...D.moved.sentences.map((sentence) => el("li", {}, text(sentence))));
  const host = byId("moved-tables");
  const fit = (title, table) => {
    host.style.height = `${Math.min(table.shown * 28 + 52, 400)}px`;
  };
  const made = makeTabs(byId("moved-tabs"), host, D.moved.tables.map(([name, columns]) =>
    [text(name), () => movedTable(host, text(name), columns)]), fit);
  made.open(text(D.moved.tables[0][0]));
}

// --- rows -----------------------------------------------------------------------------------------

let tabs = null;

function filterAll() {
  const [verdict, relation] = [byId("verdict").value, byId("relation").value];
  const also = verdict || relation
    ? (row) => (!verdict || row.verdict === verdict) && (!relation || row.relation === relation) : null;
  for (const table of tabs.made.values()) table.filter(byId("filter").value, also);
}

function choose(row) {
  for (const [name, table] of tabs.made) if (name === current.table.name) table.choose(row.id);
  showDetails(row);
}

function sideBlock(title, label, ns) {
  return el("section", {}, el("h3", {}, title), label ? el("code", { class: "op" }, label) : el("p", { class: "nothing" }, "nothing"),
    known(ns) ? el("p", {}, el("b", {}, time(ns))) : null);
}

function showDetails(row) {
  byId("details").replaceChildren(...[
    el("header", {}, el("p", { class: `value ${side(row.difference)}` }, signed(row.difference)),
      el("p", { class: "chips" }, chip(row.verdict, KINDS[row.verdict]), chip(row.relation, "is-scope"),
        known(row.ratio) ? chip(times(row.ratio)) : null, known(row.p) ? chip(`p = ${row.p < 0.001 ? "<0.001" : row.p.toFixed(3)}`) : null)),
    sideBlock("Before", row.first, row.before),
    sideBlock("After", row.second, row.after),
    row.lines.length ? el("section", {}, el("h3", {}, "Written at"), ...row.lines.slice(0, 20).map((place) =>
      el("div", { class: "source", title: place }, el("span", { class: "place" }, baseName(place)), el("code", {}, SOURCES.get(place) ?? "(no source)")))) : null,
  ].filter(Boolean));
}

function options(select, values, all) {
  const used = new Set(TABLES.flatMap(({ rows }) => rows.map((row) => row[select.id])));
  const shown = values.filter((value) => value && used.has(value));
  select.append(el("option", { value: "" }, all), ...shown.map((value) => el("option", { value }, value)));
  select.parentElement.hidden = !shown.length;
  select.onchange = filterAll;
}

function start() {
  const name = (one, otherwise) => text(one.title) || otherwise;
  byId("title").textContent = text(D.title) || `${name(D.before, "before")} → ${name(D.after, "after")}`;
  showCompared();
  showCards();
  showMoved();
  options(byId("verdict"), D.verdicts, "all");
  options(byId("relation"), D.relations, "all");
  const host = byId("tables");
  const shown = (title, table) => {
    current.table = TABLES.find((each) => each.name === title);
    table.onShown = () => {
      byId("shown").textContent = plural(table.shown, "row");
    };
    filterAll();
    nameFields(byId("filter"), table);
    const rows = largest();
    byId("largest-chart").style.height = `${Math.max(rows.length, 1) * 22 + 34}px`;
    byId("largest-note").textContent = `${title}: right is slower after, left is faster${current.table.rows.some((r) => r.verdict === "noise") ? "; pale is noise" : ""}`;
    largestChart.update();
    if (rows.length) choose(rows[0]);
  };
  tabs = makeTabs(byId("tabs"), host, TABLES.map((each) => [each.name, () => makeTable(host, differenceTable(each))]), shown);
  printTables(host, () => TABLES.map((each) => () => differenceTable(each)));
  let typing = 0;
  byId("filter").oninput = () => {
    clearTimeout(typing);
    typing = setTimeout(filterAll, 120);
  };
  if (TABLES.length) tabs.open(TABLES[0].name);
  document.documentElement.dataset.ready = "yes";
}

// For programs that read the page.
window.opwise = { data: D };
start();
