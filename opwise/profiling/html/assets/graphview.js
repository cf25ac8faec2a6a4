// Draws a graph as SVG: drag the ground to move it, a node to place it, turn the wheel to enlarge.
// A node with a dashed border has a graph inside; a double click opens it.

const WIDE = 150;
const HIGH = 92;
const FORM = { width: 124, height: 32 };
const KINDS = [
  ["input", "limegreen"], ["constant", "SpringGreen"], ["shared", "YellowGreen"],
  ["output", "dodgerblue"], ["unused", "lightgrey"], ["Op", "#e8ebf2"],
];
const find = (id) => document.getElementById(id);
const svg = document.querySelector("svg");
const trail = [{ name: "", graph: JSON.parse(find("data").textContent) }];
let view = { x: 0, y: 0, scale: 1 };
let items = [];
let edges = [];
let byTime = false;
let chosen = null;

function make(tag, attributes, parent) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (parent) parent.append(element);
  return element;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const graph = () => trail[trail.length - 1].graph;
const root = make("g", {}, svg);

function duration(seconds) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [unit, name] = units.find(([size]) => seconds >= size) || units[3];
  return `${(seconds / unit).toPrecision(3)} ${name}`;
}

function place() {
  root.classList.toggle("close", view.scale > 1.1); // labels of edges would overlap
  root.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
}

function fit() {
  const xs = items.map((item) => item.x);
  const ys = items.map((item) => item.y);
  const [left, right] = [Math.min(...xs) - WIDE / 2, Math.max(...xs) + WIDE / 2];
  const [top, bottom] = [Math.min(...ys) - HIGH / 2, Math.max(...ys) + HIGH / 2];
  const { width, height } = svg.getBoundingClientRect();
  const scale = Math.min(width / (right - left), height / (bottom - top), 1.4);
  view = {
    scale, x: width / 2 - (scale * (left + right)) / 2, y: height / 2 - (scale * (top + bottom)) / 2,
  };
  place();
}

function colorOf(node) {
  if (!byTime || node.kind !== "apply") return node.color || "#e8ebf2";
  if (!node.time) return "#ffffff";
  const most = Math.max(...graph().nodes.map((other) => (other.time ? other.time[0] : 0)));
  return `hsl(10 85% ${Math.round(96 - (44 * node.time[0]) / (most || 1))}%)`;
}

function route(edge) {
  const { from, to } = edge;
  const down = to.y >= from.y;
  const [y1, y2] = down
    ? [from.y + FORM.height / 2, to.y - FORM.height / 2]
    : [from.y - FORM.height / 2, to.y + FORM.height / 2];
  const bend = Math.max(Math.abs(y2 - y1) / 2, 18) * (down ? 1 : -1);
  edge.path.setAttribute("d", `M${from.x} ${y1}C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}`);
  edge.text.setAttribute("x", (from.x + to.x) / 2);
  edge.text.setAttribute("y", (y1 + y2) / 2);
}

function move(item) {
  item.group.setAttribute("transform", `translate(${item.x} ${item.y})`);
  for (const edge of edges) if (edge.from === item || edge.to === item) route(edge);
}

function about(node) {
  const lines = [node.detail || node.label];
  if (node.label && node.detail && node.label !== node.detail) lines.unshift(node.label);
  if (node.time) lines.push(`${duration(node.time[0])} of ${duration(node.time[1])}`);
  if (node.line) lines.push(node.line);
  if (graph().inside[node.name]) lines.push("double click: the graph inside");
  return lines.join("\n");
}

function choose(item) {
  chosen = item;
  const near = new Set([item]);
  for (const edge of edges) {
    const touches = item && (edge.from === item || edge.to === item);
    if (touches) near.add(edge.from).add(edge.to);
    edge.group.classList.toggle("near", Boolean(touches));
    edge.group.classList.toggle("faint", Boolean(item) && !touches);
  }
  for (const each of items) each.group.classList.toggle("faint", Boolean(item) && !near.has(each));
  find("about").textContent = item ? about(item.node) : "";
}

function search(text) {
  choose(null);
  const wanted = text.toLowerCase();
  for (const item of items) {
    const known = `${item.node.label} ${item.node.detail} ${item.node.line}`.toLowerCase();
    item.group.classList.toggle("faint", Boolean(wanted) && !known.includes(wanted));
  }
}

function draw() {
  root.replaceChildren();
  const { nodes, inside } = graph();
  const [below, above] = [make("g", {}, root), make("g", {}, root)];
  items = nodes.map((node) => {
    const group = make("g", { class: inside[node.name] ? "node opens" : "node" }, above);
    const { width, height } = FORM;
    const form = node.box
      ? make("rect", { x: -width / 2, y: -height / 2, width, height, rx: 4 }, group)
      : make("ellipse", { rx: width / 2, ry: height / 2 }, group);
    form.setAttribute("class", "form");
    form.setAttribute("fill", colorOf(node));
    make("text", {}, group).textContent = short(node.label || "", 18);
    const item = { node, group, form, x: node.column * WIDE, y: node.row * HIGH };
    group.addEventListener("pointerdown", (event) => drag(event, item));
    group.addEventListener("dblclick", () => inside[node.name] && open(node));
    return item;
  });
  edges = graph().edges.map((edge) => {
    const group = make("g", { class: "edge" }, below);
    const path = make("path", {}, group);
    if (edge.color) path.style.stroke = edge.color;
    const text = make("text", {}, group);
    text.textContent = short(edge.label || "", 22);
    return { from: items[edge.from], to: items[edge.to], group, path, text };
  });
  items.forEach(move);
  choose(null);
  find("path").textContent = trail.map((step) => step.name).filter(Boolean).join(" › ");
  find("back").disabled = trail.length === 1;
  find("times").hidden = !nodes.some((node) => node.time);
  fit();
}

function open(node) {
  trail.push({ name: node.label, graph: graph().inside[node.name] });
  draw();
}

function drag(event, item) {
  event.stopPropagation();
  const start = { x: event.clientX, y: event.clientY };
  const from = item ? { x: item.x, y: item.y } : { ...view };
  let moved = false;
  const during = (now) => {
    const [dx, dy] = [now.clientX - start.x, now.clientY - start.y];
    moved = moved || Math.abs(dx) + Math.abs(dy) > 3;
    if (item && moved) {
      [item.x, item.y] = [from.x + dx / view.scale, from.y + dy / view.scale];
      move(item);
    } else if (moved) {
      [view.x, view.y] = [from.x + dx, from.y + dy];
      place();
    }
  };
  const end = () => {
    window.removeEventListener("pointermove", during);
    window.removeEventListener("pointerup", end);
    if (!moved) choose(item === chosen ? null : item);
  };
  window.addEventListener("pointermove", during);
  window.addEventListener("pointerup", end);
}

svg.addEventListener("pointerdown", (event) => drag(event, null));
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const factor = Math.exp(-event.deltaY / 600);
  view = { scale: view.scale * factor, x: x - (x - view.x) * factor, y: y - (y - view.y) * factor };
  place();
}, { passive: false });
find("fit").addEventListener("click", fit);
find("back").addEventListener("click", () => { trail.pop(); draw(); });
find("find").addEventListener("input", (event) => search(event.target.value));
find("times").addEventListener("click", (event) => {
  byTime = !byTime;
  event.target.setAttribute("aria-pressed", String(byTime));
  for (const item of items) item.form.setAttribute("fill", colorOf(item.node));
});
for (const [name, color] of KINDS) {
  const entry = document.createElement("span");
  const mark = document.createElement("i");
  mark.style.background = color;
  entry.append(mark, name);
  find("legend").append(entry);
}
draw();
document.documentElement.dataset.ready = "yes";
