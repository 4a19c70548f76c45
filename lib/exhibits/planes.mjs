// The map of limits, and the plane of the edge that is chosen: its color is a share that
// was computed beforehand on a grid, and a point moves in it.
import { colorsOf, fitted, short } from "./exhibit.mjs";

// Places of the numbers and the pairs that are joined, in percent of the map.
const NODES = { L: [12, 11], n: [50, 11], H: [88, 11], m: [50, 41], d: [88, 41], "ε": [12, 67], "β": [88, 67], t: [50, 91] };
const EDGES = ["Ln", "nH", "mε", "εt", "βt", "mβ", "md", "mt"];
const SVG = "http://www.w3.org/2000/svg";

const between = ([a, b], [c, d]) => [(a + c) / 2, (b + d) / 2];
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
  map.append(choices);
  const labels = [...choices.querySelectorAll("label")];
  labels.forEach((label, k) => {
    const [x, y] = between(NODES[EDGES[k][0]], NODES[EDGES[k][1]]);
    Object.assign(label.style, { left: `${x}%`, top: `${y}%` });
  });
  const named = [...figure.querySelectorAll(".exhibit-controls > label")];
  const said = [...figure.querySelectorAll(".exhibit-controls > output")];
  const inputs = [...figure.querySelectorAll(".exhibit-controls > input")];
  let colors, held = false;

  const grid = (i, j) => state.grids[(values.edge * side + i) * side + j];
  const share = () => {
    const [y, x] = [values.up, values.across].map((place) => place * (side - 1));
    const [i, j] = [y, x].map((place) => Math.min(side - 2, Math.floor(place)));
    const [a, b] = [y - i, x - j];
    return (1 - a) * ((1 - b) * grid(i, j) + b * grid(i, j + 1)) + a * ((1 - b) * grid(i + 1, j) + b * grid(i + 1, j + 1));
  };
  const ends = () => state.ends.slice(4 * values.edge, 4 * values.edge + 4);
  const axes = () => state.axes[values.edge].split("|");
  const numbers = () => {
    const [left, right, low, high] = ends();
    return [left * (right / left) ** values.across, low * (high / low) ** values.up];
  };
  const shown = (value) => (value >= 1e4 ? value.toExponential(0).replace("e+", "e") : short(value));
  const label = () => {
    labels.forEach((each, k) => each.classList.toggle("exhibit-chosen", k === values.edge));
    lines.forEach((line, k) => line.setAttribute("stroke-width", k === values.edge ? 4 : 1.5));
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
      const [w, h] = [(x1 - x0) / (side - 1), (y1 - y0) / (side - 1)];
      pen.fillStyle = colors.accent;
      for (let i = 0; i < side - 1; i++) {
        for (let j = 0; j < side - 1; j++) {
          pen.globalAlpha = (grid(i, j) + grid(i + 1, j) + grid(i, j + 1) + grid(i + 1, j + 1)) / 400;
          const [x, y] = [Math.round(x0 + j * w), Math.round(y1 - (i + 1) * h)];
          pen.fillRect(x, y, Math.round(x0 + (j + 1) * w) - x, Math.round(y1 - i * h) - y);
        }
      }
      pen.globalAlpha = 1;
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
      pen.arc(x0 + values.across * (x1 - x0), y1 - values.up * (y1 - y0), 6, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    },
    changed: () => {},
    reset: () => {},
    text() {
      const [x, y] = numbers();
      return `${state.decides[values.edge]}: at ${axes()[0]} = ${shown(x)} and ${axes()[1]} = ${shown(y)} the ${state.measured[values.edge]} is ${Math.round(share())} %.`;
    },
  };
};
