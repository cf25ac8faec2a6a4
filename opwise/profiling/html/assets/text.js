// The data of the page, formats of figures, and elements: a text is never read as HTML.

const D = JSON.parse(document.getElementById("data").textContent);

const text = (number) => D.texts[number] ?? "";
const byId = (id) => document.getElementById(id);

/** Make an element with properties; class, style, data and on (listeners) are special. */
function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name === "class") made.className = value;
    else if (name === "style") for (const [key, v] of Object.entries(value)) made.style.setProperty(key, v);
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "on") for (const [event, f] of Object.entries(value)) made.addEventListener(event, f);
    else if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const whole = (value) => GROUPED.format(value).replaceAll(",", "\u202f");

/** A number with three digits, two below 1; large ones whole, with thin spaces. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95) return whole(value);
  if (size >= 9.995) return value.toFixed(1);
  return size >= 0.995 || !size ? value.toFixed(2) : value.toPrecision(2);
}

function scaled(value, units) {
  for (let k = 0; k < units.length; k += 1) {
    const [unit, factor] = units[k];
    if (Math.abs(value) < 999.5 * factor || k === units.length - 1) return [value / factor, unit];
  }
  return [value, ""];
}

const TIMES = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const SIZES = [["B", 1], ["KiB", 1024], ["MiB", 1024 ** 2], ["GiB", 1024 ** 3]];
const COUNTS = [["", 1], ["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]];

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

function figure(value, units) {
  if (!known(value)) return ["–", ""];
  const [number, unit] = scaled(value, units);
  return [Number.isInteger(number) && unit === units[0][0] ? whole(number) : digits(number), unit];
}

const joined = ([number, unit]) => (unit ? `${number}\u202f${unit}` : number);
const time = (ns) => joined(figure(ns, TIMES));
const size = (bytes) => joined(figure(bytes, SIZES));
const count = (n) => joined(figure(n, COUNTS));
const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;

function percent(share) {
  if (!known(share)) return "–";
  const value = 100 * share;
  if (value === 0) return "0\u202f%";
  if (value < 0.01) return "<0.01\u202f%";
  return `${value >= 9.95 ? value.toFixed(1) : value.toFixed(2)}\u202f%`;
}

/** A figure with its unit set apart, for cells and cards. */
function figureNode(value, units) {
  const [number, unit] = figure(value, units);
  return el("span", { class: "figure" }, number, unit ? el("span", { class: "unit" }, `\u202f${unit}`) : null);
}

const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

/** The text of an Op, without the frame that all elementwise Ops have in common. */
function shortOp(op) {
  if (op.includes("} + ") || op.includes(" + Elemwise{")) return op; // names of several Ops
  const found = /^Elemwise\{([^]*?)(,no_inplace)?\}(\[[^\]]*\])?$/.exec(op);
  return (found ? found[1] : op).replace(/^Composite\{([^]*)\}$/, "$1");
}

const cut = (string, most) => (string.length > most ? `${string.slice(0, most - 1)}…` : string);

// --- colours --------------------------------------------------------------------------------------

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const onPaper = (is) => document.documentElement.classList.toggle("on-paper", is);
const isDark = () => darkScheme.matches && !document.documentElement.classList.contains("on-paper");
window.addEventListener("beforeprint", () => onPaper(true));
window.addEventListener("afterprint", () => onPaper(false));

/** Redraw when colours change: in the other scheme, and on paper, which is light. */
function onColors(draw) {
  darkScheme.addEventListener("change", draw);
  for (const moment of ["beforeprint", "afterprint"]) window.addEventListener(moment, draw);
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const HEAT = {
  light: [[238, 241, 246], [253, 226, 163], [249, 164, 84], [226, 88, 51], [158, 24, 44]],
  dark: [[43, 51, 66], [98, 70, 50], [170, 88, 38], [235, 118, 52], [255, 190, 96]],
};

/** The colour of a share of the largest time; small shares differ too. */
function heat(share) {
  const stops = isDark() ? HEAT.dark : HEAT.light;
  const at = Math.min(Math.max(share, 0), 1) ** 0.45 * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((v, k) => Math.round(v + (stops[low + 1][k] - v) * (at - low)));
}

const rgb = (c) => `rgb(${c[0]},${c[1]},${c[2]})`;
const inkOn = (c) => (0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] > 140 ? "#16202e" : "#ffffff");
const series = (k) => color(`s${(k % 8) + 1}`);

/** A bar of parts, [name, value, colour number]; its legend names those of at least a share. */
function stacked(parts, units, least = 0) {
  const sum = parts.reduce((all, part) => all + Math.max(part[1], 0), 0);
  const shown = parts.filter((part) => part[1] > 0);
  return el("div", { class: "stack" },
    el("div", { class: "stack-bar" }, ...shown.map(([name, value, k]) =>
      el("span", {
        class: `fill s${k}`, title: `${name}: ${joined(figure(value, units))} (${percent(value / sum)})`,
        style: { width: `${(100 * value) / sum}%` },
      }))),
    el("div", { class: "stack-legend" }, ...shown.filter((part) => part[1] >= least * sum).map(([name, value, k]) =>
      el("span", {}, el("i", { class: `dot s${k}` }), `${name} `, el("b", {}, percent(value / sum))))));
}

function facts(pairs) {
  return el("dl", { class: "facts" }, ...pairs.filter(Boolean).flatMap(([name, value]) => [
    el("dt", {}, name), el("dd", {}, value)]));
}

function showEnvironment(sides) {
  byId("environment").append(...sides.flatMap(([name, pairs]) => pairs.map(([key, value]) =>
    el("div", {}, el("dt", {}, `${name}${text(key)}`), el("dd", {}, text(value))))));
}
