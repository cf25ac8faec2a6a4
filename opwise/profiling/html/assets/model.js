// The data of a profile, by the number of an Apply among all Applys of all functions.

const A = D.applys;
const APPLYS = A.ns ? A.ns.length : 0;
const FUNCTIONS = D.functions.map((f, k) => {
  const isAlone = D.functions.every((other) => other === f || other.name !== f.name);
  return { ...f, label: isAlone ? text(f.name) : `${text(f.name)} (${k + 1})` };
});

let first = 0;
for (const f of FUNCTIONS) {
  f.start = first;
  first += f.applys;
  f.end = first;
  f.peakNs = 1;
  for (let id = f.start; id < f.end; id += 1) f.peakNs = Math.max(f.peakNs, A.ns[id]);
}

/** What the page shows: part 0 is all functions, part k the k-th if there are several. */
const state = { part: 0, apply: null, group: null };

const functionsOf = (part) =>
  part > 0 ? [FUNCTIONS[part - 1]] : FUNCTIONS;
const isIn = (id) => state.part === 0 || A.function[id] === state.part - 1;
const sumOf = (name) => functionsOf(state.part).reduce((sum, f) => sum + f[name], 0);

const opText = (id) => text(D.ops.text[A.op[id]]);
const each = (id) => (A.count[id] ? A.ns[id] / A.count[id] : null);
const functionOf = (id) => FUNCTIONS[A.function[id]];

const HAS_LOOPS = (A.loop ?? []).some((loop) => text(loop));

/** The Applys whose outputs an Apply reads; before the first ones of a loop's step, the loop. */
function reads(id) {
  const f = functionOf(id);
  const found = new Set();
  for (const r of A.reads[id]) if (r >= 0 && f.start + r < id) found.add(f.start + r);
  return [...found];
}

const READERS = new Map();
/** The Applys that read the outputs of an Apply. */
function readers(id) {
  const f = functionOf(id);
  if (!READERS.has(f)) {
    const all = Array.from({ length: f.applys }, () => []);
    for (let k = f.start; k < f.end; k += 1) for (const r of reads(k)) all[r - f.start].push(k);
    READERS.set(f, all);
  }
  return READERS.get(f)[id - f.start];
}

// --- lines and scopes -----------------------------------------------------------------------------

function lineText(line) {
  return line < 0 ? "" : `${baseName(text(D.lines.file[line]))}:${D.lines.line[line]}`;
}
const linePath = (line) => (line < 0 ? "" : `${text(D.lines.file[line])}:${D.lines.line[line]}`);
const lineSource = (line) => (line < 0 ? "" : text(D.lines.source[line]));

/** The lines of the user's Applys that an Apply computes, each once. */
const linesOf = (id) =>
  [...new Set(A.origins[id].map((o) => D.origins.line[o]))].filter((line) => line >= 0);
const scopesOf = (id) => [...new Set(A.origins[id].map((o) => text(D.origins.scope[o])))].filter(Boolean);
/** The line that the time of an origin counts for. */
const costLine = (o) => (D.origins.of[o] >= 0 ? D.origins.of[o] : D.origins.line[o]);

/** Whether an Apply belongs to a row of another table. */
function belongs(id, kind, key) {
  if (kind === "op") return A.op[id] === key;
  if (kind === "class") return D.ops.class[A.op[id]] === key;
  const of = kind === "line" ? costLine : (o) => D.origins[kind][o];
  const origins = A.origins[id];
  if (!origins.length) return kind === "line" ? key === -1 : text(key) === "";
  return origins.some((o) => of(o) === key);
}

function idsOf(group) {
  const found = [];
  for (let id = 0; id < APPLYS; id += 1) {
    if (isIn(id) && belongs(id, group.kind, group.key)) found.push(id);
  }
  return found.sort((a, b) => A.ns[b] - A.ns[a]);
}

/** Columns about devices, by Apply; null if nothing ran on one. */
const DEVICES = D.devices;
const deviceOf = (id) => (DEVICES ? text(DEVICES.name[id]) : "");
const isTransfer = (id) => DEVICES !== null && DEVICES.transfer[id] === 1;
/** Why an Apply ran on the CPU while others ran on a device. */
const whyOnHost = (id) => (DEVICES ? text(DEVICES.on_host[id]) : "");

function slowest() {
  let best = null;
  for (let id = 0; id < APPLYS; id += 1) {
    if (isIn(id) && (best === null || A.ns[id] > A.ns[best])) best = id;
  }
  return best;
}

/** GFLOP/s and GB/s of an Apply: those of the roofline if it has them. */
const LIMIT_OF = new Map((D.roofline?.apply ?? []).map((id, k) => [id, k]));
function rate(id, name, amount) {
  const limit = LIMIT_OF.get(id);
  if (limit !== undefined && known(D.roofline[name][limit])) return D.roofline[name][limit];
  const ns = each(id);
  return amount[id] && ns ? amount[id] / ns : null;
}
const gflops = (id) => rate(id, "gflops", A.flops);
const gbs = (id) => rate(id, "gbs", A.bytes);
