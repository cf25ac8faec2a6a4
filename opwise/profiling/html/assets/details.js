// The panel beside the table: details of one Apply, or of a row of another table.

function showDetails() {
  const host = byId("details");
  if (state.group) host.replaceChildren(...groupDetails(state.group));
  else if (state.apply !== null) host.replaceChildren(...applyDetails(state.apply));
  else host.replaceChildren(el("p", { class: "nothing" }, "Click a row or a node to see its details here."));
  host.scrollTop = 0;
}

function heading(op, ...below) {
  return el("header", {}, el("code", { class: "op" }, op), el("p", { class: "chips" }, ...below));
}

const chip = (label, kind, title) => el("span", { class: `chip ${kind ?? ""}`, title }, label);

function applyDetails(id) {
  const f = functionOf(id);
  const isCalled = A.count[id] > 0;
  // the bytes of a transfer have a row of their own
  const [flops, bytes] = [gflops(id), isTransfer(id) ? null : gbs(id)];
  return [
    heading(opText(id),
      chip(`#${A.position[id]}`, "", "position in the order of execution"),
      text(A.loop[id]) ? chip(`in ${cut(text(A.loop[id]), 60)}`, "", "what repeats it") : null,
      deviceOf(id) ? chip(deviceOf(id), "is-device", `runs on ${deviceOf(id)}`)
        : A.c[id] ? chip("C", "is-c", "runs in C") : chip("Python", "is-python", text(A.why[id])),
      isTransfer(id) ? chip("copy", "is-transfer", "moves an array between CPU and device") : null,
      whyOnHost(id) ? chip("on the CPU", "is-host", whyOnHost(id)) : null,
      FUNCTIONS.length > 1 ? chip(cut(f.label, 40), "", f.label) : null,
      ...scopesOf(id).slice(0, 4).map((scope) => chip(scope, "is-scope", "scope"))),
    A.c[id] ? null : el("p", { class: "why" }, text(A.why[id])),
    whyOnHost(id) ? el("p", { class: "why" }, `Not on the device: ${whyOnHost(id)}`) : null,
    isCalled ? facts([
      ["time", el("span", {}, el("b", {}, time(A.ns[id])), ` · ${percent(A.ns[id] / Math.max(1, f.thunk_ns))} of its function's Applys`)],
      A.inner[id] ? ["inside", `${time(A.inner[id])} in the Applys inside it, which have rows of their own; the time above is the overhead of the loop`] : null,
      ["a call", `${time(each(id))} · ${plural(A.count[id], "call")}`],
      A.estimated[id] ? ["how", ESTIMATED] : null,
      timed(id, A.most) === null ? null : ["spread", `${time(A.least[id])} least · ${time(A.median[id])} median · ${time(A.p95[id])} 95th percentile · ${time(A.most[id])} most`],
      flops || bytes ? ["rate", [
        flops ? `${digits(flops)} GFLOP/s (${count(A.flops[id])}flop a call)` : null,
        bytes ? `${digits(bytes)} GB/s (${size(A.bytes[id])} a call)` : null,
      ].filter(Boolean).join(" · ")] : null,
      text(A.algorithm[id])
        ? ["algorithm", `${text(A.algorithm[id])}: ${text(A.why_algorithm[id])}`]
        : null,
      ...deviceFacts(id),
      limitFact(id),
    ]) : el("p", { class: "nothing" }, "Not called."),
    histogram(id),
    sourceBlock(id),
    arraysBlock(id),
    originsBlock(id),
  ].filter(Boolean);
}

/** What the CPU did for an Apply on a device, and what a transfer moved. */
function deviceFacts(id) {
  if (!deviceOf(id)) return [];
  const [asked, waited, moved] = [DEVICES.asked[id], DEVICES.waited[id], DEVICES.moved[id]];
  return [
    ["launching", `${time(asked / A.count[id])} a call${waited ? ` · waiting ${time(waited / A.count[id])}` : ""}, on the CPU`],
    moved ? ["copies", [`${size(moved)} a call`, A.ns[id] ? `${digits((moved * A.count[id]) / A.ns[id])} GB/s` : null].filter(Boolean).join(" · ")] : null,
  ];
}

function limitFact(id) {
  const k = LIMIT_OF.get(id);
  if (k === undefined) return null;
  const { share, bound, gain_s: gain, rough } = D.roofline;
  return ["limit", [
    known(share[k]) ? `${rough[k] ? "~" : ""}${percent(share[k])} of the limit${rough[k] ? ", by rough costs of functions such as exp" : ""}` : null,
    text(bound[k]) ? `bound by ${text(bound[k])}` : null,
    known(gain[k]) ? `${time(gain[k] * 1e9)} could be gained` : null,
  ].filter(Boolean).join(" · ")];
}

/** A histogram of the times of calls, on a logarithmic axis. */
function histogram(id) {
  const pairs = D.histograms[id];
  if (!pairs || pairs.length < 4) return null;
  const low = pairs[0];
  const high = pairs[pairs.length - 2];
  const buckets = new Map();
  // At most fifty bars or so: neighbours are joined.
  const step = Math.max(1, Math.ceil((high - low + 1) / 48));
  for (let k = 0; k < pairs.length; k += 2) {
    const at = Math.floor((pairs[k] - low) / step);
    buckets.set(at, (buckets.get(at) ?? 0) + pairs[k + 1]);
  }
  const most = Math.max(...buckets.values());
  const bars = [];
  for (let at = 0; at <= Math.floor((high - low) / step); at += 1) {
    const calls = buckets.get(at) ?? 0;
    const [from, to] = [D.buckets[low + at * step], D.buckets[low + (at + 1) * step] ?? D.buckets.at(-1)];
    bars.push(el("span", {
      title: `${plural(calls, "call")} of ${time(from)} to ${time(to)}`,
      style: { height: calls ? `${Math.max(4, 100 * (calls / most))}%` : "0" },
    }));
  }
  return el("figure", { class: "histogram" },
    el("div", { class: "bars", role: "img", ariaLabel: "Histogram of the times of calls" }, ...bars),
    el("figcaption", {}, el("span", {}, time(D.buckets[low])), el("span", {}, "calls by time"),
      el("span", {}, time(D.buckets[high + 1] ?? D.buckets.at(-1)))));
}

function lineNode(line, note) {
  return el("div", { class: "source", title: linePath(line) },
    el("span", { class: "place" }, lineText(line) || "unknown line", note ? el("em", {}, ` ${note}`) : null),
    el("code", {}, lineSource(line) || "(no source)"));
}

function sourceBlock(id) {
  const own = linesOf(id);
  const of = [...new Set(A.origins[id].map((o) => D.origins.of[o]))].filter((line) => line >= 0);
  if (!own.length && !of.length) return null;
  return el("section", {}, el("h3", {}, "Written at"),
    ...own.slice(0, 8).map((line) => lineNode(line)),
    ...of.slice(0, 8).map((line) => lineNode(line, "gradient of this line")));
}

const SHARES = { c: "created", i: "overwrites an input", v: "a view" };

function arraysBlock(id) {
  const f = functionOf(id);
  const from = (k) => {
    const r = A.reads[id][k];
    return r >= 0 && f.start + r < id ? ["from ", applyLink(f.start + r)] : ["an argument or a shared variable"];
  };
  const shares = text(A.shares[id]);
  const users = readers(id);
  return el("section", {}, el("h3", {}, "Arrays of the last call"),
    el("table", { class: "plain" },
      ...A.inputs[id].map((t, k) => el("tr", {}, el("th", {}, "in"), el("td", {}, text(t)), el("td", {}, ...from(k)))),
      ...A.outputs[id].map((t, k) => el("tr", {}, el("th", {}, "out"), el("td", {}, text(t)), el("td", {}, SHARES[shares[k]] ?? "")))),
    users.length ? el("p", { class: "users" }, "read by ", ...users.slice(0, 6).flatMap((u) => [applyLink(u), " "]),
      users.length > 6 ? `and ${users.length - 6} more` : null) : null,
    el("details", {}, el("summary", {}, "The Apply with its operands"),
      el("code", { class: "wrap" }, opText(id) + text(A.operands[id]))));
}

function originsBlock(id) {
  const origins = A.origins[id];
  if (origins.length < 2) return null;
  return el("section", {}, el("h3", {}, `Computes ${origins.length} of the program's Applys`),
    el("table", { class: "plain" }, ...origins.slice(0, 60).map((o) => el("tr", {},
      el("td", {}, code(text(D.origins.op[o]))),
      el("td", { title: linePath(D.origins.line[o]) },
        D.origins.of[o] >= 0 ? `gradient of ${lineText(D.origins.of[o])}` : lineText(D.origins.line[o])),
      el("td", {}, text(D.origins.scope[o]))))),
    origins.length > 60 ? el("p", { class: "soft" }, `and ${origins.length - 60} more`) : null);
}

// --- rows of other tables -------------------------------------------------------------------------

function groupDetails(group) {
  const { row } = group;
  const ids = idsOf(group);
  const isLine = group.kind === "line" && group.key >= 0;
  return [
    heading(isLine ? lineText(group.key) : row.label, chip(group.kind), chip(plural(ids.length, "Apply"))),
    isLine ? lineNode(group.key) : null,
    facts([
      ["time", el("span", {}, el("b", {}, time(row.ns)), ` · ${percent(row.share)}`)],
      ...(DEVICES ? PLACES.filter(([name]) => row[name]).map(([name, label]) => [label, `${time(row[name])} · ${percent(row[name] / Math.max(row.ns, 1))} of it`]) : []),
      row.gradient ? ["gradient", `${time(row.gradient)} · ${percent(row.gradient / Math.max(row.ns, 1))} of it`] : null,
      ["runs", whole(row.calls)],
    ]),
    el("p", {}, el("button", { type: "button", on: { click: () => showOnly(group) } }, "Show these Applys in the table")),
    el("section", {}, el("h3", {}, "Slowest Applys in it"),
      el("ol", { class: "applys" }, ...ids.slice(0, 25).map((id) => el("li", {},
        applyLink(id), el("span", { class: "soft" }, ` ${time(A.ns[id])}`))))),
  ].filter(Boolean);
}
