// The cards at the top: time of calls and of compilation, memory, and what runs in Python.

function card(label, value, note, more) {
  return el("article", { class: "card" },
    el("h2", {}, label), el("p", { class: "value" }, value),
    el("p", { class: "note" }, ...[note].flat()), more);
}

/** Sums over the Applys that are shown: nanoseconds by place, bytes that were copied. */
function deviceSums() {
  const sums = { there: 0, copies: 0, host: 0, moved: 0, asked: 0, waited: 0, left: 0, names: new Set() };
  for (let id = 0; id < APPLYS; id += 1) {
    if (!isIn(id)) continue;
    const name = deviceOf(id);
    sums[!name ? "host" : isTransfer(id) ? "copies" : "there"] += A.ns[id];
    if (name) sums.names.add(name);
    else sums.left += 1;
    sums.moved += (DEVICES?.moved[id] ?? 0) * A.count[id];
    sums.asked += DEVICES?.asked[id] ?? 0;
    sums.waited += DEVICES?.waited[id] ?? 0;
  }
  return sums;
}

/** How the CPU's time in calls is divided. A device works in parallel. */
function callParts() {
  const timer = sumOf("timing_ns");
  const [vm, all, once] = [sumOf("fn_ns"), sumOf("call_ns"), sumOf("once_ns")];
  const { host: thunks, asked, waited } = deviceSums();
  const device = asked + waited;
  return [
    ["Applys", thunks, 1], ["launching kernels", asked, 6], ["waiting for the device", waited, 5], ["profiling overhead", timer, 4],
    ["first runs", once, 7],
    ["VM overhead", Math.max(vm - thunks - device - timer - once, 0), 2],
    ["call path", Math.max(all - Math.max(vm, thunks + device + timer + once), 0), 3],
  ];
}

function callsCard() {
  const calls = sumOf("calls");
  const all = sumOf("call_ns");
  const failed = sumOf("failed") ? `, ${whole(sumOf("failed"))} failed` : "";
  const builtIn = sumOf("built_in_calls") ? `, ${whole(sumOf("built_in_calls"))} on built-in loops` : "";
  return card("Time in calls", figureNode(all, TIMES),
    calls ? `${plural(calls, "call")}${failed}${builtIn} · ${time(all / calls)} each` : "never called",
    stacked(callParts(), TIMES, 0.002));
}

function firstCard() {
  const parts = functionsOf(state.part).filter((f) => f.first_calls && f.calls > f.first_calls);
  const [f] = [...parts].sort((a, b) => b.call_ns - a.call_ns);
  if (!f) return null;
  const first = f.first_call_ns / f.first_calls;
  const later = (f.call_ns - f.first_call_ns) / (f.calls - f.first_calls);
  const of = parts.length > 1 ? [el("span", { class: "cut", title: f.label }, `(${f.label})`)] : [];
  return card("Later calls", figureNode(later, TIMES),
    [`on average; the first took ${time(first)}, ${digits(first / Math.max(later, 1))} times as long `, ...of]);
}

const COMPILE = [
  ["rewriting by the library", 4, (c) => c.library],
  ["translation", 0, (c) => c.translation],
  ["optimizer", 1, (c) => c.optimizer - c.validate],
  ["validation", 5, (c) => c.validate],
  ["C compiler", 2, (c) => c.compiler],
  ["loading kernels", 6, (c) => c.load],
  ["thunks", 3, (c) => c.thunks],
  ["linker, the rest", 7, (c) => c.linker - c.compiler - c.load - c.thunks],
  ["graph and the rest", 8, (c) => c.total - c.library - c.translation - c.optimizer - c.linker],
];

const compileParts = (functions) => COMPILE.map(([name, k, seconds]) =>
  [name, functions.reduce((sum, f) => sum + Math.max(seconds(f.compile), 0) * 1e9, 0), k]);

function cacheText(functions) {
  const graphs = functions.filter((f) => f.compile.graph_cached).length;
  const of = graphs === functions.length ? "" : ` of ${graphs} of ${functions.length} functions`;
  const rewritten = graphs ? `rewritten graphs${of} from the cache, ` : "";
  return rewritten + kernelsText(functions);
}

function kernelsText(functions) {
  const cached = functions.map((f) => f.compile.cached).filter((hit) => hit !== null);
  if (!cached.length) return "no kernels were generated";
  const hits = cached.filter(Boolean).length;
  if (hits === cached.length) return "kernels from the cache";
  return hits ? `kernels of ${hits} of ${cached.length} functions from the cache` : "kernels compiled";
}

function compileCard() {
  const functions = functionsOf(state.part);
  const total = functions.reduce((sum, f) => sum + f.compile.total, 0) * 1e9;
  return card("Compilation", figureNode(total, TIMES),
    [functions.length > 1 ? `${plural(functions.length, "function")}, ` : "", cacheText(functions)],
    stacked(compileParts(functions), TIMES, 0.02));
}

function withMemory() {
  const found = functionsOf(state.part).filter((f) => f.memory);
  return found.sort((a, b) => b.memory.peak - a.memory.peak)[0];
}

/** The number of an Apply in its function, which is named beside those of others. */
function numberOf(id) {
  const number = `#${A.position[id]}`;
  return FUNCTIONS.length > 1 && state.part === 0 ? `${cut(functionOf(id).label, 24)} ${number}` : number;
}

function applyLink(id, label = shortOp(opText(id))) {
  return el("button", {
    type: "button", class: "link", title: opText(id), on: { click: () => choose(id) },
  }, el("span", { class: "number" }, numberOf(id)), ` ${cut(label, 80)}`);
}

function memoryCard() {
  const f = withMemory();
  if (!f) return card("Peak memory", "–", "not recorded");
  const { memory } = f;
  const owner = f.start + memory.at;
  return card("Peak memory", figureNode(memory.peak, SIZES),
    memory.at >= 0 && owner < f.end ? applyLink(owner) : "no allocations",
    memory.peak ? el("p", { class: "note" },
      memory.device ? `device ${size(memory.device.peak)} · CPU ${size(memory.host.peak)}`
        : `of ${size(memory.total)} allocated · ${size(memory.kept)} kept`) : null);
}

function pythonCard() {
  let [ns, many, all, total] = [0, 0, 0, 0];
  let worst = null;
  for (let id = 0; id < APPLYS; id += 1) {
    if (!isIn(id)) continue;
    all += 1;
    total += A.ns[id];
    if (A.c[id]) continue;
    ns += A.ns[id];
    many += 1;
    if (worst === null || A.ns[id] > A.ns[worst]) worst = id;
  }
  return card("In Python", total ? percent(ns / total) : "–",
    many ? [`${whole(many)} of ${plural(all, "Apply")}, most: `, el("br"), applyLink(worst)]
      : `all ${whole(all)} Applys run in C`);
}

function deviceCard() {
  if (!DEVICES) return null;
  const sums = deviceSums();
  if (!sums.names.size) return null;
  const rate = sums.copies && sums.moved ? `, ${digits(sums.moved / sums.copies)} GB/s` : "";
  return card(`On ${[...sums.names].join(", ")}`, percent(sums.there / Math.max(1, sumOf("thunk_ns"))),
    [`${size(sums.moved)} copied${rate}`, el("br"), `${plural(sums.left, "Apply")} on the CPU`],
    stacked([["Applys", sums.there, 4], ["transfers", sums.copies, 6], ["on the CPU", sums.host, 8]], TIMES));
}

function slowestCard() {
  const ids = [];
  for (let id = 0; id < APPLYS; id += 1) if (isIn(id) && A.ns[id]) ids.push(id);
  ids.sort((a, b) => A.ns[b] - A.ns[a]);
  const total = sumOf("thunk_ns");
  if (!ids.length) return null;
  const three = ids.slice(0, 3).reduce((sum, id) => sum + A.ns[id], 0);
  return card("Slowest Apply", percent(A.ns[ids[0]] / total), applyLink(ids[0]),
    ids.length > 3 ? el("p", { class: "note" }, `the slowest three: ${percent(three / total)}`) : null);
}

/** How the time of the whole program is divided; only for all functions together. */
function programCard() {
  if (!D.whole.length || state.part) return null;
  const [[what, all], ...parts] = D.whole;
  return card("Program", figureNode(all, TIMES), text(what),
    stacked(parts.map(([name, ns], k) => [text(name), ns, [6, 5, 2, 1, 8][k]]), TIMES, 0.005));
}

function showCards() {
  const cards = [callsCard(), deviceCard(), slowestCard(), firstCard(), pythonCard(), memoryCard(), compileCard(), programCard()];
  byId("cards").replaceChildren(...cards.filter(Boolean));
}
