// The page of a profile: its tables, what is chosen, and its charts.

// --- tables ---------------------------------------------------------------------------------------

function whereNode(device, row) {
  if (!device) return kindNode(row.c, row);
  return row.transfer ? chip("copy", "is-transfer", `to or from ${device}`) : chip(device, "is-device", `runs on ${device}`);
}

function kindNode(c, row) {
  if (c === 1) return chip("C", "is-c", "runs in C");
  return chip(c === 2 ? "C, Py" : "Py", "is-python", row.why ?? "runs in Python");
}

/** Shortest to longest call as a line, the median as a stroke; all rows share a logarithmic axis. */
function spreadNode(id, [low, high]) {
  const at = (ns) => `${(100 * (Math.log(Math.max(ns, 1)) - low)) / Math.max(high - low, 1e-9)}%`;
  if (!A.count[id] || timed(id, A.most) === null) return el("span");
  const from = at(A.least[id]);
  return el("span", { class: "spread", title: `${time(A.least[id])} … ${time(A.median[id])} … ${time(A.p95[id])} … ${time(A.most[id])}` },
    el("i", { class: "range", style: { left: from, width: `calc(${at(A.most[id])} - ${from})` } }),
    el("i", { class: "usual", style: { left: from, width: `calc(${at(A.p95[id])} - ${from})` } }),
    el("i", { class: "median", style: { left: at(A.median[id]) } }));
}

const ESTIMATED = "estimated: the loop ran as one C function; its time is split among the Applys of its step by their rough cost";
const SLOW_RUNS = "a few slow runs make much of this time: its mean is far above its median";
/** Whether a few slow runs distort an Apply's share of the time of all Applys, as in reports/details.py. */
const hasSlowRuns = (id) => A.count[id] >= 10 && !A.inner[id] && !A.estimated[id]
  && A.ns[id] > 1.5 * A.count[id] * A.median[id]
  && A.ns[id] - A.count[id] * A.median[id] > 0.01 * FUNCTIONS.reduce((sum, f) => sum + f.thunk_ns, 0);
/** A time of single runs, null where none was timed. */
const timed = (id, column) => (D.histograms[id] || !A.estimated[id] ? column[id] : null);

function applyRows() {
  const rows = [];
  const total = Math.max(1, sumOf("thunk_ns"));
  for (let id = 0; id < APPLYS; id += 1) {
    if (!isIn(id)) continue;
    const lines = linesOf(id);
    const scopes = scopesOf(id);
    rows.push({
      id, position: A.position[id], op: opText(id), ns: A.ns[id], share: A.ns[id] / total,
      count: A.count[id], each: each(id), least: timed(id, A.least), median: timed(id, A.median),
      p95: timed(id, A.p95), most: timed(id, A.most), c: A.c[id], why: text(A.why[id]) || undefined, shapes: text(A.shapes[id]),
      flops: A.flops[id], gflops: gflops(id), gbs: gbs(id), scope: scopes.join(", "),
      line: lines[0] ?? -1, source: lines.length ? lineText(lines[0]) : "",
      loop: text(A.loop[id]), device: deviceOf(id), transfer: isTransfer(id), host: whyOnHost(id),
      asked: DEVICES?.asked[id], waited: DEVICES?.waited[id],
      function: functionOf(id).label, gain: limitOf(id, "gain_s"), peak: limitOf(id, "share"), rough: limitOf(id, "rough"), level: limitOf(id, "level") === null ? "" : text(limitOf(id, "level")),
      search: () => ({
        op: [opText(id), text(D.ops.class[A.op[id]])], id: `#${A.position[id]}`,
        line: lines.map((line) => `${linePath(line)} ${lineSource(line)}`), scope: scopes,
        shape: shapesOf(id), function: functionOf(id).label,
        ...(HAS_LOOPS ? { loop: [text(A.loop[id])] } : {}),
        on: [A.c[id] ? "" : "python", deviceOf(id), isTransfer(id) ? "transfer" : "", whyOnHost(id)],
      }),
    });
  }
  return rows;
}

function limitOf(id, name) {
  const k = LIMIT_OF.get(id);
  return k === undefined ? null : D.roofline[name][k];
}

function sourceNode(line, others = 0) {
  if (line < 0) return el("span");
  return el("span", { class: "line-cell", title: `${linePath(line)}\n${lineSource(line)}` },
    el("span", { class: "place" }, lineText(line)), others ? el("span", { class: "soft" }, ` +${others}`) : null,
    " ", el("code", {}, lineSource(line)));
}

/** The shapes of the inputs and outputs of an Apply, each in brackets. */
function shapesOf(id) {
  return [...A.inputs[id], ...A.outputs[id]]
    .map((array) => /^\S+ ([\d×]+),/.exec(text(array))?.[1]).filter(Boolean).map((shape) => `(${shape})`);
}

function applyTable() {
  const rows = applyRows();
  const longest = Math.max(1, ...rows.slice(0, 1).map((r) => r.ns), rows.reduce((m, r) => Math.max(m, r.ns), 1));
  const called = rows.filter((row) => row.count && row.most !== null);
  const range = [
    called.reduce((m, r) => Math.min(m, Math.log(Math.max(r.least, 1))), Infinity),
    called.reduce((m, r) => Math.max(m, Math.log(Math.max(r.most, 1))), 0),
  ];
  const some = (field) => rows.some((row) => known(row[field]) && row[field] !== 0);
  const isNarrow = window.innerWidth < 560;
  const isSeveral = state.part === 0 && FUNCTIONS.length > 1;
  return {
    name: "Applys", rows, sort: "ns", choose: (row) => choose(row.id),
    columns: [
      numeric("position", "#", "position in the order of execution", (v) => el("span", { class: "soft" }, v), { width: isNarrow ? 44 : 54, frozen: true, headerSortStartingDir: "asc" }),
      textual("op", "Apply", "the Op that it applies", code, { width: isNarrow ? (isSeveral ? 104 : 130) : (isSeveral ? 190 : 215), frozen: true }),
      isSeveral ? textual("function", "function", "the function that it is in; each counts its Applys from 0", null, { width: isNarrow ? 66 : 90, frozen: true }) : null,
      numeric("ns", "time", rows.some((row) => A.estimated[row.id]) ? `time in all calls; ~: ${ESTIMATED}` : "time in all calls", (v, row) => barred(A.estimated[row.id] ? el("span", { title: ESTIMATED }, "~", timeNode(v)) : timeNode(v), v / longest), { width: 112 }),
      numeric("share", "share", rows.some((row) => hasSlowRuns(row.id)) ? `of the time of all Applys shown; *: ${SLOW_RUNS}` : "of the time of all Applys shown", (v, row) => (hasSlowRuns(row.id) ? el("span", { title: SLOW_RUNS }, percent(v), " *") : percent(v)), { width: 76 }),
      rows.some((row) => row.loop) ? textual("loop", "inside", "the loops that repeat it", code, { width: 170 }) : null,
      textual("source", "line", "where it was written, and how many more lines", (v, row) => sourceNode(row.line, Math.max(linesOf(row.id).length - 1, 0)), { width: 285 }),
      numeric("count", "calls", "how often it ran", whole, { width: 70 }),
      numeric("each", "a call", "mean time of a call", timeNode, { width: 84 }),
      DEVICES ? textual("device", "on", "where it runs: on a device, as a copy to or from it, in C or in Python", whereNode, { width: 72, hozAlign: "center" })
        : textual("c", "", "whether it runs in C or in Python, and why", kindNode, { width: 56, hozAlign: "center" }),
      some("asked") ? numeric("asked", "launching", "time that the CPU took to launch it, in all calls", (v, row) => (row.device ? timeNode(v) : nothingNode()), { width: 84 }) : null,
      some("waited") ? numeric("waited", "waiting", "time that the CPU waited for it, in all calls", (v, row) => (row.device ? timeNode(v) : nothingNode()), { width: 84 }) : null,
      rows.some((row) => row.host) ? textual("host", "why on the CPU", "why it did not run on the device", null, { width: 230 }) : null,
      rows.some((row) => row.scope) ? textual("scope", "scope", "scopes of the program's Applys in it", null, { width: 150 }) : null,
      textual("shapes", "shapes", "of the outputs in the last call", null, { width: 110 }),
      numeric("median", "median", "half of the calls took no longer, within 7 %", timeNode, { width: 84 }),
      numeric("p95", "p95", "95 % of the calls took no longer, within 7 %", timeNode, { width: 84 }),
      numeric("least", "min", "the shortest call", timeNode, { width: 84 }),
      numeric("most", "max", "the longest call", timeNode, { width: 84 }),
      textual("id", "spread", "shortest to longest call on a logarithmic axis; bold up to 95 % of the calls, a stroke at the median", (id) => spreadNode(id, range), { width: 120, headerSort: false }),
      some("flops") ? numeric("flops", "flop", "floating-point operations of a call", (v) => el("span", {}, known(v) ? count(v) : ""), { width: 76 }) : null,
      some("gflops") ? numeric("gflops", "GFLOP/s", "10⁹ floating-point operations a second", (v) => el("span", {}, known(v) ? digits(v) : ""), { width: 84 }) : null,
      some("gbs") ? numeric("gbs", "GB/s", "10⁹ bytes a second that it must read and write; behind it the nearest memory that holds them (L1, L2, L3: caches; RAM)", (v, row) => el("span", {}, known(v) ? digits(v) : "", row.level ? el("span", { class: "unit" }, ` ${row.level}`) : null), { width: 92 }) : null,
      some("peak") ? numeric("peak", "of limit", "the least time that this hardware needs, as a share of the time taken; ~: by rough costs of functions such as exp", (v, row) => el("span", {}, known(v) ? `${row.rough ? "~" : ""}${percent(v)}` : ""), { width: 80 }) : null,
      some("gain") ? numeric("gain", "gain", "time beyond the least that this hardware needs", (v) => (known(v) ? timeNode(v * 1e9) : el("span")), { width: 84 }) : null,
    ].filter(Boolean),
  };
}

const KINDS = { Op: "op", Class: "class", Line: "line", Call: "call", Scope: "scope" };

/** The titles of tables beside that of Applys; a profile that knows no calls has no table of them. */
const titles = () => Object.keys(KINDS).filter((title) => D.tables[state.part][KINDS[title]]);

function groupTable(title) {
  const kind = KINDS[title];
  const from = D.tables[state.part][kind];
  const total = Math.max(1, sumOf("thunk_ns"));
  const rows = from.key.map((key, k) => ({
    id: k, key, kind, label: text(from.label[k]), ns: from.ns[k], share: from.ns[k] / total,
    own: from.ns[k] - from.gradient[k], gradient: from.gradient[k], calls: from.calls[k],
    applys: from.applys[k], c: from.c[k],
    ...Object.fromEntries(DEVICES ? PLACES.map(([name]) => [name, from[name][k]]) : []),
    search: () => ({ [kind]: [text(from.label[k]), kind === "line" ? lineSource(key) : ""] }),
  }));
  const longest = rows.reduce((m, r) => Math.max(m, r.ns), 1);
  const isShared = kind === "line" || kind === "call" || kind === "scope";
  const label = kind === "line"
    ? textual("label", "line", "the line and its text; a gradient counts for the line that it is the gradient of; a fused Apply's time is split among its source operations by their rough cost", (v, row) => (row.key < 0 ? el("span", { class: "soft" }, v) : sourceNode(row.key)), { widthGrow: 4, minWidth: 300 })
    : textual("label", title.toLowerCase(), title, code, { widthGrow: 4, minWidth: 260 });
  const places = DEVICES ? [
    ...PLACES.map(([name, help]) => numeric(name, PLACE_TITLES[name], `time ${help}`, (v) => (v ? timeNode(v) : nothingNode()), { width: 88 })),
    textual("places", "", "where the time was", placesNode, { width: 68, headerSort: false }),
  ] : [];
  return {
    name: title, rows, sort: "ns",
    choose: (row) => chooseGroup({ kind, key: row.key, row }),
    columns: [
      numeric("ns", "time", "time in all calls", (v) => barred(timeNode(v), v / longest), { width: 120 }),
      numeric("share", "share", "of the time of all Applys", percent, { width: 84 }),
      ...places,
      DEVICES ? label : null,
      isShared ? numeric("own", "own", "time of what was written there", timeNode, { width: 92 }) : null,
      isShared ? numeric("gradient", "gradient", "time of gradients of it", (v) => (v ? barred(timeNode(v), v / longest, "is-gradient") : el("span", { class: "soft" }, "–")), { width: 110 }) : null,
      numeric("calls", "runs", "how often its Applys ran", whole, { width: 84 }),
      numeric("applys", "Applys", "how many", whole, { width: 76 }),
      DEVICES ? null : textual("c", "", "whether they run in C or in Python", kindNode, { width: 68, hozAlign: "center" }),
      DEVICES ? null : label,
    ].filter(Boolean),
  };
}

let tabs = null;
let only = null;

function current() {
  const name = byId("tabs").querySelector("[aria-selected=true]")?.textContent;
  return tabs?.made.get(name);
}

function filterAll() {
  const words = byId("filter").value;
  const pythonOnly = byId("python").checked;
  const hostOnly = byId("host").checked;
  const ids = only && new Set(idsOf(only));
  for (const [name, table] of tabs.made) {
    const isApply = name === "Apply";
    const isOnHost = (row) => (isApply ? !row.device : row.host > 0);
    const also = (pythonOnly || hostOnly || (isApply && ids))
      ? (row) => (!pythonOnly || row.c !== 1) && (!hostOnly || isOnHost(row)) && (!isApply || !ids || ids.has(row.id)) : null;
    table.filter(words, also);
  }
}

function showOnly(group) {
  only = group;
  byId("chosen").hidden = !group;
  if (group) {
    byId("chosen").replaceChildren(el("span", { class: "cut" }, `${group.kind}: ${group.kind === "line" ? lineText(group.key) || group.row.label : group.row.label}`),
      el("button", { type: "button", ariaLabel: "Show all Applys", title: "Show all Applys", on: { click: () => showOnly(null) } }, "×"));
    tabs.open("Apply");
  }
  filterAll();
}

function makeTables() {
  const host = byId("tables");
  const entries = [["Apply", () => makeTable(host, applyTable())],
    ...titles().map((title) => [title, () => makeTable(host, groupTable(title))])];
  only = null;
  byId("chosen").hidden = true;
  tabs = makeTabs(byId("tabs"), host, entries, (name, table) => {
    table.onShown = () => {
      if (table === current()) byId("shown").textContent = plural(table.shown, "row");
    };
    filterAll();
    table.onShown();
    nameFields(byId("filter"), table);
  });
  tabs.open("Apply");
  let typing = 0;
  byId("filter").oninput = () => {
    clearTimeout(typing);
    typing = setTimeout(filterAll, 120);
  };
  byId("python").onchange = filterAll;
  byId("host").onchange = filterAll;
  byId("host-label").hidden = !DEVICES;
  byId("python-label").hidden = A.c?.every(Boolean) ?? true;
}

// --- what is chosen -------------------------------------------------------------------------------

let graph = null;

function choose(id) {
  state.apply = id;
  state.group = null;
  tabs.made.get("Apply")?.choose(id);
  for (const [name, table] of tabs.made) if (name !== "Apply") table.choose(null);
  showGraph();
  showDetails();
  memoryChart.update();
}

function chooseGroup(group) {
  state.group = group;
  const ids = idsOf(group);
  if (ids.length) state.apply = ids[0];
  for (const [name, table] of tabs.made) table.choose(KINDS[name] === group.kind ? group.row.id : null);
  showGraph(new Set(ids));
  showDetails();
}

function showGraph(ids = null) {
  if (state.apply === null) return;
  const f = functionOf(state.apply);
  const name = FUNCTIONS.length > 1 ? `${f.label}, ` : "";
  byId("graph-name").textContent = `${name}${plural(f.applys, "Apply")}`;
  byId("graph-name").title = f.label;
  graph.show(f, state.apply, ids);
}

function makeGraphPanel() {
  graph = makeGraph(byId("graph"), choose);
  byId("graph-in").onclick = () => graph.zoom(1.4);
  byId("graph-out").onclick = () => graph.zoom(1 / 1.4);
  byId("graph-fit").onclick = () => graph.fit();
  const large = byId("graph-large");
  const enlarge = (is) => {
    byId("graph-panel").classList.toggle("is-large", is);
    large.setAttribute("aria-pressed", String(is));
    large.textContent = is ? "Small" : "Large";
    // After the layout with the new size.
    const later = (steps) => requestAnimationFrame(() => (steps ? later(steps - 1) : graph.reveal(state.apply)));
    if (state.apply !== null) later(2);
  };
  large.onclick = () => enlarge(!byId("graph-panel").classList.contains("is-large"));
  byId("graph-panel").addEventListener("keydown", (event) => {
    const is = byId("graph-panel").classList.contains("is-large");
    if (event.key === "Escape" && is) enlarge(false);
    else if (event.key === "l" || event.key === "L") enlarge(!is);
  });
}

// --- scopes and calls as a flame ------------------------------------------------------------------

const flame = { boxes: [], path: [] };

function flameLabel([kind, name, key]) {
  if (kind === "all") return FUNCTIONS.length > 1 ? "all functions" : "all";
  if (kind === "rest") return `${whole(name)} more`;
  if (kind === "line") return key < 0 ? text(name) : `${lineText(key)} ${text(name)}  ${lineSource(key)}`;
  if (kind === "function") return FUNCTIONS[key].label;
  return kind === "op" ? shortOp(text(name)) : text(name) || "(no name)";
}

function flameRoot() {
  const all = D.flames[state.part];
  // With one function, it stands for all.
  return all[5].length === 1 && all[5][0][0] === "function" ? all[5][0] : all;
}

/** Lay out the tree below the part that is zoomed in; its ancestors span the whole width. */
function layFlame() {
  const top = flame.path.at(-1);
  const boxes = flame.path.slice(0, -1).map((part, depth) => ({ part, depth, from: 0, to: top[3], above: true }));
  const lay = (part, depth, from) => {
    boxes.push({ part, depth, from, to: from + part[3], above: false });
    let at = from;
    for (const inner of part[5]) {
      lay(inner, depth + 1, at);
      at += inner[3];
    }
  };
  lay(top, flame.path.length - 1, 0);
  flame.boxes = boxes;
}

const FLAME_ROW = 23;
const FLAME_KINDS = { all: 0, function: 0, scope: 1, library: 1, line: 2, op: 3, rest: 4 };

function flameStyle(part) {
  const gradient = part[3] ? part[4] / part[3] : 0;
  const name = ["flame-function", "flame-scope", "flame-line", "flame-op", "flame-rest"][FLAME_KINDS[part[0]]];
  return {
    fill: color(gradient > 0.5 && part[0] !== "rest" ? `${name}-gradient` : name),
    ink: color("flame-ink"),
  };
}

const flameChart = keepChart(byId("flame-chart"), () => {
  layFlame();
  const depth = flame.boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  const total = Math.max(flame.path.at(-1)[3], 1);
  const whole_ = Math.max(flameRoot()[3], 1);
  return {
    grid: { left: 2, right: 2, top: 2, bottom: 2 },
    xAxis: { type: "value", min: 0, max: total, show: false },
    yAxis: { type: "value", min: -0.5, max: depth - 0.5, inverse: true, show: false },
    tooltip: tooltip(({ dataIndex }) => {
      const { part } = flame.boxes[dataIndex];
      return tipBody(part[0] === "op" ? text(part[1]) : flameLabel(part), [
        ["time", time(part[3])], ["of all", percent(part[3] / whole_)],
        part[4] ? ["gradients", percent(part[4] / Math.max(part[3], 1))] : null,
        part[0] === "line" && part[2] >= 0 ? ["file", linePath(part[2])] : null,
      ]);
    }),
    series: [{
      type: "custom", clip: true,
      data: flame.boxes.map((box, k) => ({ value: [box.from, box.to, box.depth, k] })),
      encode: { x: [0, 1], y: 2 },
      renderItem: (params, api) => {
        const box = flame.boxes[params.dataIndex];
        const style = flameStyle(box.part);
        if (box.above) style.opacity = 0.55;
        return boxItem(api, [box.from, box.to, box.depth], FLAME_ROW, style, flameLabel(box.part));
      },
    }],
  };
}, ({ dataIndex }) => {
  const { part, above } = flame.boxes[dataIndex];
  if (above) openFlame(flame.path.slice(0, dataIndex + 1));
  else openFlame(pathTo(part));
  if (part[0] === "op" || part[0] === "line" || part[0] === "scope") chooseFromFlame(part);
});

function pathTo(wanted) {
  const search = (path) => {
    const top = path.at(-1);
    if (top === wanted) return path;
    for (const inner of top[5]) {
      const found = search([...path, inner]);
      if (found) return found;
    }
    return null;
  };
  return search([flameRoot()]) ?? [flameRoot()];
}

function chooseFromFlame([kind, , key]) {
  if (kind !== "op" && kind !== "line") return;
  const from = D.tables[state.part][kind];
  const k = from.key.indexOf(key);
  if (k < 0) return;
  chooseGroup({
    kind, key, row: {
      id: k, label: text(from.label[k]), ns: from.ns[k], gradient: from.gradient[k],
      calls: from.calls[k], share: from.ns[k] / Math.max(1, sumOf("thunk_ns")),
    },
  });
}

function openFlame(path) {
  // A leaf has no parts: the view stays at its parent.
  flame.path = path.at(-1)[5].length ? path : path.slice(0, -1);
  if (!flame.path.length) flame.path = [flameRoot()];
  layFlame();
  const depth = flame.boxes.reduce((most, box) => Math.max(most, box.depth), 0) + 1;
  byId("flame-chart").style.height = `${depth * FLAME_ROW + 4}px`;
  byId("flame-path").replaceChildren(...flame.path.map((part, k) => el("button", {
    type: "button", class: "link", on: { click: () => openFlame(flame.path.slice(0, k + 1)) },
  }, cut(flameLabel(part), 48))));
  byId("flame-path").hidden = flame.path.length < 2;
  flameChart.update();
}

function showFlame() {
  openFlame([flameRoot()]);
  const legend = [["function", "function"], ["scope, [library]", "scope"], ["line that was called or wrote it", "line"], ["Op", "op"]];
  byId("flame-legend").replaceChildren(
    ...legend.map(([name, kind]) => el("span", {}, el("i", { class: `dot f-${kind}` }), name)),
    D.flames[state.part][4] ? el("span", {}, el("i", { class: "dot f-op-gradient" }), "mostly gradients, at the line that they are the gradient of") : "",
    el("span", { class: "soft" }, "A fused Apply's time is split among the source operations in it, by the rough cost of each. Click a part to zoom in."));
}

// --- memory ---------------------------------------------------------------------------------------

const memoryChart = keepChart(byId("memory-chart"), () => {
  const f = withMemory();
  if (!f) return {};
  const { memory } = f;
  const points = memory.timeline.map((bytes, k) => [k, bytes]);
  const most = memory.timeline.reduce((m, bytes) => Math.max(m, bytes), 1);
  // Ticks at powers of two, as for sizes.
  const step = 2 ** Math.ceil(Math.log2(most / 5));
  const chosen = state.apply !== null && functionOf(state.apply) === f ? state.apply - f.start : null;
  return {
    grid: { left: 70, right: 24, top: 34, bottom: 40 },
    xAxis: axis({ type: "value", min: 0, max: Math.max(points.length - 1, 1), name: "position of the Apply", nameLocation: "middle", nameGap: 26, splitLine: { show: false }, minInterval: 1 }),
    yAxis: axis({ type: "value", min: 0, max: step * Math.ceil((1.14 * most) / step), interval: step, axisLabel: { formatter: (v) => size(v) } }),
    tooltip: tooltip(([point]) => {
      const id = f.start + point.value[0];
      return tipBody(`#${A.position[id]} ${opText(id)}`, [["live", size(point.value[1])], ["time", time(A.ns[id])]]);
    }, { trigger: "axis", axisPointer: { lineStyle: { color: color("soft") } } }),
    series: [{
      type: "line", step: "middle", symbol: "none", data: points, sampling: "max",
      lineStyle: { color: color("s1"), width: 1.5 }, areaStyle: { color: color("s1"), opacity: 0.16 },
      markPoint: {
        symbol: "circle", symbolSize: 9, itemStyle: { color: color("hot"), borderColor: color("panel"), borderWidth: 2 },
        label: { show: true, position: memory.at > (points.length - 1) * 0.8 ? "left" : memory.at < (points.length - 1) * 0.1 ? "right" : "top", color: color("ink"), fontWeight: 600, fontSize: 12, distance: 8, formatter: () => `peak ${size(memory.peak)}` },
        data: memory.at >= 0 ? [{ coord: [memory.at, memory.peak] }] : [],
      },
      markLine: chosen === null ? undefined : {
        silent: true, symbol: "none", label: { show: false }, lineStyle: { color: color("accent"), type: "dashed" },
        data: [{ xAxis: chosen }],
      },
    }],
  };
});

byId("memory-chart").addEventListener("click", (event) => {
  const f = withMemory();
  const { chart } = memoryChart;
  if (!f || !chart) return;
  const [k] = chart.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]);
  const id = f.start + Math.round(k);
  if (id >= f.start && id < f.end) choose(id);
});

/** A list with a bar behind each row: [node, value, what a click does]. */
function barList(rows, most, units) {
  return el("ol", { class: "bar-list" }, ...rows.map(([node, value]) =>
    el("li", {}, el("span", { class: "bar-fill", style: { width: `${(100 * value) / Math.max(most, 1)}%` } }),
      node, figureNode(value, units))));
}

function showMemory() {
  const f = withMemory();
  byId("memory-body").hidden = !f;
  if (!f) {
    byId("memory-note").textContent = "not recorded; set the flag profile_memory or ProfileMode.profile_memory to record it.";
    return;
  }
  const { memory } = f;
  const name = FUNCTIONS.length > 1 ? ` of ${cut(f.label, 40)}` : "";
  byId("memory-note").textContent = `what Applys allocate and still need, in the last call${name}`;
  const most = memory.live.reduce((m, one) => Math.max(m, one[1]), 1);
  byId("memory-list").replaceChildren(
    facts([
      ["peak", el("b", {}, size(memory.peak))],
      memory.device ? ["of the device's memory", size(memory.device.peak)] : null,
      memory.host ? ["of the CPU's", size(memory.host.peak)] : null,
      ["without in-place operations", size(memory.copying)],
      ["in the order of the graph", size(memory.peak_toposort)],
      known(memory.least) ? [memory.least_is_sure ? "lowest of any order" : "lowest order found", size(memory.least)] : null,
      ["all allocations", size(memory.total)],
      ["kept between calls", size(memory.kept)],
    ]),
    el("h3", {}, "Live at the peak"),
    barList(memory.live.map(([position, bytes]) => [
      position >= 0 && f.start + position < f.end ? applyLink(f.start + position) : el("span", {}, "scratch of the Apply itself"), bytes,
    ]), most, SIZES),
    ...(memory.live_rest[0] ? [el("p", { class: "soft" }, `and ${plural(memory.live_rest[0], "piece")} more, ${size(memory.live_rest[1])}`)] : []));
  memoryChart.update();
}

// --- calls in detail ------------------------------------------------------------------------------

const calls = { segments: [], rows: [], classes: [] };

function layCalls() {
  const parts = functionsOf(state.part).filter((f) => f.detail.length);
  const f = [...parts].sort((a, b) => b.call_ns - a.call_ns)[0];
  calls.segments = [];
  calls.rows = f ? f.detail : [];
  calls.f = f;
  const sums = new Map();
  calls.rows.forEach((call, row) => {
    let at = 0;
    for (const [position, ns] of call.segments) {
      const id = position >= 0 && f.start + position < f.end ? f.start + position : null;
      const kind = id === null ? null : D.ops.class[A.op[id]];
      calls.segments.push({ row, from: at, to: at + ns, id, kind });
      if (kind !== null) sums.set(kind, (sums.get(kind) ?? 0) + ns);
      at += ns;
    }
  });
  calls.classes = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 7).map(([kind]) => kind);
}

const className = (kind) => /'(?:.*\.)?([^.']+)'/.exec(text(kind))?.[1] ?? text(kind);
const classColor = (kind) => {
  const k = kind === null ? -1 : calls.classes.indexOf(kind);
  return k < 0 ? color("s8") : series(k);
};

const callsChart = keepChart(byId("calls-chart"), () => {
  const { rows, segments } = calls;
  const longest = rows.reduce((m, call) => Math.max(m, call.ns), 1);
  return {
    grid: { left: 70, right: 74, top: 6, bottom: 28 },
    xAxis: axis({ type: "value", min: 0, max: longest, axisLabel: { formatter: (v) => time(v), showMaxLabel: false } }),
    yAxis: axis({
      type: "category", inverse: true, data: rows.map((call) => `call ${whole(call.number)}`),
      axisLine: { show: false }, splitLine: { show: false }, axisLabel: { interval: 0 },
    }),
    tooltip: tooltip(({ dataIndex }) => {
      const { id, from, to, row } = segments[dataIndex];
      if (id === null) return tipBody("smaller Applys", [["together", time(to - from)]]);
      return tipBody(`#${A.position[id]} ${opText(id)}`, [
        ["in this call", time(to - from)], ["of the call", percent((to - from) / rows[row].ns)],
        ["usually", time(A.median[id])]]);
    }),
    series: [{
      type: "custom", clip: true, data: segments.map(({ from, to, row }) => [from, to, row]),
      encode: { x: [0, 1], y: 2 },
      renderItem: (params, api) => {
        const { from, to, row, id, kind } = segments[params.dataIndex];
        return boxItem(api, [from, to, row], 19,
          { fill: classColor(kind), ink: "#fff", opacity: id === null ? 0.5 : 1 },
          id === null ? "" : shortOp(opText(id)));
      },
    }, {
      type: "custom", silent: true, data: rows.map((call, row) => [call.ns, row]),
      encode: { x: 0, y: 1 },
      renderItem: (params, api) => {
        const [left, top] = api.coord([rows[params.dataIndex].ns, params.dataIndex]);
        return { type: "text", style: { text: time(rows[params.dataIndex].ns), x: left + 6, y: top, verticalAlign: "middle", fill: color("soft"), font: `11px ${FONT}` } };
      },
    }],
  };
}, ({ dataIndex, seriesIndex }) => {
  const segment = seriesIndex === 0 ? calls.segments[dataIndex] : null;
  if (segment && segment.id !== null) choose(segment.id);
});

function showCalls() {
  layCalls();
  const { f, rows } = calls;
  byId("calls").hidden = !rows.length;
  if (!rows.length) return;
  const name = FUNCTIONS.length > 1 ? ` of ${cut(f.label, 40)}` : "";
  byId("calls-note").textContent = `the first calls${name} and the slowest, Apply by Apply in order of execution`;
  byId("calls-chart").style.height = `${rows.length * 24 + 36}px`;
  byId("calls-legend").replaceChildren(
    ...calls.classes.map((kind, k) => el("span", { title: text(kind) }, el("i", { class: `dot s${k + 1}` }), className(kind))),
    el("span", { class: "soft" }, el("i", { class: "dot s8" }), "others, and Applys too small to draw"));
  callsChart.update();
}

// --- roofline -------------------------------------------------------------------------------------

function shownLimits() {
  const { apply, intensity, gflops: rates } = D.roofline;
  const found = [];
  apply.forEach((id, k) => {
    if (isIn(id) && intensity[k] > 0 && rates[k] > 0) found.push(k);
  });
  return found;
}

/** Bandwidths as [label, GB/s, prefix of peaks]: the fastest and the slowest, for small and large
 * arrays; those of devices have the prefix of the names of their peaks. */
function bandwidths() {
  const curve = D.roofline.bandwidth.filter(([bytes, gb]) => bytes > 0 && gb > 0).sort((a, b) => a[0] - b[0]);
  const devices = D.roofline.devices.map(([name, gb]) => [`${digits(gb)} GB/s, ${text(name)}`, gb, `${text(name)}, `]);
  if (!curve.length) return devices;
  const fastest = curve.reduce((best, one) => (one[1] > best[1] ? one : best));
  const last = curve.at(-1);
  const lines = [[`${digits(fastest[1])} GB/s, arrays of ${size(fastest[0])}`, fastest[1]]];
  if (last[1] < fastest[1] * 0.95) lines.push([`${digits(last[1])} GB/s, arrays of ${size(last[0])}`, last[1]]);
  return [...lines, ...devices];
}

const boundsShown = () => [...new Set(D.roofline.bound)];

const rooflineChart = keepChart(byId("roofline-chart"), () => {
  const { apply, intensity, gflops: rates, share, bound } = D.roofline;
  const ks = shownLimits();
  const peaks = D.roofline.peaks.filter(([, value]) => value > 0);
  const top = Math.max(...peaks.map(([, value]) => value), ...ks.map((k) => rates[k]), 1);
  const memory = bandwidths();
  const owners = memory.map(([, , owner]) => owner).filter(Boolean);
  /** The highest peak of the owner of a memory: a device, or the CPU. */
  const topOf = (owner) => {
    const own = peaks.filter(([name]) => owners.find((each) => text(name).startsWith(each)) === owner);
    return own.length ? Math.max(...own.map(([, value]) => value)) : top;
  };
  const xs = ks.map((k) => intensity[k]);
  const ridge = memory.length ? top / Math.min(...memory.map(([, gb]) => gb)) : 10;
  const low = 10 ** Math.floor(Math.log10(Math.min(...xs, 0.1)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...xs, ridge * 2, 10)));
  const bottom = 10 ** Math.floor(Math.log10(Math.min(...ks.map((k) => rates[k]), top / 1e3)));
  const longest = ks.reduce((m, k) => Math.max(m, A.ns[apply[k]]), 1);
  const ceiling = (name, data, at, label) => ({
    type: "line", silent: true, symbol: "none", data, z: 1,
    lineStyle: { color: color("soft"), width: 1.3 },
    markPoint: {
      symbol: "circle", symbolSize: 0.1, silent: true, data: [{ coord: at }],
      label: { show: true, formatter: () => drawn(name), color: color("soft"), fontSize: 11, ...label },
    },
  });
  const atEnd = { position: "left", offset: [0, -9], distance: 4 };
  return {
    grid: { left: 62, right: 26, top: 24, bottom: 44 },
    xAxis: axis({ type: "log", min: low, max: high, name: "flop a byte", nameLocation: "middle", nameGap: 28, axisLabel: { formatter: (v) => String(v) } }),
    yAxis: axis({ type: "log", min: bottom, max: 10 ** Math.ceil(Math.log10(top * 1.05)), name: "GFLOP/s", axisLabel: { formatter: (v) => String(v) } }),
    tooltip: tooltip((found) => {
      const k = found.data?.limit;
      if (k === undefined) return null;
      const id = apply[k];
      return tipBody(`#${A.position[id]} ${opText(id)}`, [
        ["rate", `${digits(rates[k])} GFLOP/s`], ["intensity", `${digits(intensity[k])} flop a byte`],
        ["of the limit", percent(share[k])], ["bound by", text(bound[k])], ["time", time(A.ns[id])]]);
    }),
    series: [
      ...peaks.map(([name, value]) => ceiling(`${text(name)}: ${digits(value)} GFLOP/s`, [[low, value], [high, value]], [high, value], atEnd)),
      ...memory.map(([name, gb, owner]) => {
        const end = Math.min(high, topOf(owner) / gb);
        const start = Math.max(low, bottom / gb);
        return ceiling(name, [[start, start * gb], [end, end * gb]], [start, start * gb],
          { position: "right", offset: [4, 12], distance: 2 });
      }),
      {
        type: "scatter", z: 3,
        data: ks.map((k) => ({
          value: [intensity[k], rates[k]], limit: k,
          symbolSize: 7 + 22 * Math.sqrt(A.ns[apply[k]] / longest),
          itemStyle: { color: series(boundsShown().indexOf(bound[k])), opacity: 0.8, borderColor: color("panel") },
        })),
      },
    ],
  };
}, (found) => {
  if (found.data?.limit !== undefined) choose(D.roofline.apply[found.data.limit]);
});

function showRoofline() {
  if (!D.roofline) return;
  byId("roofline").hidden = false;
  document.querySelector('nav a[href="#roofline"]').hidden = false;
  const { apply, gain_s: gain, rough } = D.roofline;
  const rows = apply.map((id, k) => [id, k]).filter(([id, k]) => isIn(id) && gain[k] > 0)
    .sort((a, b) => gain[b[1]] - gain[a[1]]).slice(0, 12);
  const without = apply.filter((id) => isIn(id)).length - shownLimits().length;
  byId("roofline-list").replaceChildren(
    el("p", { class: "legend" }, ...boundsShown().map((b, k) => el("span", {}, el("i", { class: `dot s${(k % 8) + 1}` }), text(b) ? `bound by ${text(b)}` : "limit unknown"))),
    el("h3", {}, "Most to gain"),
    barList(rows.map(([id, k]) => [el("span", {}, rough[k] ? "~ " : "", applyLink(id)), gain[k] * 1e9]), rows.length ? gain[rows[0][1]] * 1e9 : 1, TIMES),
    ...(without > 0 ? [el("p", { class: "soft" }, `Not in the chart: ${plural(without, "Apply")} without an exact count of floating-point operations${rows.some(([, k]) => rough[k]) ? "; ~: by rough costs of functions such as exp" : ""}.`)] : []));
  rooflineChart.update();
}

// --- compilation ----------------------------------------------------------------------------------

function showCompile() {
  const functions = [...functionsOf(state.part)].sort((a, b) => b.compile.total - a.compile.total);
  byId("compile-body").replaceChildren(...functions.slice(0, 12).map((f) => el("div", { class: "compiled" },
    el("div", { class: "compiled-head" }, el("b", { class: "cut", title: f.label }, f.label),
      el("span", { class: "soft" }, `${time(f.compile.total * 1e9)} · ${cacheText([f])} · ${plural(f.applys, "Apply")}`)),
    stacked(compileParts([f]), TIMES),
    f.compile.slowest.length ? el("details", {}, el("summary", {}, "Applys that took longest to prepare"),
      el("table", { class: "plain" }, ...f.compile.slowest.map(([name, seconds]) =>
        el("tr", {}, el("td", {}, time(seconds * 1e9)), el("td", {}, code(text(name))))))) : null)),
    ...(functions.length > 12 ? [el("p", { class: "soft" }, `and ${functions.length - 12} more functions`)] : []));
}

// --- all of it ------------------------------------------------------------------------------------

function showPart(part) {
  state.part = part;
  titled();
  state.group = null;
  state.apply = slowest();
  byId("filter").value = "";
  byId("python").checked = false;
  byId("host").checked = false;
  showCards();
  makeTables();
  if (state.apply !== null) choose(state.apply);
  else showDetails();
  showFlame();
  showRoofline();
  showMemory();
  showCalls();
  showCompile();
}

/** Set the title of the tab: the function and the program. */
function titled() {
  const part = state.part ? FUNCTIONS[state.part - 1].label : text(D.title);
  document.title = [...new Set([part, text(D.name)])].filter(Boolean).join(" · ").concat(" · opwise");
}

function start() {
  byId("title").textContent = text(D.title);
  showEnvironment([["", D.environment]]);
  if (D.tips.length) {
    byId("tips").hidden = false;
    byId("tips").append(...D.tips.map((tip) => el("li", {}, text(tip))));
  }
  byId("notes").hidden = !D.notes.length;
  byId("notes").append(...D.notes.map((note) => el("li", {}, text(note))));
  if (FUNCTIONS.length > 1) {
    byId("part-label").hidden = false;
    byId("part").append(el("option", { value: "0" }, `all ${FUNCTIONS.length} functions`),
      ...FUNCTIONS.map((f, k) => el("option", { value: String(k + 1) },
        `${cut(f.label, 48)} · ${plural(f.applys, "Apply")}${f.calls ? ` · ${time(f.call_ns)}` : " · never called"}`)));
    byId("part").addEventListener("change", () => showPart(Number(byId("part").value)));
  }
  showProgram();
  makeGraphPanel();
  printTables(byId("tables"), () => [applyTable, ...titles().map((title) => () => groupTable(title))]);
  showPart(0);
  document.documentElement.dataset.ready = "yes";
}

// For the console, and for programs that read the page.
window.opwise = {
  data: D, choose, chooseGroup, state, place: (id) => graph.place(id),
  /** The labels of the flame chart as drawn; null before that. */
  flameLabels: () => flameChart.chart?.getZr().storage.getDisplayList(true)
    .filter((one) => one.type === "tspan" && !one.ignore).map((one) => one.style.text) ?? null,
};
start();
