// Tables: click a column to sort, click a row or use arrow keys to choose it. Cells are nodes.

const byValue = (a, b) =>
  typeof a === "string" ? a.localeCompare(b) : (a ?? -Infinity) - (b ?? -Infinity);

/** A column of figures. */
function numeric(field, title, help, node, more = {}) {
  return {
    field, title: help, hozAlign: "right", headerHozAlign: "right", sorter: byValue,
    headerSortStartingDir: "desc", titleFormatter: () => el("span", { title: help }, title),
    formatter: (cell) => node(cell.getValue(), cell.getData()), ...more,
  };
}

/** A column of texts. node: what a cell shows, by default the text itself. */
function textual(field, title, help, node, more = {}) {
  return {
    field, title: help, sorter: byValue, headerSortStartingDir: "asc",
    titleFormatter: () => el("span", { title: help }, title),
    formatter: (cell) => {
      const value = cell.getValue();
      return node ? node(value, cell.getData()) : el("span", { title: value }, value);
    },
    ...more,
  };
}

const timeNode = (ns) => figureNode(ns, TIMES);
const code = (string) => el("code", { title: string }, string);

/** A figure above a bar of a share of the largest. */
function barred(node, share, kind = "") {
  return el("span", { class: "barred" },
    el("span", { class: `bar-fill ${kind}`, style: { width: `${100 * Math.min(share, 1)}%` } }), node);
}

/** How the time of a row is divided: on the device, in transfers, on the CPU. */
const PLACES = [["device", "on the device", 4], ["transfers", "in transfers", 6], ["host", "on the CPU", 8]];
const PLACE_TITLES = { device: "device", transfers: "transfers", host: "CPU" };
const nothingNode = () => el("span", { class: "soft" }, "–");

function placesNode(_, row) {
  const sum = Math.max(1, PLACES.reduce((all, [name]) => all + row[name], 0));
  return el("span", { class: "places", title: PLACES.map(([name, label]) => `${time(row[name])} ${label}`).join(", ") },
    ...PLACES.filter(([name]) => row[name] > 0).map(([name, , k]) => el("i", { class: `fill s${k}`, style: { width: `${(100 * row[name]) / sum}%` } })));
}

/**
 * Make a table. name: what its rows are; rows: objects with id and search, a function that returns
 * {field: searchable texts}; choose: called with a row that was clicked.
 */
function makeTable(host, about) {
  const { name, columns, rows, sort, choose } = about;
  const shell = el("div", { class: "table", tabIndex: 0, role: "region", ariaLabel: `Table: ${name}` });
  host.append(shell);
  const inner = el("div");
  shell.append(inner);
  let keep = null;
  let ready = false;
  let wanted = null;
  const table = new tabulator.Tabulator(inner, {
    data: rows, columns, index: "id", height: "100%", layout: "fitDataStretch", rowHeight: 28,
    initialSort: [{ column: sort, dir: "desc" }], columnDefaults: { minWidth: 40, maxInitialWidth: 420 },
    placeholder: el("p", { class: "nothing" }, "No rows match the filter."),
  });
  const made = { shell, table, name, rows, shown: rows.length, onShown: () => {} };
  const refresh = () => {
    made.shown = keep ? rows.filter(keep).length : rows.length;
    made.onShown();
  };
  made.filter = (words, also) => {
    const terms = termsOf(words, rows);
    keep = terms.length || also
      ? (row) => (!also || also(row)) && terms.every(([field, term]) => searched(row, field).includes(term))
      : null;
    if (ready) {
      if (keep) table.setFilter(keep);
      else table.clearFilter();
    }
    refresh();
  };
  let marked = null;
  const mark = (row) => {
    marked?.classList.remove("is-chosen");
    marked?.removeAttribute("aria-selected");
    marked = row ? row.getElement() : null;
    marked?.classList.add("is-chosen");
    marked?.setAttribute("aria-selected", "true");
  };
  let chosen = null;
  /** Mark a row and scroll to it. */
  made.choose = (id) => {
    chosen = id;
    wanted = id;
    if (!ready || shell.hidden) return;
    const row = id === null ? false : table.getRow(id);
    mark(row || null);
    if (row && (!keep || keep(row.getData()))) table.scrollToRow(row, "center", false).catch(() => {});
    wanted = null;
  };
  made.show = (visible) => {
    shell.hidden = !visible;
    if (visible && ready) {
      table.redraw();
      if (wanted !== null) made.choose(wanted);
    }
  };
  table.on("tableBuilt", () => {
    ready = true;
    for (const title of inner.querySelectorAll(".tabulator-col.tabulator-sortable")) {
      title.tabIndex = 0;
    }
    if (keep) table.setFilter(keep);
    if (wanted !== null) made.choose(wanted);
    refresh();
  });
  table.on("rowClick", (event, row) => choose(row.getData()));
  shell.addEventListener("keydown", (event) => {
    const title = event.target.closest?.(".tabulator-col");
    if (title && (event.key === "Enter" || event.key === " ")) {
      title.click();
      event.preventDefault();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const row = chosen === null ? null : table.getRow(chosen);
      const next = row
        ? event.key === "ArrowDown" ? row.getNextRow() : row.getPrevRow()
        : table.getRows("active")[0];
      if (next) choose(next.getData());
      event.preventDefault();
    }
  });
  return made;
}

/** Normalise shapes for search: `50×200`, `(50, 200)` and `(50,200,)` become `(50x200)`. */
function plainShapes(words) {
  return words
    .replace(/(\d)\s*×\s*(?=\d)/g, "$1x")
    .replace(/\(\s*(\d+(?:\s*,\s*\d+)*)\s*,?\s*\)/g, (_, lengths) => `(${lengths.replace(/\s*,\s*/g, "x")})`);
}

/** The words of a filter as [field, text]; `op:tanh` searches one field, other words all. */
function termsOf(words, rows) {
  const fields = rows.length ? Object.keys(fieldsOf(rows[0])) : [];
  return plainShapes(words.toLowerCase()).split(/\s+/).filter(Boolean).map((word) => {
    const at = word.indexOf(":");
    const field = at > 0 ? word.slice(0, at) : "";
    return fields.includes(field) ? [field, word.slice(at + 1)] : ["", word];
  });
}

function fieldsOf(row) {
  if (typeof row.search === "function") {
    row.search = Object.fromEntries(Object.entries(row.search()).map(([field, found]) =>
      [field, plainShapes([found].flat().filter(Boolean).join("\n").toLowerCase())]));
    row.everything = Object.values(row.search).join("\n");
  }
  return row.search;
}

function searched(row, field) {
  const fields = fieldsOf(row);
  return field ? fields[field] ?? "" : row.everything;
}

/** Show in the input of a filter which fields it searches, and how to name one. */
function nameFields(input, table) {
  const fields = table?.rows.length ? Object.keys(fieldsOf(table.rows[0])) : [];
  input.placeholder = fields.length ? `Filter: ${fields.join(", ")}` : "Filter";
  input.title = fields.length ? `Searches ${fields.join(", ")}. One of them alone: ${fields[0]}:word` : "";
}

/** The rows of a table on paper: the largest, with the first columns except pictures. */
const ON_PAPER = 40;
const PAPER_COLUMNS = 8;
function paperTable({ name, columns, rows, sort }) {
  const shown = columns.filter((column) => column.headerSort !== false).slice(0, PAPER_COLUMNS);
  const largest = [...rows].sort((a, b) => byValue(b[sort], a[sort])).slice(0, ON_PAPER);
  const cellOf = (column, row) => column.formatter({ getValue: () => row[column.field], getData: () => row });
  const more = rows.length - largest.length;
  return el("section", {}, el("h3", {}, name),
    el("table", {}, el("thead", {}, el("tr", {}, ...shown.map((column) =>
      el("th", { class: column.hozAlign === "right" ? "number" : "" }, column.titleFormatter())))),
    el("tbody", {}, ...largest.map((row) => el("tr", {}, ...shown.map((column) =>
      el("td", { class: column.hozAlign === "right" ? "number" : "" }, cellOf(column, row))))))),
    more > 0 ? el("p", { class: "soft" }, `and ${plural(more, "row")} more`) : null);
}

/** Print the tables of all tabs, and folded elements unfolded. */
function printTables(host, entries) {
  const paper = el("div", { class: "paper" });
  host.after(paper);
  let folded = [];
  window.addEventListener("beforeprint", () => {
    paper.replaceChildren(...entries().map((make) => paperTable(make())));
    folded = [...document.querySelectorAll("main details:not([open])")];
    for (const each of folded) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    paper.replaceChildren();
    for (const each of folded) each.open = false;
  });
}

/** Make tabs of [name, a function that makes the table]; tables are made when they are shown. */
function makeTabs(tabs, host, entries, shown) {
  const made = new Map();
  const buttons = entries.map(([name], k) => el("button", {
    type: "button", role: "tab", id: `${tabs.id}-${k}`, on: { click: () => open(name) },
  }, name));
  tabs.replaceChildren(...buttons);
  host.replaceChildren();
  const open = (name) => {
    entries.forEach(([each], k) => {
      buttons[k].setAttribute("aria-selected", String(each === name));
      buttons[k].tabIndex = each === name ? 0 : -1;
    });
    if (!made.has(name)) made.set(name, entries.find(([each]) => each === name)[1]());
    for (const [each, table] of made) table.show(each === name);
    shown(name, made.get(name));
  };
  tabs.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = buttons.findIndex((b) => b.getAttribute("aria-selected") === "true");
    const next = (at + step + buttons.length) % buttons.length;
    open(entries[next][0]);
    buttons[next].focus();
  };
  return { open, made };
}
