// The map of limits, and the plane of the edge that is chosen: its color is a number that
// was computed beforehand on a grid, a front parts it, and a point moves in it.
import { colorsOf, fitted, short } from "./exhibit.mjs";

// Names of the numbers, and those whose name stands on the left; their places and the
// pairs that are joined, in percent of the map.
const NAMES = { L: "depth", n: "width", H: "heads", m: "tokens", d: "dimension", "ε": "step", "β": "inverse temp.", t: "time" };
const BESIDE = ["m", "t"];
const NODES = { L: [12, 9], n: [50, 9], H: [85, 9], m: [50, 36], d: [85, 36], "ε": [12, 68], "β": [85, 68], t: [50, 92] };
const EDGES = ["Ln", "nH", "mε", "εt", "βt", "mβ", "md", "mt"];
const SVG = "http://www.w3.org/2000/svg";

const KINDS = { wide: "exhibit-wide", sharp: "exhibit-sharp", none: "exhibit-none" };

// Where on its line a label stands: two of them make room for the one between them.
const SHARES = { "mβ": 0.56, "βt": 0.6 };
const between = ([a, b], [c, d], share = 0.5) => [a + share * (c - a), b + share * (d - b)];
const drawn = (tag, attributes, parent) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
};

// The rows, or columns, of a walk, and the seconds for each.
const WALKS = { "Right first": ["up", "across"], "Up first": ["across", "up"] };
const LEVELS = [0, 0.25, 0.5];
const SECONDS = 1.2;

export default ({ stage, state, values, act, put, redraw }) => {
  const { side } = state;
  const figure = stage.closest("figure");
  const [map, canvas] = ["div", "canvas"].map((tag) => document.createElement(tag));
  map.className = "exhibit-map";
  canvas.className = "exhibit-plane";
  canvas.setAttribute("aria-hidden", "true");
  stage.append(map, canvas);
  const picture = drawn("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" }, map);
  const lines = EDGES.map(([from, to]) => {
    const [[x1, y1], [x2, y2]] = [NODES[from], NODES[to]];
    return drawn("line", { x1, y1, x2, y2, stroke: "currentColor", "vector-effect": "non-scaling-stroke" }, picture);
  });
  lines.forEach((line, k) => line.setAttribute("class", KINDS[state.kinds[k]]));
  for (const [name, [x, y]] of Object.entries(NODES)) {
    const node = document.createElement("span");
    node.textContent = name;
    node.dataset.name = NAMES[name];
    node.classList.toggle("exhibit-beside", BESIDE.includes(name));
    Object.assign(node.style, { left: `${x}%`, top: `${y}%` });
    map.append(node);
  }
  const choices = figure.querySelector(".exhibit-choice");
  const link = document.createElement("a");
  link.className = "exhibit-section";
  map.append(choices, link);
  const labels = [...choices.querySelectorAll("label")];
  labels.forEach((label, k) => {
    const [x, y] = between(NODES[EDGES[k][0]], NODES[EDGES[k][1]], SHARES[EDGES[k]]);
    Object.assign(label.style, { left: `${x}%`, top: `${y}%` });
  });
  const named = [...figure.querySelectorAll(".exhibit-controls > label")];
  const said = [...figure.querySelectorAll(".exhibit-controls > output")];
  const inputs = [...figure.querySelectorAll(".exhibit-controls > input")];
  let colors, held = false, walk = null, opens; // where the point is at first
  const paintings = new Map();

  const grid = (i, j, edge = values.edge) => state.grids[(edge * side + i) * side + j];
  // The place of the network whose numbers are given, on the planes that have both; a dot
  // there is full, and any other is hollow.
  const homeOf = () => state.homes.slice(2 * values.edge, 2 * values.edge + 2);
  const isHome = () => {
    const [x, y] = homeOf();
    return Math.hypot(values.across - x, values.up - y) < 1e-3;
  };
  const goHome = () => {
    const [x, y] = homeOf();
    if (x < 0) return;
    put("across", x);
    put("up", y);
  };
  // Bilinear in columns and rows of the grid; the rows of some planes follow the front.
  const valueAt = (across, up, edge = values.edge) => {
    const x = across * (side - 1), j = Math.min(side - 2, Math.floor(x)), b = x - j;
    const reach = state.reaches[edge];
    if (reach) {
      const [left, right] = [0, 1].map((k) => state.along[edge * side + j + k]);
      const far = (up - (1 - b) * left - b * right) * Math.sinh(state.dense) / reach;
      up = Math.min(1, Math.max(0, (1 + Math.asinh(far) / state.dense) / 2));
    }
    const y = up * (side - 1), i = Math.min(side - 2, Math.floor(y)), a = y - i;
    const [below, above] = [i, i + 1].map((row) => (1 - b) * grid(row, j, edge) + b * grid(row, j + 1, edge));
    return (1 - a) * below + a * above;
  };
  const value = () => valueAt(...places());
  const ends = () => state.ends.slice(4 * values.edge, 4 * values.edge + 4);
  const axes = () => state.axes[values.edge].split("|");
  const scale = (k) => ends().slice(2 * k, 2 * k + 2);
  const numbers = () => [values.across, values.up].map((place, k) => {
    const [low, high] = scale(k);
    const number = low * (high / low) ** place;
    return state.whole[2 * values.edge + k] ? Math.round(number) : number;
  });
  const places = () => numbers().map((number, k) => {
    const [low, high] = scale(k);
    return Math.log(number / low) / Math.log(high / low);
  });
  // How blue a value is, from 0 to 1.
  const blue = (measured, edge) => {
    const half = 100 * state.halves[edge];
    return half ? measured / (measured + half) : measured / 100;
  };
  // A pixel for each of so many values, drawn larger: the browser fills in between. A
  // front along which the grid is dense is seen with more of them.
  const painted = (edge) => {
    const count = state.reaches[edge] ? 4 * side - 3 : side;
    const key = `${edge} ${colors.accent}`;
    if (paintings.has(key)) return paintings.get(key);
    const small = document.createElement("canvas");
    small.width = small.height = count;
    const pen = small.getContext("2d");
    pen.fillStyle = colors.accent;
    for (let i = 0; i < count; i++) {
      for (let j = 0; j < count; j++) {
        pen.globalAlpha = blue(valueAt(j / (count - 1), i / (count - 1), edge), edge);
        pen.fillRect(j, count - 1 - i, 1, 1);
      }
    }
    paintings.set(key, small);
    return small;
  };
  // A large number as it is written in a text: a power of ten, or two digits that mean something.
  const shown = (value) => {
    const exponent = Math.log10(value);
    if (value < 1e3) return short(value);
    if (value >= 1e5 && Number.isInteger(exponent)) return `10${[...String(exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
    return (value < 1e5 ? Math.round(value) : Number(value.toPrecision(2))).toLocaleString("en");
  };
  const label = () => {
    labels.forEach((each, k) => each.classList.toggle("exhibit-chosen", k === values.edge));
    lines.forEach((line, k) => line.classList.toggle("exhibit-chosen", k === values.edge));
    link.href = `#${state.sections[values.edge]}`;
    link.textContent = `section on ${state.decides[values.edge]} ↓`;
    numbers().forEach((value, k) => {
      named[k].textContent = axes()[k];
      said[k].textContent = shown(value);
      inputs[k].setAttribute("aria-valuetext", shown(value));
    });
  };

  // The plane lies between its margins.
  const frame = () => [42, 6, canvas.clientWidth - 58, canvas.clientHeight - 32];
  const point = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    const [x0, y0, x1, y1] = frame();
    const place = (value) => Math.min(1, Math.max(0, value));
    act(() => {
      walk = null;
      put("across", place((event.clientX - left - x0) / (x1 - x0)));
      put("up", place((y1 - event.clientY + top) / (y1 - y0)));
    });
  };
  canvas.addEventListener("pointerdown", (event) => {
    held = true;
    canvas.setPointerCapture(event.pointerId);
    point(event);
  });
  canvas.addEventListener("pointermove", (event) => held && point(event));
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (held = false));

  // Where a walk stands: along each of its rows in turn, and what stood at their ends.
  const walked = (name) => act(() => {
    const begun = (walk = { name, ends: [], line: 0 });
    let last = performance.now(), place = 0;
    const at = () => {
      put(WALKS[name][0], LEVELS[begun.line]);
      put(WALKS[name][1], place);
      label(); // numbers of the plane, and not the places of the sliders
    };
    const turn = (now) => {
      if (walk !== begun) return;
      place = still.matches ? 1 : Math.min(1, place + Math.min(now - last, 50) / 1000 / SECONDS);
      last = now;
      at();
      if (place === 1) {
        begun.ends.push([shown(numbers()[WALKS[name][0] === "up" ? 1 : 0]), given(value())]);
        if (begun.ends.length === LEVELS.length) {
          return act(label);
        }
        begun.line += 1;
        place = 0;
      }
      redraw();
      requestAnimationFrame(turn);
    };
    at();
    requestAnimationFrame(turn);
  });
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const walks = document.createElement("div");
  walks.className = "exhibit-buttons";
  for (const name of Object.keys(WALKS)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => walked(name));
    walks.append(button);
  }
  figure.querySelector(".exhibit-controls").prepend(walks);
  const two = (each) => short(Number(each.toPrecision(2)));
  const given = (measured) => {
    const unit = state.units[values.edge];
    if (!unit) return two(measured / 100);
    if (unit === "°") return `${Math.round(0.9 * measured)}°`;
    return state.halves[values.edge] ? two(measured) + unit : Math.round(measured) + unit;
  };
  // The plane of an edge and its front, between two corners.
  const plane = (pen, edge, [x0, y0, x1, y1], dash) => {
    const small = painted(edge);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(small, 0.5, 0.5, small.width - 1, small.width - 1, x0, y0, x1 - x0, y1 - y0);
    pen.save();
    pen.beginPath();
    pen.rect(x0, y0, x1 - x0, y1 - y0);
    pen.clip();
    pen.strokeStyle = pen.fillStyle = colors.ink;
    // As on the map: a band where the front is wide, and else a line: both ends are one.
    const wide = state.kinds[edge] === "wide";
    const front = (end, j) => pen.lineTo(x0 + j / (side - 1) * (x1 - x0), y1 - (state.fronts[edge * side + j] + state.shifts[2 * edge + end]) * (y1 - y0));
    pen.lineWidth = wide ? 0.8 : 1.5;
    pen.setLineDash(wide ? [] : dash);
    pen.beginPath();
    for (let j = 0; j < side; j++) front(0, j);
    if (wide) {
      for (let j = side; j--; ) front(1, j);
      pen.globalAlpha = 0.07;
      pen.fill();
      pen.globalAlpha = 0.7;
    }
    pen.stroke();
    pen.restore();
    pen.strokeStyle = colors.quiet;
    pen.lineWidth = 1;
    pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
  };
  // Each section begins with its plane, small: a link back to the first exhibit of a page.
  const openers = [];
  const addOpeners = () => {
    figure.id ||= "planes";
    state.sections.forEach((name, edge) => {
      const heading = document.getElementById(name)?.closest("section").querySelector("h2");
      if (!heading) return;
      const opener = document.createElement("a");
      opener.className = "exhibit-opener";
      opener.href = `#${figure.id}`;
      const [across, up] = state.axes[edge].split("|");
      opener.textContent = `${across} →\n${up} ↑\n`;
      opener.append(document.createElement("u"));
      opener.lastChild.textContent = "open this plane";
      opener.addEventListener("click", () => act(() => {
        walk = null;
        put("edge", edge);
        goHome();
      }));
      const view = document.createElement("canvas");
      view.setAttribute("aria-hidden", "true");
      opener.prepend(view);
      heading.after(opener);
      openers.push({ view, edge });
    });
    redraw();
  };
  if (document.querySelector('[data-exhibit="planes"]') === figure) {
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", addOpeners);
    else addOpeners();
  }
  // Arrows along what was walked.
  const arrows = (pen, [x0, y0, x1, y1]) => {
    const right = WALKS[walk.name][1] === "across";
    pen.strokeStyle = pen.fillStyle = colors.mark;
    pen.lineWidth = 2;
    walk.ends.forEach((_, k) => {
      const [x, y] = [x0 + LEVELS[k] * (x1 - x0), y1 - LEVELS[k] * (y1 - y0)];
      pen.beginPath();
      pen.moveTo(right ? x0 : x, right ? y : y1);
      pen.lineTo(right ? x1 - 3 : x, right ? y : y0 + 3);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(right ? x1 : x, right ? y : y0);
      pen.lineTo(right ? x1 - 9 : x - 5, right ? y - 5 : y0 + 9);
      pen.lineTo(right ? x1 - 9 : x + 5, right ? y + 5 : y0 + 9);
      pen.fill();
    });
  };

  return {
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      label();
      for (const each of openers) {
        const { view, edge } = each;
        const look = [colors.ink, colors.paper, view.clientWidth].join();
        if (each.look === look) continue;
        each.look = look;
        plane(fitted(view)[0], edge, [1, 1, view.clientWidth - 1, view.clientHeight - 1], [4, 3]);
      }
      const [pen] = fitted(canvas);
      const [x0, y0, x1, y1] = frame();
      plane(pen, values.edge, [x0, y0, x1, y1], [6, 4]);
      if (walk) arrows(pen, [x0, y0, x1, y1]);
      pen.font = colors.font;
      pen.fillStyle = colors.ink;
      const [left, right, low, high] = ends().map(shown);
      const write = (text, x, y, align, base) => {
        [pen.textAlign, pen.textBaseline] = [align, base];
        pen.fillText(text, x, y);
      };
      write(left, x0, y1 + 4, "left", "top");
      write(right, x1, y1 + 4, "right", "top");
      write(`${axes()[0]} →`, (x0 + x1) / 2, y1 + 16, "center", "top");
      write(low, x0 - 4, y1, "right", "bottom");
      write(high, x0 - 4, y0, "right", "top");
      // What the blue means: none of it, half, and all.
      const half = 100 * state.halves[values.edge];
      pen.fillStyle = colors.accent;
      for (let k = 0; k < 20; k++) {
        pen.globalAlpha = (k + 0.5) / 20;
        pen.fillRect(x1 + 8, y1 - ((k + 1) / 20) * (y1 - y0), 9, (y1 - y0) / 20);
      }
      pen.globalAlpha = 1;
      pen.strokeRect(x1 + 8, y0, 9, y1 - y0);
      pen.fillStyle = colors.ink;
      write(given(0), x1 + 21, y1, "left", "bottom");
      write(given(half || 50), x1 + 21, (y0 + y1) / 2, "left", "middle");
      if (half) write(given(3 * half), x1 + 21, (3 * y0 + y1) / 4, "left", "middle");
      else write(given(100), x1 + 21, y0, "left", "top");
      pen.save();
      pen.translate(12, (y0 + y1) / 2);
      pen.rotate(-Math.PI / 2);
      write(`${axes()[1]} →`, 0, 0, "center", "middle");
      pen.restore();
      [pen.fillStyle, pen.strokeStyle] = isHome() ? [colors.mark, colors.ink] : [colors.paper, colors.mark];
      pen.lineWidth = 2;
      pen.beginPath();
      const [across, up] = places();
      pen.arc(x0 + across * (x1 - x0), y1 - up * (y1 - y0), 6, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    },
    changed(name) {
      walk = null;
      if (name === "edge") {
        ["across", "up"].forEach((axis, k) => put(axis, opens[k])); // a walk may have left it at an end
        goHome();
      }
      label(); // at once: a value is told as soon as its key is pressed
    },
    reset() {
      walk = null;
      opens = [values.across, values.up];
    },
    text() {
      const [x, y] = numbers();
      const of = `the ${state.measured[values.edge]} is`;
      if (walk) {
        const [line, way] = WALKS[walk.name][0] === "up" ? [1, "right"] : [0, "up"];
        if (walk.ends.length < LEVELS.length) return `${state.decides[values.edge]}, ${way} first …`;
        const list = walk.ends.map(([level, end]) => `${end} at ${axes()[line]} = ${level}`).join(", ");
        return `${state.decides[values.edge]}, ${way} first: at the end of each walk ${of} ${list}.`;
      }
      return `${state.decides[values.edge]}: at ${axes()[0]} = ${shown(x)} and ${axes()[1]} = ${shown(y)} ${of} ${given(value())}.`;
    },
  };
};
