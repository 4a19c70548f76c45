// The histogram of an output of attention, over many random networks or inside one. The
// kernel `variance` makes the variance of an output from what weights draw, `density` the
// density of the limit; here is what is drawn at random, and what is shown and when.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";
import { generator } from "./random.mjs";

const SECONDS = 4; // until all is drawn
const AGAIN = 1; // the same where other weights are drawn: how it grows has been seen
const FRAME = 9; // milliseconds of computing in a frame, about
const BATCH = 2000; // heads drawn at a time
const PALE = 0.35; // of the bars, so that the bell on them is seen
const KEPT = 12; // networks whose bells stay

const filled = (count, make) => {
  const made = new Float64Array(count);
  for (let k = 0; k < count; k++) made[k] = make();
  return made;
};

// The variances of an output coordinate in some networks; of infinite width for Infinity.
export const variances = ({ tokens: m }, { scale, heads: h, width }, call, random, p) => {
  const chi = () => (width === Infinity ? 1 : random.chiSquare(width) / width);
  const drawn = call("variance", {
    p, h, m, root: Float64Array.from({ length: m * m }, (_, k) => (k % (m + 1) ? 0 : 1)), score_scale: scale,
    times: filled(p * h, chi), normals: filled(p * h * m, random.normal), factors: filled(p * h, chi),
  });
  if (!drawn) throw new Refused(`At σ = ${short(scale)} and H = ${h} these networks cannot be drawn.`);
  return drawn.variance;
};

// Numbers to be drawn: one coordinate of each network, or those of one network. They come
// in batches of one size, so that they do not depend on how many are asked for at a time.
export const source = (state, values, call, random) => {
  const own = values.one ? variances(state, values, call, random, 1)[0] : null;
  const total = values.one ? values.width : Math.min(state.networks, Math.floor(state.in_all / values.heads));
  const size = values.one ? BATCH : Math.ceil(BATCH / values.heads);
  let batch = [], at = 0;
  const next = () => {
    if (at === batch.length) {
      const of = values.one ? null : variances(state, values, call, random, size);
      batch = filled(size, random.normal).map((x, k) => x * Math.sqrt(of ? of[k] : own));
      at = 0;
    }
    return batch[at++];
  };
  return { total, size, draw: (count) => filled(count, next) };
};

// The limit: its standard deviation, its density at some points in units of it, and its
// excess kurtosis.
export const limit = (state, values, call, random, points) => {
  const [most, heads] = state.limit;
  const count = Math.min(most, Math.floor(heads / values.heads));
  const v = variances(state, { ...values, width: Infinity }, call, random, count);
  const variance = v.reduce((sum, x) => sum + x, 0) / count;
  const law = call("density", { p: count, q: points.length, variances: v.map((x) => x / variance), points });
  if (!law) throw new Refused(`At σ = ${short(values.scale)} the limit cannot be computed.`);
  const place = (values.scale / 8) * (state.table.length - 1);
  const at = Math.min(Math.floor(place), state.table.length - 2);
  const c = state.table[at] + (place - at) * (state.table[at + 1] - state.table[at]);
  return { unit: Math.sqrt(variance), density: law.density, kurtosis: c / values.heads };
};

export default ({ stage, state, values, call, random, act, play, playing, redraw }) => {
  const { bins, few, reach, least } = state;
  const two = (x) => x.toFixed(2).replace("-", "−").replace("−0.00", "0.00");
  const kurtosis = () => (count * fourths) / squares ** 2 - 3;
  const canvas = document.createElement("canvas");
  canvas.className = "exhibit-histogram";
  canvas.setAttribute("aria-hidden", "true");
  stage.append(canvas);

  const seeds = { networks: random.bits(), limit: random.bits() };
  const points = Float64Array.from({ length: 121 }, (_, k) => -reach + (k * reach) / 60);
  let past = []; // variances of the networks before, in units of the limit's
  let seed, from, law, counts, count, squares, fourths, wanted, late = false, colors, span = SECONDS;

  const begin = () => {
    from = source(state, values, call, generator(seed));
    counts = new Float64Array(bins);
    count = squares = fourths = wanted = 0;
  };
  const beginLimit = () => (law = limit(state, values, call, generator(seeds.limit), points));
  const add = (some) => {
    for (const y of from.draw(some)) {
      const x = y / law.unit;
      squares += x ** 2;
      fourths += x ** 4;
      const bin = Math.floor(((x + reach) / (2 * reach)) * bins);
      if (bin >= 0 && bin < bins) counts[bin]++;
    }
    count += some;
  };
  const ready = () => count >= from.total;
  const work = (goal, until = Infinity) => {
    while (count < goal && performance.now() < until) add(Math.min(from.size, goal - count));
  };
  // Where nothing plays, all is shown as soon as it is there.
  const rest = () => {
    if (playing()) play();
    wanted = from.total;
  };

  const paint = () => {
    const [pen, w, height] = fitted(canvas);
    const [left, right, head, foot] = [42, w - 10, 10, height - 36];
    const across = (x) => left + ((right - left) * (x + reach)) / (2 * reach);
    const top = right - left < 330 ? 4 : 2; // on a phone the names stand above the bell
    const high = (f) => foot - ((foot - head) * Math.log(Math.max(f, least) / least)) / Math.log(top / least);
    const stroke = (color, thick, line, dashes = []) => {
      pen.strokeStyle = color;
      pen.lineWidth = thick;
      pen.setLineDash(dashes);
      pen.beginPath();
      for (const [x, y] of line) pen.lineTo(x, y);
      pen.stroke();
      pen.setLineDash([]);
    };
    pen.font = colors.font;
    const wide = (2 * reach) / bins;
    const variance = squares / Math.max(count, 1);
    const bell = (x, of) => Math.exp((-x * x) / (2 * of)) / Math.sqrt(2 * Math.PI * of);
    pen.fillStyle = pen.strokeStyle = colors.accent;
    counts.forEach((each, k) => {
      const [x, y, thick] = [across(-reach + k * wide) + 1, high(each / (Math.max(count, 1) * wide)), across(wide) - across(0) - 2];
      if (each >= few) {
        pen.globalAlpha = PALE;
        pen.fillRect(x, y, thick, foot - y);
        pen.globalAlpha = 1;
        const rest = high(bell(-reach + (k + 0.5) * wide, variance));
        if (!values.one && rest > y) pen.fillRect(x, y, thick, rest - y);
      } else if (each) pen.strokeRect(x + 0.5, y + 0.5, thick - 1, foot - y);
    });
    const curve = (f) => [...points].map((x, k) => [across(x), f(x, k)]).filter(([, f]) => f >= least).map(([x, f]) => [x, high(f)]);
    stroke(colors.ink, 1.8, curve((x, k) => law.density[k]));
    for (const each of past) stroke(colors.mark, 1, curve((x) => bell(x, each)));
    if (variance > 0) stroke(colors.mark, 2, curve((x) => bell(x, variance)), [6, 4]);
    stroke(colors.quiet, 1, [[left, head], [left, foot], [right, foot]]);
    pen.fillStyle = colors.quiet;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const [f, name] of [[1, "1"], [0.1, "0.1"], [0.01, "0.01"], [0.001, "10⁻³"], [0.0001, "10⁻⁴"]]) {
      pen.fillText(name, left - 5, high(f));
      stroke(colors.quiet, 1, [[left - 3, high(f)], [left, high(f)]]);
    }
    pen.textBaseline = "top";
    pen.textAlign = "center";
    for (const tick of [-4, -2, 0, 2, 4]) pen.fillText(String(tick).replace("-", "−"), across(tick), foot + 4);
    pen.fillText("output / standard deviation over networks", (left + right) / 2, foot + 19);
    // What the lines are.
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    for (const [k, name, color, dashes] of [[0, values.one ? "over networks" : "limit", colors.ink, []], [1, "bell", colors.mark, [6, 4]]]) {
      const y = head + 8 + 16 * k;
      stroke(color, 2, [[left + 8, y], [left + 30, y]], dashes);
      pen.fillStyle = color;
      pen.fillText(name, left + 35, y);
    }
    // What has been drawn, as it grows; the sentence below says it when all is there.
    pen.textAlign = "right";
    pen.fillStyle = colors.ink;
    pen.fillText(count.toLocaleString("en"), right, head + 8);
    if (squares > 0) pen.fillText(`excess kurtosis ${two(kurtosis())}`, right, head + 24);
  };

  return {
    tick(seconds) {
      if (wanted >= from.total) {
        begin();
      }
      // It grows faster and faster: the first few can be seen one by one.
      const rate = (2 * Math.sqrt(Math.max(wanted / from.total, 1e-4)) * from.total) / span;
      wanted = Math.min(from.total, wanted + rate * seconds);
      work(Math.ceil(wanted), performance.now() + FRAME);
      wanted = Math.min(wanted, Math.max(count, 1));
      return count < from.total;
    },
    step() {
      const next = wanted >= from.total ? from.total / 256 : 4 * wanted;
      if (wanted >= from.total) begin();
      wanted = Math.min(from.total, Math.ceil(next));
      work(wanted);
    },
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      late = !playing() && count < wanted;
      if (late) {
        work(wanted, performance.now() + FRAME);
        // Another frame goes on, and says what has come out.
        queueMicrotask(count < wanted ? redraw : () => act(() => {}));
      }
      paint();
    },
    changed(name) {
      if (name === "scale" || name === "heads") beginLimit();
      past = [];
      begin();
      rest();
    },
    reset() {
      span = SECONDS;
      past = [];
      seed = seeds.networks;
      beginLimit();
      begin();
      rest();
    },
    again() {
      span = AGAIN;
      if (values.one && ready()) past = [...past, squares / count].slice(-KEPT);
      seed = random.bits();
      begin();
      rest();
    },
    text() {
      const { one, heads, width, scale } = values;
      const place = `width ${width}, H = ${heads}, σ = ${short(scale)}`;
      const whose = one ? "coordinates of one network" : "networks";
      // Numbers that grow stand in the picture: here they would lag behind.
      if (count < (playing() ? from.total : wanted)) return `${from.total.toLocaleString("en")} ${whose} of ${place} are being drawn.`;
      const sample = `${count.toLocaleString("en")} ${whose}, ${place}: excess kurtosis ${two(kurtosis())}`;
      const share = `variance ${two(squares / count)} times`;
      // One network has a bell, whatever its width: the limit is a law over networks.
      if (!one) return `${sample}, in the limit ${two(law.kurtosis)}; ${share} the limit's.`;
      const before = past.length ? ` Before: ${past.map(two).join(", ")}.` : "";
      return `${sample}, ${share} its mean over networks. Excess kurtosis over networks, in the limit: ${two(law.kurtosis)}.${before}`;
    },
  };
};
