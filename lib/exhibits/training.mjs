// The patches of an image where their tokens are, layer by layer, while a model trains;
// beside them the cosines of all pairs. What was saved stands in the state; here it is
// drawn, and on the way between what was saved on straight lines. Sliders come to rest
// at what was saved.
import { colorsOf, fitted, short } from "./exhibit.mjs";

const BLANK = 8; // between the plane and the pile, in pixels
const [STAY, WAY] = [0.7, 0.8]; // seconds at a layer, and on the way to the next
const MIDDLE = 0.1; // a tick on the axis of shares
const ALONE = 3; // the rank of a token without a cluster
const WAYS = { ArrowRight: 1, ArrowUp: 1, PageUp: 1, ArrowLeft: -1, ArrowDown: -1, PageDown: -1 };

export default ({ stage, state, values, redraw, act, put, play, playing }) => {
  const { steps, layers, bins, top, scale, side, names, classes } = state;
  const images = names.length;
  const m = state.places.length / (2 * images * steps.length * layers);
  const across = Math.round(Math.sqrt(m));
  const figure = stage.closest("figure");

  // The radio buttons of the image become pictures.
  const choices = figure.querySelectorAll(".exhibit-choice");
  const chosen = choices[choices.length - 1];
  chosen.classList.add("exhibit-garments");
  const canvas = document.createElement("canvas");
  canvas.className = "exhibit-cloud";
  canvas.setAttribute("aria-hidden", "true");
  stage.append(canvas, chosen);
  const labels = [...chosen.querySelectorAll("label")];
  const pictures = labels.map((label, i) => {
    const image = document.createElement("img");
    image.className = "dark-light"; // a name by which the theme adds no paper
    image.alt = image.title = names[i];
    image.addEventListener("load", redraw);
    image.src = state.pictures[i];
    label.replaceChildren(label.querySelector("input"), image);
    return image;
  });

  // Keys go from one saved step or layer to the next, and what is let go between two
  // moves to the nearer one.
  const saves = { step: steps, layer: [...Array(layers).keys()] };
  const sliders = figure.querySelectorAll(".exhibit-controls input[type=range]");
  Object.entries(saves).forEach(([name, stops], k) => {
    const rest = (value) => act(() => put(name, value));
    sliders[k].addEventListener("keydown", (event) => {
      const way = WAYS[event.key];
      if (way === undefined) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const beyond = stops.filter((stop) => way * (stop - values[name]) > 1e-9);
      if (beyond.length) rest(way > 0 ? beyond[0] : beyond[beyond.length - 1]);
    });
    sliders[k].addEventListener("change", () => rest(stops[nearest(stops, values[name])]));
  });
  // The nearest of some numbers, in the logarithm of 1 + each, by its place.
  const nearest = (stops, value) => {
    const gap = (stop) => Math.abs(Math.log((stop + 1) / (value + 1)));
    return stops.reduce((best, stop, k) => (gap(stop) < gap(stops[best]) ? k : best), 0);
  };
  const interpolated = () => Object.entries(saves).some(
    ([name, stops]) => !stops.some((stop) => Math.abs(stop - values[name]) < 1e-6));

  // A part of what was saved for an image, `size` numbers at each step and layer, between
  // the saved ones on straight lines: in the logarithm of the step after the first.
  const saved = (name, size, step, layer) => {
    const block = layers * size;
    const own = state[name].slice(values.image * steps.length * block, (values.image + 1) * steps.length * block);
    let low = steps.length - 2;
    while (low > 0 && steps[low] > step) low--;
    const part = low ? Math.log(step / steps[low]) / Math.log(steps[low + 1] / steps[low]) : step / steps[1];
    const floor = Math.min(Math.floor(layer), layers - 2);
    const mix = (x, y, t) => x + t * (y - x);
    return Array.from({ length: size }, (_, k) => {
      const at = (s, l) => own[s * block + l * size + k];
      return mix(mix(at(low, floor), at(low + 1, floor), part), mix(at(low, floor + 1), at(low + 1, floor + 1), part), layer - floor);
    });
  };

  // Ranks of clusters, at the nearest saved step and layer.
  const ranks = () => {
    const at = (values.image * steps.length + nearest(steps, values.step)) * layers + Math.floor(values.layer + 0.5);
    return state.ranks.slice(at * m, (at + 1) * m);
  };

  let colors, clock = 0;
  const last = layers - 1;
  // The picture in the ink of the theme: stored pictures are one color and its opacity.
  const inked = (image) => {
    const made = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const pen = made.getContext("2d");
    pen.drawImage(image, 0, 0);
    pen.globalCompositeOperation = "source-in";
    pen.fillStyle = colors.ink;
    pen.fillRect(0, 0, made.width, made.height);
    return made;
  };

  // Corners of the tiles in a plane of some size, and the side of a tile.
  const tiles = (size) => {
    const places = saved("places", 2 * m, values.step, values.layer);
    const unit = size / 2 / (1 + side);
    const box = 2 * side * unit;
    const corner = (_, k) => [
      size / 2 + (unit * places[2 * k]) / scale - box / 2,
      size / 2 - (unit * places[2 * k + 1]) / scale - box / 2,
    ];
    return [Array.from({ length: m }, corner), box];
  };
  const sized = (width, height) => Math.min(height, 0.52 * width);

  let under = -1; // the tile that is pointed at
  const point = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const size = sized(width, height);
    const [x, y] = [event.clientX - left, event.clientY - top - (height - size) / 2];
    const [corners, box] = tiles(size);
    const on = ([a, b]) => x >= a && x <= a + box && y >= b && y <= b + box;
    // What a finger points at stays when it is lifted.
    if (event.type === "pointerleave" && event.pointerType === "touch") return;
    const tile = event.type === "pointerleave" ? -1 : corners.findLastIndex(on);
    if (tile === under) return;
    under = tile;
    redraw();
  };
  for (const kind of ["pointermove", "pointerdown", "pointerleave"]) canvas.addEventListener(kind, point);

  const plane = (pen, size) => {
    const image = pictures[values.image];
    if (!image.complete || !image.naturalWidth) return;
    const ink = inked(image);
    const patch = ink.width / across;
    const [corners, box] = tiles(size);
    pen.imageSmoothingEnabled = false;
    pen.setLineDash(interpolated() ? [2, 3] : []);
    const rank = ranks();
    const frames = [colors.accent, colors.mark, colors.ink, colors.quiet];
    // The tile that is pointed at comes last, on top.
    const order = [...corners.keys()].filter((k) => k !== under).concat(under < 0 ? [] : under);
    for (const k of order) {
      const [x, y] = corners[k];
      pen.lineWidth = k === under ? 4 : rank[k] === ALONE ? 1 : 2;
      pen.globalAlpha = 0.85;
      pen.fillStyle = colors.paper;
      pen.fillRect(x, y, box, box);
      pen.globalAlpha = 1;
      pen.drawImage(ink, (k % across) * patch, Math.floor(k / across) * patch, patch, patch, x, y, box, box);
      pen.strokeStyle = frames[rank[k]];
      pen.strokeRect(x, y, box, box);
    }
    pen.setLineDash([]);
  };

  // The image itself, and in it the patch that is pointed at.
  const whole = (pen, left, top, size) => {
    const image = pictures[values.image];
    if (under < 0 || !image.complete || !image.naturalWidth) return;
    const cell = size / across;
    pen.drawImage(inked(image), left, top, size, size);
    pen.strokeStyle = colors.accent;
    pen.lineWidth = 1;
    pen.strokeRect(left, top, size, size);
    pen.lineWidth = 3;
    pen.strokeRect(left + (under % across) * cell, top + Math.floor(under / across) * cell, cell, cell);
  };

  const pile = (pen, left, right, foot) => {
    const shares = saved("shares", bins, values.step, values.layer);
    const before = saved("shares", bins, 0, values.layer);
    const head = 62; // the key stands above
    const high = (share) => foot - (foot - head) * Math.sqrt(share / top);
    const one = (right - left) / bins;
    pen.fillStyle = colors.accent;
    shares.forEach((share, k) => pen.fillRect(left + (k + 0.06) * one, high(share), 0.88 * one, foot - high(share)));
    pen.strokeStyle = colors.ink;
    pen.lineWidth = 1.6;
    pen.beginPath();
    before.forEach((share, k) => {
      pen.lineTo(left + k * one, high(share));
      pen.lineTo(left + (k + 1) * one, high(share));
    });
    pen.stroke();
    pen.strokeStyle = colors.quiet;
    pen.lineWidth = 1;
    pen.beginPath();
    for (const point of [[left, head], [left, foot], [right, foot]]) pen.lineTo(...point);
    pen.stroke();
    pen.fillStyle = colors.quiet;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const share of [0, MIDDLE, top]) pen.fillText(String(share), left - 5, high(share));
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const tick of [-1, 0, 1]) pen.fillText(String(tick).replace("-", "−"), left + ((tick + 1) / 2) * (right - left), foot + 5);
    pen.fillText("cosine of two patches", (left + right) / 2, foot + 19);
    // What is what.
    pen.textAlign = "left";
    const key = [["share of pairs, √ scale", colors.quiet], ["bars: now", colors.accent], ["line: untrained", colors.ink]];
    key.forEach(([words, color], k) => {
      pen.fillStyle = color;
      pen.fillText(words, left, 4 + 16 * k);
    });
  };

  return {
    // What opens at the last layer stands there.
    rests: () => values.layer >= last,
    // Through the layers, with a stay at each.
    tick(seconds) {
      if (values.layer >= last) {
        put("layer", 0);
        clock = 0;
      }
      clock += seconds;
      const layer = Math.floor(values.layer + 1e-9);
      put("layer", Math.min(last, layer + Math.min(1, Math.max(0, clock - STAY) / WAY)));
      if (clock >= STAY + WAY) clock = 0;
      return values.layer < last;
    },
    step: () => put("layer", values.layer >= last ? 0 : Math.floor(values.layer + 1e-9) + 1),
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      const [pen, width, height] = fitted(canvas);
      const size = sized(width, height);
      pen.font = colors.font;
      pen.save();
      pen.translate(0, (height - size) / 2);
      plane(pen, size);
      pen.restore();
      pen.fillStyle = colors.quiet;
      pen.textAlign = "left";
      pen.textBaseline = "top";
      pen.fillText("tokens, two directions", 2, 2);
      pile(pen, size + BLANK + 26, width - 10, height - 38);
      whole(pen, size + BLANK + 34, 70, Math.min(64, 0.14 * width));
      labels.forEach((label, i) => label.classList.toggle("exhibit-chosen", i === values.image));
    },
    changed(name) {
      if (name === "layer" && playing()) play();
    },
    reset: () => (clock = 0),
    text() {
      const { step, layer, image } = values;
      const number = (x) => x.toFixed(2).replace("-", "−").replace("−0.00", "0.00");
      const [cosine] = saved("cosines", 1, step, layer);
      const [first] = saved("cosines", 1, 0, layer);
      const [clusters] = saved("clusters", 1, step, layer);
      const near = nearest(steps, step);
      const guess = classes[state.guesses[image * steps.length + near]];
      const sure = state.sure[image * steps.length + near];
      return (
        `Training step ${Math.round(step)}, layer ${short(layer)}${interpolated() ? ", interpolated" : ""}: mean cosine ${number(cosine)} (before training ${number(first)}),` +
        ` ${m} tokens in effectively ${clusters.toFixed(1)} clusters. Label: ${names[image]}; after ${steps[near]} step${steps[near] === 1 ? '' : 's'} the network says ${guess} (${sure} %).`
      );
    },
  };
};
