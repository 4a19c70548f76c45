// Two tokens in one random network, and their cosine in many, layer by layer. The kernel
// `layer` makes a layer of all networks, `length` and `move` a step of all paths of the
// limit; here is what they draw at random, and what is shown and when.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";
import { generator } from "./random.mjs";

const SECONDS = 5; // from the input to the last layer
const FRAME = 9; // milliseconds of computing in a frame, about
const FAR = 0.5; // share of networks beyond the reach of the expansion that is said
const PARTS = 16; // of the depth, of which the button takes one

// Bartlett factors of two rows, one for each path, with so many degrees of freedom.
const bartlett = (random, count, degrees) => {
  const made = new Float64Array(4 * count);
  for (let i = 0; i < count; i++) {
    const k = typeof degrees === "number" ? degrees : degrees[i];
    made[4 * i] = Math.sqrt(random.chiSquare(k));
    made[4 * i + 2] = random.normal();
    made[4 * i + 3] = Math.sqrt(random.chiSquare(k - 1));
  }
  return made;
};
const normals = (random, count) => {
  const made = new Float64Array(4 * count);
  for (let k = 0; k < made.length; k++) made[k] = random.normal();
  return made;
};
const moments = (sample) => {
  const mean = sample.reduce((sum, x) => sum + x, 0) / sample.length;
  return [mean, Math.sqrt(sample.reduce((sum, x) => sum + (x - mean) ** 2, 0) / sample.length)];
};

const bin = (cosine, bins) => Math.min(bins - 1, Math.max(0, Math.floor(((cosine + 1) / 2) * bins)));
const sharesOf = (cosines, bins) => {
  const shares = new Float64Array(bins);
  for (const cosine of cosines) shares[bin(cosine, bins)] += 1 / cosines.length;
  return shares;
};
const rootsOf = (count, start) => {
  const one = [1, 0, start, Math.sqrt(1 - start * start)];
  return Float64Array.from({ length: 4 * count }, (_, k) => one[k % 4]);
};
const refuse = ({ width, temperature }) => {
  throw new Refused(`At width ${width} and τ₀ = ${short(temperature)} these networks cannot be computed.`);
};

// Networks whose weights come from a generator, and how to put one more layer on each.
export const chain = ({ start, networks: p, skip, branch }, { width, temperature }, call, random) => {
  let root = rootsOf(p, start);
  const past = [new Float64Array(p).fill(start)]; // the cosines after each layer
  // In how many networks the squared distance over n has passed τ₀√n, layer by layer.
  const passed = new Uint8Array(p);
  const apart = [0];
  const reach = () => {
    for (let i = 0; i < p; i++) {
      const [x, y] = [root[4 * i] - root[4 * i + 2], root[4 * i + 1] - root[4 * i + 3]];
      if (x * x + y * y > temperature * Math.sqrt(width)) passed[i] = 1;
    }
    return passed.reduce((sum, one) => sum + one, 0) / p;
  };
  const layer = () => {
    const after = call("layer", {
      p, root, width, key_width: width, skip, branch, tau0: temperature,
      keys: bartlett(random, p, width), queries: normals(random, p),
      seen: normals(random, p), unseen: bartlett(random, p, width - 2),
    });
    if (!after) refuse({ width, temperature });
    root = after.next;
    past.push(after.cosine);
    apart.push(reach());
  };
  return { past, apart, layer };
};

// Paths of the limit, and how to move them by one step of time.
export const limit = ({ start, paths, bins, branch, steps, level }, { width, temperature }, call, random) => {
  const ways = rootsOf(paths, start);
  const done = Array(paths).fill(false);
  const now = new Float64Array(paths).fill(start);
  const law = []; // shares, mean and deviation after each step
  const keep = () => law.push([sharesOf(now, bins), ...moments(now)]);
  // Paths divide a step as they need to; those that exploded rest.
  const step = () => {
    const left = new Float64Array(paths).fill(1 / steps);
    for (let active = [...done.keys()].filter((i) => !done[i]); active.length; ) {
      const p = active.length;
      const given = { p, root: new Float64Array(4 * p), branch, tau0: temperature };
      active.forEach((i, k) => { for (let j = 0; j < 4; j++) given.root[4 * k + j] = ways[4 * i + j]; });
      const long = call("length", { ...given, left: Float64Array.from(active, (i) => left[i]) });
      const moved = long && call("move", { ...given, step: long.step, normals: normals(random, p), factor: bartlett(random, p, long.degrees) });
      if (!moved) refuse({ width, temperature });
      const { next, gram } = moved;
      active = active.filter((i, k) => {
        for (let j = 0; j < 4; j++) ways[4 * i + j] = next[4 * k + j];
        const [one, other] = [gram[4 * k], gram[4 * k + 3]];
        now[i] = Math.max(-1, Math.min(1, gram[4 * k + 1] / Math.sqrt(one * other)));
        done[i] = one + other > level;
        left[i] = long.step[k] < left[i] ? left[i] - long.step[k] : 0;
        return left[i] > 0 && !done[i];
      });
    }
    keep();
  };
  keep();
  return { law, now, step };
};

export default ({ stage, state, values, call, random, act, play, playing, redraw }) => {
  const { start, networks, bins, steps } = state;
  const canvas = document.createElement("canvas");
  canvas.className = "exhibit-pile";
  canvas.setAttribute("aria-hidden", "true");
  stage.append(canvas);

  const seeds = { networks: random.bits(), limit: random.bits() };
  let seed, past, apart, law, layer, step;
  let shown = 0, before = null, late = false, colors;

  const many = `${networks.toLocaleString("en")} networks`;
  const layers = () => Math.max(1, Math.round(values.depth * values.width));
  const needed = () => Math.ceil((layers() / values.width) * steps - 1e-9);
  const ready = () => past.length > layers() && law.length > needed();
  const work = (until = Infinity) => {
    while (!ready() && performance.now() < until) {
      if (past.length <= layers()) layer();
      else if (law.length <= needed()) step();
      if (law.length <= needed() && law.length / steps < past.length / values.width) step();
    }
  };

  const begin = () => ({ past, apart, layer } = chain(state, values, call, generator(seed)));
  const beginLimit = () => ({ law, step } = limit(state, values, call, generator(seeds.limit)));
  // Where nothing plays, all layers are shown as soon as they are there.
  const rest = () => {
    if (playing()) play();
    shown = layers();
  };
  // What is to be seen: after the layers that have passed, or still what was before.
  const seen = () => {
    if (late && before) return before;
    const at = Math.min(Math.floor(shown), past.length - 1);
    const time = Math.min((at / values.width) * steps, law.length - 1);
    const [low, high] = [law[Math.floor(time)], law[Math.ceil(time)]];
    const between = (x, y) => x + (time - Math.floor(time)) * (y - x);
    const [shares, mean, spread] = low.map((x, k) => (k ? between(x, high[k]) : x.map((share, j) => between(share, high[0][j]))));
    return (before = { cosines: past[at], shares, mean, spread });
  };

  const paint = () => {
    const [pen, w, height] = fitted(canvas);
    const { cosines, shares: line } = seen();
    const [left, right, foot] = [34, w - 14, height - 34];
    const R = (right - left) / 2;
    const [cx, cy] = [left + R, 26 + R];
    const across = (cosine) => cx + R * cosine;
    const along = (angle, r) => [cx + R * r * Math.cos(angle), cy - R * r * Math.sin(angle)];
    const stroke = (color, thick, points, dashes = []) => {
      pen.strokeStyle = color;
      pen.lineWidth = thick;
      pen.setLineDash(dashes);
      pen.beginPath();
      for (const point of points) pen.lineTo(...point);
      pen.stroke();
    };
    pen.font = colors.font;
    // The half circle, and where each of some networks points.
    stroke(colors.line, 1, Array.from({ length: 97 }, (_, k) => along((Math.PI * k) / 96, 1)));
    pen.globalAlpha = 0.5;
    for (const cosine of cosines.subarray(0, state.rim)) stroke(colors.accent, 0.8, [1.01, 1.06].map((r) => along(Math.acos(cosine), r)));
    pen.globalAlpha = 1;
    // The pile, and the limit.
    const shares = sharesOf(cosines, bins);
    const most = Math.max(...line, ...shares);
    const top = state.tops.find((each) => most <= each) ?? 1;
    const head = cy + 12;
    const high = (share) => foot - (foot - head) * Math.min(1, share / top);
    const mine = bin(cosines[0], bins);
    const one = (2 * R) / bins;
    shares.forEach((share, k) => {
      pen.fillStyle = k === mine ? colors.mark : colors.accent;
      pen.fillRect(left + (k + 0.06) * one, high(share), 0.88 * one, foot - high(share));
    });
    stroke(colors.ink, 1.6, [...line].flatMap((share, k) => [[left + k * one, high(share)], [left + (k + 1) * one, high(share)]]));
    stroke(colors.quiet, 1, [[left, head], [left, foot], [right, foot]]);
    pen.fillStyle = colors.quiet;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const share of [0, top]) pen.fillText(String(share), left - 5, high(share));
    pen.textBaseline = "top";
    pen.textAlign = "center";
    for (const tick of [-1, -0.5, 0.5, 1]) pen.fillText(String(tick).replace("-", "−"), across(tick), foot + 5);
    pen.fillText("cosine", cx, foot + 18);
    pen.fillText("0", cx, foot + 5);
    // The arrows, and the way from the one that moves to its bar.
    const angle = Math.acos(cosines[0]);
    stroke(colors.mark, 1, [along(angle, 1), [across(cosines[0]), high(shares[mine])]], [4, 3]);
    pen.setLineDash([]);
    pen.textBaseline = "middle";
    for (const [name, turn, color] of [["", 0, colors.ink], ["in", Math.acos(start), colors.quiet], ["out", angle, colors.mark]]) {
      stroke(color, 2.5, [[cx, cy], along(turn, 0.95)]);
      pen.fillStyle = color;
      pen.beginPath();
      for (const [r, side] of [[1, 0], [0.92, 0.035], [0.92, -0.035]]) pen.lineTo(...along(turn + side, r));
      pen.fill();
      const [x, y] = along(turn, 1.05 + 9 / R);
      if (name !== "in" || Math.abs(turn - angle) > 0.2) pen.fillText(name, Math.min(w - 12, Math.max(12, x)), y);
    }
  };

  return {
    tick(seconds) {
      if (shown >= layers()) shown = 0;
      work(performance.now() + FRAME);
      // No farther than the limit has come.
      const reached = ((law.length - 1) / steps) * values.width;
      shown = Math.min(layers(), past.length - 1, reached, shown + (layers() * seconds) / SECONDS);
      return shown < layers();
    },
    step() {
      work();
      shown = shown >= layers() ? 0 : Math.min(layers(), Math.floor(shown) + Math.ceil(layers() / PARTS));
    },
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      late = !playing() && !ready();
      if (late) {
        work(performance.now() + FRAME);
        // Another frame goes on, and says what has come out.
        queueMicrotask(ready() ? () => act(() => {}) : redraw);
        late = !ready();
      }
      paint();
    },
    changed(name) {
      rest();
      if (name !== "depth") begin();
      if (name === "temperature") beginLimit();
    },
    reset() {
      seed = seeds.networks;
      begin();
      beginLimit();
      rest();
    },
    again() {
      seed = random.bits();
      begin();
      rest();
    },
    text() {
      const at = Math.floor(shown);
      const place = `width ${values.width}, τ₀ = ${short(values.temperature)}`;
      if (!playing() && !ready()) return `${many} of ${place} are being drawn.`;
      const { cosines, mean, spread } = seen();
      const two = (x) => x.toFixed(2).replace("-", "−").replace("−0.00", "0.00");
      const [ours, wide] = moments(cosines).map(two);
      return (
        `Layer ${at} of ${layers()}, ${place}: cosine ${two(cosines[0])} in this network.` +
        ` Mean ${ours} and standard deviation ${wide} in ${many}, ${two(mean)} and ${two(spread)} in the limit.` +
        (apart[Math.min(at, apart.length - 1)] > FAR ? " In most networks the squared distance over n has passed τ₀√n: the expansion fails." : "")
      );
    },
  };
};
