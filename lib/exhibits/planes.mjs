// The map of limits, and the plane of the edge that is chosen: its color is a number that
// was computed beforehand on a grid, a front parts it, and a point moves in it.
import { colorsOf, fitted, short } from "./exhibit.mjs";

// Places of the numbers and the pairs that are joined, in percent of the map.
const NODES = { L: [12, 9], n: [50, 9], H: [88, 9], m: [50, 36], d: [88, 36], "ε": [12, 68], "β": [88, 68], t: [50, 92] };
const EDGES = ["Ln", "nH", "mε", "εt", "βt", "mβ", "md", "mt"];
const SVG = "http://www.w3.org/2000/svg";

// Where on its line a label stands: two of them make room for the one between them.
const SHARES = { "mβ": 0.56, "βt": 0.42 };
const between = ([a, b], [c, d], share = 0.5) => [a + share * (c - a), b + share * (d - b)];
const drawn = (tag, attributes, parent) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.append(made);
  return made;
};

export default ({ stage, state, values, act, put }) => {
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
  for (const [name, [x, y]] of Object.entries(NODES)) {
    const node = document.createElement("span");
    node.textContent = name;
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
  let colors, held = false;

  const grid = (i, j) => state.grids[(values.edge * side + i) * side + j];
  const value = () => {
    const [x, y] = places().map((place) => place * (side - 1));
    const [i, j] = [y, x].map((place) => Math.min(side - 2, Math.floor(place)));
    const [a, b] = [y - i, x - j];
    return (1 - a) * ((1 - b) * grid(i, j) + b * grid(i, j + 1)) + a * ((1 - b) * grid(i + 1, j) + b * grid(i + 1, j + 1));
  };
  const ends = () => state.ends.slice(4 * values.edge, 4 * values.edge + 4);
  const axes = () => state.axes[values.edge].split("|");
  const scale = (k) => ends().slice(2 * k, 2 * k + 2);
  const numbers = () => [values.across, values.up].map((place, k) => {
    const [low, high] = scale(k);
    const found = low * (high / low) ** place;
    return state.whole[2 * values.edge + k] ? Math.round(found) : found;
  });
  const places = () => numbers().map((found, k) => {
    const [low, high] = scale(k);
    return Math.log(found / low) / Math.log(high / low);
  });
  // How blue a value is, from 0 to 1.
  const blue = (found) => {
    const half = 100 * state.halves[values.edge];
    return half ? found / (found + half) : found / 100;
  };
  const small = document.createElement("canvas");
  small.width = small.height = side;
  // A large number as it is written in a text: a power of ten, or two digits that mean something.
  const shown = (value) => {
    const exponent = Math.log10(value);
    if (value < 1e3) return short(value);
    if (value >= 1e5 && Number.isInteger(exponent)) return `10${[...String(exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
    return (value < 1e5 ? Math.round(value) : Number(value.toPrecision(2))).toLocaleString("en");
  };
  const label = () => {
    labels.forEach((each, k) => each.classList.toggle("exhibit-chosen", k === values.edge));
    lines.forEach((line, k) => line.setAttribute("stroke-width", k === values.edge ? 4 : 1.5));
    link.href = `#${state.sections[values.edge]}`;
    link.textContent = `section on ${state.decides[values.edge]} ↓`;
    numbers().forEach((value, k) => {
      named[k].textContent = axes()[k];
      said[k].textContent = shown(value);
      inputs[k].setAttribute("aria-valuetext", `${axes()[k]} ${shown(value)}`);
    });
  };

  // The plane lies between its margins.
  const frame = () => [42, 6, canvas.clientWidth - 8, canvas.clientHeight - 32];
  const point = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    const [x0, y0, x1, y1] = frame();
    const place = (value) => Math.min(1, Math.max(0, value));
    act(() => {
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

  return {
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      label();
      const [pen] = fitted(canvas);
      const [x0, y0, x1, y1] = frame();
      // A pixel for each value of the grid, drawn larger: the browser fills in between.
      const fine = small.getContext("2d");
      fine.clearRect(0, 0, side, side);
      fine.fillStyle = colors.accent;
      for (let i = 0; i < side; i++) {
        for (let j = 0; j < side; j++) {
          fine.globalAlpha = blue(grid(i, j));
          fine.fillRect(j, side - 1 - i, 1, 1);
        }
      }
      pen.imageSmoothingQuality = "high";
      pen.drawImage(small, 0.5, 0.5, side - 1, side - 1, x0, y0, x1 - x0, y1 - y0);
      pen.save();
      pen.beginPath();
      pen.rect(x0, y0, x1 - x0, y1 - y0);
      pen.clip();
      pen.strokeStyle = colors.ink;
      pen.lineWidth = 1.5;
      pen.setLineDash([6, 4]);
      pen.beginPath();
      for (let j = 0; j < side; j++) pen.lineTo(x0 + j / (side - 1) * (x1 - x0), y1 - state.fronts[values.edge * side + j] * (y1 - y0));
      pen.stroke();
      pen.restore();
      pen.strokeStyle = colors.quiet;
      pen.lineWidth = 1;
      pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
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
      pen.save();
      pen.translate(12, (y0 + y1) / 2);
      pen.rotate(-Math.PI / 2);
      write(`${axes()[1]} →`, 0, 0, "center", "middle");
      pen.restore();
      pen.fillStyle = colors.mark;
      pen.strokeStyle = colors.ink;
      pen.beginPath();
      const [across, up] = places();
      pen.arc(x0 + across * (x1 - x0), y1 - up * (y1 - y0), 6, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    },
    changed: () => {},
    reset: () => {},
    text() {
      const [x, y] = numbers();
      const found = value();
      const unit = state.units[values.edge];
      const two = (each) => short(Number(each.toPrecision(2)));
      const said = !unit ? two(found / 100) : state.halves[values.edge] ? two(found) + unit : Math.round(found) + unit;
      return `${state.decides[values.edge]}: at ${axes()[0]} = ${shown(x)} and ${axes()[1]} = ${shown(y)} the ${state.measured[values.edge]} is ${said}.`;
    },
  };
};
