// The graph of a function on a canvas: 10 000 nodes are too many for elements and chart libraries.

/** Edges over more rows than this are pale: nobody can follow one of thousands. */
const FAR = 12;
const BOX = { width: 168, height: 40, across: 186, down: 66 };

/** Make the graph in an element. choose: called with the Apply that is clicked. */
function makeGraph(host, choose) {
  const canvas = el("canvas");
  const tip = el("div", { class: "tip", hidden: true });
  const map = el("canvas", { class: "minimap", hidden: true });
  host.append(canvas, map, tip);
  const pen = canvas.getContext("2d");
  let f = null;
  let edges = [];
  let chosen = null;
  let marked = null;
  let hovered = null;
  let view = { x: 0, y: 0, scale: 1 };
  let width = 0;
  let height = 0;
  let waiting = false;
  let colors = {};
  const bounds = { width: 1, height: 1 };

  const x = (id) => f.columns[id - f.start] * BOX.across;
  const y = (id) => f.rows[id - f.start] * BOX.down;

  function draw() {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        if (f && width) paint();
      });
    }
  }

  function readColors() {
    colors = Object.fromEntries(["ink", "soft", "line", "accent", "panel", "edge", "python", "device", "transfer", "back"]
      .map((name) => [name, color(name)]));
  }

  // --- painting -----------------------------------------------------------------------------------

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = colors.back;
    pen.fillRect(0, 0, width, height);
    pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
    const seen = {
      left: -view.x / view.scale, right: (width - view.x) / view.scale,
      top: -view.y / view.scale, bottom: (height - view.y) / view.scale,
    };
    paintEdges(seen);
    for (let id = f.start; id < f.end; id += 1) {
      const left = x(id);
      const top = y(id);
      if (left > seen.right || left + BOX.width < seen.left) continue;
      if (top > seen.bottom || top + BOX.height < seen.top) continue;
      paintNode(id, left, top);
    }
    paintMap();
  }

  function paintEdges(seen) {
    const usual = new Path2D();
    const far = new Path2D();
    const near = new Path2D();
    for (const [from, to] of edges) {
      const y1 = y(from) + BOX.height;
      const y2 = y(to);
      if (y1 > seen.bottom || y2 < seen.top) continue;
      const x1 = x(from) + BOX.width / 2;
      const x2 = x(to) + BOX.width / 2;
      if (Math.min(x1, x2) > seen.right || Math.max(x1, x2) < seen.left) continue;
      const isNear = from === chosen || to === chosen;
      const path = isNear ? near : y2 - y1 > FAR * BOX.down ? far : usual;
      path.moveTo(x1, y1);
      if (view.scale < 0.15) path.lineTo(x2, y2);
      else {
        const bend = Math.min((y2 - y1) / 2, 90);
        path.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
      }
    }
    pen.lineWidth = Math.max(1.1, 0.7 / view.scale);
    pen.strokeStyle = colors.edge;
    pen.stroke(usual);
    pen.globalAlpha = 0.25;
    pen.stroke(far);
    pen.globalAlpha = 1;
    pen.lineWidth = Math.max(2, 1.6 / view.scale);
    pen.strokeStyle = colors.accent;
    pen.stroke(near);
  }

  function paintNode(id, left, top) {
    const fill = heat(A.ns[id] / f.peakNs);
    const dim = marked && !marked.has(id) && id !== chosen;
    pen.globalAlpha = dim ? 0.22 : 1;
    pen.fillStyle = rgb(fill);
    pen.beginPath();
    if (view.scale > 0.12) pen.roundRect(left, top, BOX.width, BOX.height, 7);
    else pen.rect(left, top, BOX.width, BOX.height);
    pen.fill();
    if (view.scale > 0.3) {
      pen.lineWidth = 1;
      const border = isTransfer(id) ? "transfer" : deviceOf(id) ? "device" : A.c[id] ? "line" : "python";
      pen.strokeStyle = colors[border];
      if (border !== "line") pen.lineWidth = border === "python" ? 2.5 : 1.5;
      pen.stroke();
    }
    if (view.scale > 0.32) paintLabel(id, left, top, inkOn(fill));
    pen.globalAlpha = 1;
    if (id === chosen || id === hovered) {
      pen.lineWidth = (id === chosen ? 3 : 1.6) / Math.min(view.scale, 1);
      pen.strokeStyle = colors.accent;
      pen.stroke();
    }
  }

  /** Zoomed in, two lines; zoomed out, the Op alone in readable letters. */
  function paintLabel(id, left, top, ink) {
    const isNear = view.scale > 0.62;
    pen.fillStyle = ink;
    pen.textBaseline = "middle";
    pen.font = `600 ${isNear ? 12 : 22}px system-ui, sans-serif`;
    const op = fitted(shortOp(opText(id)), BOX.width - 16, isNear);
    pen.fillText(op, left + 8, top + (isNear ? 13 : BOX.height / 2 + 1));
    if (!isNear) return;
    pen.font = "11px system-ui, sans-serif";
    pen.globalAlpha *= 0.85;
    const share = A.ns[id] / Math.max(1, f.thunk_ns);
    const below = A.count[id] ? `${time(A.ns[id])} · ${percent(share)}` : "not called";
    const where = deviceOf(id) ? (isTransfer(id) ? "copy" : deviceOf(id)) : A.c[id] ? "" : "Python";
    const told = deviceOf(id) && A.count[id] ? time(A.ns[id]) : below;
    pen.fillText(where ? `${told} · ${where}` : told, left + 8, top + 28);
    const number = `#${A.position[id]}`;
    pen.fillText(number, left + BOX.width - 8 - pen.measureText(number).width, top + 28);
  }

  const fittedTexts = { true: new Map(), false: new Map() };

  /** A text cut to a width in the pen's font; measured once zoomed in and once zoomed out. */
  function fitted(string, most, isNear) {
    const texts = fittedTexts[isNear];
    let found = texts.get(string);
    if (found === undefined) {
      found = string;
      if (pen.measureText(string).width > most) {
        let low = 0;
        let high = Math.min(string.length, 60);
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (pen.measureText(`${string.slice(0, middle)}…`).width <= most) low = middle;
          else high = middle - 1;
        }
        found = `${string.slice(0, low)}…`;
      }
      texts.set(string, found);
    }
    return found;
  }

  // --- the small map, if not all is in view ----------------------------------------------------

  let mapScale = [1, 1];
  let mapImage = null;

  function makeMap() {
    const w = Math.min(110, Math.max(18, bounds.width / 60));
    const h = Math.min(height - 16, Math.max(18, bounds.height / 40));
    map.style.width = `${w}px`;
    map.style.height = `${h}px`;
    map.width = Math.round(w);
    map.height = Math.max(1, Math.round(h));
    mapScale = [map.width / bounds.width, map.height / bounds.height];
    const grid = new Float64Array(map.width * map.height).fill(-1);
    for (let id = f.start; id < f.end; id += 1) {
      const to = Math.min(map.width - 1, Math.floor((x(id) + BOX.width) * mapScale[0]));
      const row = Math.min(map.height - 1, Math.floor((y(id) + BOX.height / 2) * mapScale[1]));
      for (let k = Math.floor(x(id) * mapScale[0]); k <= to; k += 1) {
        const at = row * map.width + k;
        grid[at] = Math.max(grid[at], A.ns[id] / f.peakNs);
      }
    }
    mapImage = new ImageData(map.width, map.height);
    grid.forEach((share, at) => {
      if (share >= 0) mapImage.data.set([...heat(share), 255], 4 * at);
    });
  }

  function paintMap() {
    const isAll = bounds.width * view.scale <= width && bounds.height * view.scale <= height;
    map.hidden = isAll;
    if (isAll) return;
    if (!mapImage) makeMap();
    const brush = map.getContext("2d");
    brush.putImageData(mapImage, 0, 0);
    const left = (-view.x / view.scale) * mapScale[0];
    const top = (-view.y / view.scale) * mapScale[1];
    const w = Math.max(3, (width / view.scale) * mapScale[0]);
    const h = Math.max(3, (height / view.scale) * mapScale[1]);
    brush.strokeStyle = colors.accent;
    brush.lineWidth = 1.5;
    brush.strokeRect(Math.max(left, 0.75), Math.max(top, 0.75),
      Math.min(w, map.width - 1.5), Math.min(h, map.height - 1.5));
  }

  function goTo(event) {
    const box = map.getBoundingClientRect();
    const atX = ((event.clientX - box.left) / box.width) * bounds.width;
    const atY = ((event.clientY - box.top) / box.height) * bounds.height;
    view.x = width / 2 - atX * view.scale;
    view.y = height / 2 - atY * view.scale;
    draw();
  }
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    goTo(event);
    event.stopPropagation();
  });
  map.addEventListener("pointermove", (event) => event.buttons && goTo(event));

  // --- the view -------------------------------------------------------------------------------------

  const limits = () => [Math.min(fitScale(), 0.2) / 1.5, 2.5];
  const fitScale = () =>
    Math.min((width - 32) / bounds.width, (height - 32) / bounds.height, 1.1);

  function zoom(factor, atX = width / 2, atY = height / 2) {
    const [least, most] = limits();
    const scale = Math.min(Math.max(view.scale * factor, least), most);
    view.x = atX - ((atX - view.x) * scale) / view.scale;
    view.y = atY - ((atY - view.y) * scale) / view.scale;
    view.scale = scale;
    draw();
  }

  function fit() {
    if (!f || !width) return;
    const scale = fitScale();
    view = {
      scale,
      x: (width - bounds.width * scale) / 2,
      y: Math.max((height - bounds.height * scale) / 2, 16),
    };
    draw();
  }

  function centre(id, scale = view.scale) {
    view.scale = scale;
    view.x = within(width / 2 - (x(id) + BOX.width / 2) * scale, width, bounds.width * scale);
    view.y = within(height / 2 - (y(id) + BOX.height / 2) * scale, height, bounds.height * scale);
    draw();
  }

  /** The offset of the graph, clamped to leave only a margin beyond its ends. */
  function within(begin, room, length) {
    if (length <= room) return (room - length) / 2;
    return Math.min(Math.max(begin, room - length - 28), 28);
  }

  /** Scroll to a node, as little as needed. */
  function reveal(id) {
    const left = x(id) * view.scale + view.x;
    const top = y(id) * view.scale + view.y;
    const isSeen = left > 0 && top > 0 && left + BOX.width * view.scale < width
      && top + BOX.height * view.scale < height;
    if (!isSeen || view.scale < 0.32) centre(id, Math.max(view.scale, 0.6));
    else draw();
  }

  function nodeAt(px, py) {
    const wx = (px - view.x) / view.scale;
    const wy = (py - view.y) / view.scale;
    for (let id = f.start; id < f.end; id += 1) {
      const left = x(id);
      const top = y(id);
      if (wx >= left && wx <= left + BOX.width && wy >= top && wy <= top + BOX.height) return id;
    }
    return null;
  }

  // --- mouse, fingers, keys -------------------------------------------------------------------------

  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!f) return;
    const before = fingers.get(event.pointerId);
    if (!before) {
      hover(nodeAt(event.offsetX, event.offsetY), event);
      return;
    }
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    const now = [event.offsetX, event.offsetY];
    if (other) {
      const gap = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      zoom(gap(now) / gap(before), other[0], other[1]);
    }
    view.x += now[0] - before[0];
    view.y += now[1] - before[1];
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    fingers.set(event.pointerId, now);
    hover(null);
    draw();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, (event) => {
      if (f && name === "pointerup" && moved < 5 && fingers.has(event.pointerId)) {
        const id = nodeAt(event.offsetX, event.offsetY);
        if (id !== null) choose(id);
      }
      fingers.delete(event.pointerId);
    });
  }
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const step = event.deltaMode === 1 ? 24 * event.deltaY : event.deltaY;
    zoom(Math.exp(-Math.min(Math.max(step, -200), 200) / 320), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("dblclick", () => zoom(1.8));

  function hover(id, event) {
    if (id !== hovered) {
      hovered = id;
      tip.hidden = id === null;
      canvas.style.cursor = id === null ? "grab" : "pointer";
      if (id !== null) {
        const line = linesOf(id)[0] ?? -1;
        tip.replaceChildren(
          el("code", {}, cut(opText(id), 200)),
          el("div", {}, `${time(A.ns[id])} · ${percent(A.ns[id] / Math.max(1, f.thunk_ns))} · ${plural(A.count[id], "call")}`),
          line >= 0 ? el("div", { class: "soft" }, `${lineText(line)}  ${cut(lineSource(line), 90)}`) : null);
      }
      draw();
    }
    if (id !== null && event) {
      const right = event.offsetX > width / 2;
      tip.style.left = right ? "auto" : `${event.offsetX + 14}px`;
      tip.style.right = right ? `${width - event.offsetX + 14}px` : "auto";
      const low = event.offsetY > height / 2;
      tip.style.top = low ? "auto" : `${event.offsetY + 14}px`;
      tip.style.bottom = low ? `${height - event.offsetY + 10}px` : "auto";
    }
  }

  /** The node that an arrow key moves to: along an edge, or beside the chosen one. */
  function neighbour(key) {
    const nearest = (ids) => ids.reduce((best, id) =>
      (best === null || Math.abs(x(id) - x(chosen)) < Math.abs(x(best) - x(chosen)) ? id : best), null);
    if (key === "ArrowUp") return nearest(reads(chosen));
    if (key === "ArrowDown") return nearest(readers(chosen));
    const sign = key === "ArrowLeft" ? -1 : 1;
    const beside = [];
    for (let id = f.start; id < f.end; id += 1) {
      if (y(id) === y(chosen) && sign * (x(id) - x(chosen)) > 0) beside.push(id);
    }
    return nearest(beside);
  }

  host.addEventListener("keydown", (event) => {
    const { key } = event;
    if (!f || event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "+" || key === "=") zoom(1.3);
    else if (key === "-") zoom(1 / 1.3);
    else if (key === "0") fit();
    else if (key.startsWith("Arrow") && chosen !== null) {
      const next = neighbour(key);
      if (next !== null) choose(next);
    } else return;
    event.preventDefault();
  });

  function resize() {
    const box = host.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const isFirst = !width;
    if (!isFirst) {
      view.x += (box.width - width) / 2;
      view.y += (box.height - height) / 2;
    }
    [width, height] = [box.width, box.height];
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    mapImage = null;
    if (isFirst) start();
    // Draw at once: an empty canvas would flash until the next frame.
    if (f) paint();
  }
  new ResizeObserver(resize).observe(host);
  onColors(() => {
    readColors();
    mapImage = null;
    draw();
  });
  readColors();

  /** Show the whole graph if it is readable, else the chosen node. */
  function start() {
    if (!f || !width) return;
    if (fitScale() >= 0.34 || chosen === null) fit();
    else centre(chosen, 0.6);
  }

  return {
    /** Show a function with an Apply chosen in it; ids: a Set of Applys to highlight. */
    show(wanted, id, ids) {
      const isOther = wanted !== f;
      chosen = id;
      marked = ids;
      if (isOther) {
        f = wanted;
        mapImage = null;
        edges = [];
        let right = 0;
        let bottom = 0;
        for (let k = f.start; k < f.end; k += 1) {
          for (const r of reads(k)) edges.push([r, k]);
          right = Math.max(right, x(k));
          bottom = Math.max(bottom, y(k));
        }
        bounds.width = right + BOX.width;
        bounds.height = bottom + BOX.height;
        start();
      } else if (id !== null) reveal(id);
      else if (ids?.size) reveal([...ids][0]);
      draw();
    },
    zoom,
    fit,
    reveal,
    /** The middle of a node in coordinates of the page. */
    place(id) {
      const box = canvas.getBoundingClientRect();
      return [
        box.left + (x(id) + BOX.width / 2) * view.scale + view.x,
        box.top + (y(id) + BOX.height / 2) * view.scale + view.y,
      ];
    },
  };
}
