// Gauges that say between which limits a network stands. The kernels compute every number
// from the sizes on the sliders; a menu of published models sets these.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";

const SIZES = ["width", "depth", "heads", "tokens"], NAMES = [...SIZES, "spread"];
const ROW = 64; // pixels of the height of a gauge
const [BAR, THICK, ENDS] = [25, 19, 52]; // of its bar, and of the numbers at its borders

const many = (count) => Math.round(count).toLocaleString("en");
// A probability is 1 for at most as many tokens as coordinates.
const chanceOf = (p, tokens, width) => (tokens <= width ? "1" : p > 0.999 ? "more than 0.999" : few(p));
// Models of the reader's, with negative numbers; the first one is normalized.
const OWN = ["your own, with normalization", "your own, without normalization"];
const OPENING = ["Width may go first", "Depth and width go together", "Depth comes first"];
const TAILS = ["nearly Gaussian", "visibly non-Gaussian"];
// What is lost in rounding is not printed.
const few = (value) => (value < 1e-6 ? "less than 10⁻⁶" : short(value));

export default ({ stage, state, values, call, act, put }) => {
  const menu = document.createElement("select");
  menu.className = "exhibit-menu";
  menu.setAttribute("aria-label", "model");
  for (const [i, name] of [...OWN, ...state.models].entries()) menu.add(new Option(name, String(i - OWN.length)));
  // A model whose sizes were moved: what else is known of it stays.
  const altered = new Option("", "altered");
  const canvas = document.createElement("canvas");
  canvas.className = "exhibit-gauges";
  canvas.setAttribute("aria-hidden", "true");
  canvas.style.height = `${ROW * state.gauges.length}px`;
  // Each gauge is a button: what it says is told below.
  const rows = document.createElement("div");
  rows.className = "exhibit-rows";
  let told = state.told;
  const buttons = state.gauges.map((_, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.style.height = `${ROW}px`;
    button.addEventListener("click", () => act(() => (told = i)));
    rows.append(button);
    return button;
  });
  rows.prepend(canvas);
  stage.append(menu, rows);
  const arrays = {};
  for (const name of ["score", "chance", "place", "share", "normal", "part", "node", "weight", "orders", "log_factorial"]) arrays[name] = Float64Array.from(state[name]);
  let now, base, colors, chosen = state.chosen;

  const ask = (name, inputs) => {
    const answer = call(name, inputs);
    if (!answer) throw new Refused("These sizes cannot be computed.");
    return answer;
  };
  const zone = (value, i) => state.zones[i].split("|").slice(1).filter((_, k) => value > state.breaks[2 * i + k]).length;
  // A cosine is not 1 by rounding.
  const reads = (i) => (i === 5 && now.shown[i] > 0.995 ? "more than 0.99" : few(now.shown[i]));
  const number = (i) => (now.zones[i] < 0 ? state.constant : `${state.symbols[i]} ${reads(i).replace("less than", "<").replace("more than", ">")}`.trim());
  const normalizes = () => chosen !== -1;
  // Whether a published model has these sizes, and these logits unless they are left out.
  const same = (k, names = NAMES) => names.every((name, i) => values[name] === state.sizes[NAMES.length * k + i]);
  const compute = () => {
    const { width, depth, heads, tokens, spread } = values;
    const { branch } = state;
    const { score, chance, place, share, normal, part, node, weight, orders, log_factorial } = arrays;
    const keys = width / heads;
    const beta = spread * Math.sqrt(keys);
    const lengths = ask("lengths", { width, depth, branch });
    const law = ask("kurtosis", { z: score.length, p: place.length, q: part.length, width, heads, key_width: keys, tokens, spread, score, chance, place, share, normal, part });
    const context = ask("context", { tokens, beta, key_width: keys });
    const wendel = ask("hemisphere", { g: node.length, tokens, width, node, weight });
    const order = ask("order", { r: orders.length, spread, orders, log_factorial });
    const layers = (beta) => {
      let at = { next: 0 };
      for (let k = 0; k < depth; k++) at = ask("layer", { cosine: at.next, tokens, beta, key_width: keys, branch });
      return at.next;
    };
    now = {
      shown: [lengths.spread, law.kurtosis, beta / Math.log(tokens), tokens / width, order.order, layers(beta)],
      keys, time: lengths.time, spread: lengths.spread, normalized: lengths.pre_norm, limit: law.c / heads, seen: law.seen, tied: context.tied, orthogonal: context.orthogonal, chance: wendel.probability,
    };
    now.zones = now.shown.map(zone);
    // Few heads keep tokens farther apart than many do.
    const met = now.zones[5] > 1;
    now.few = heads < state.enough || (met && zone(layers(beta * (1 + state.extra / heads)), 5) < 2);
    if (met && now.few) now.zones[5] = 1;
    // The model that was chosen stays so, even where its sizes pass those of another.
    const near = chosen >= 0 && !same(chosen);
    if (near) {
      altered.textContent = `${state.models[chosen]}, ${same(chosen, SIZES) ? "σ" : "sizes"} changed`;
      menu.add(altered, 1);
    } else altered.remove();
    menu.value = near ? altered.value : String(chosen);
    // What normalization makes of lengths decides, where a model is known to have it.
    if (normalizes()) {
      now.shown[0] = now.normalized;
      now.zones[0] = state.fixed[chosen] ? -1 : zone(now.normalized, 0);
    }
    if (!near) base = chosen < 0 ? null : now; // where a model stood whose sizes are moved
    buttons.forEach((button, i) => button.setAttribute("aria-label",
      `${state.gauges[i]} ${now.zones[i] < 0 ? "" : `${state.zones[i].split("|")[now.zones[i]]}: `}${number(i)}`));
  };
  // A published model with other logits: first with the usual ones, where it stood.
  const computeBoth = () => {
    const { spread } = values;
    for (const each of new Set(chosen < 0 ? [spread] : [1, spread])) {
      put("spread", each);
      compute();
    }
  };
  menu.addEventListener("change", () => {
    if (menu.value === altered.value) return;
    chosen = Number(menu.value);
    const first = NAMES.length * chosen;
    act(() => {
      if (first >= 0) NAMES.forEach((name, k) => put(name, state.sizes[first + k]));
      compute();
    });
  });

  return {
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", i === told));
      const [pen, w] = fitted(canvas);
      const font = colors.font.replace("12px", "13.5px");
      pen.textBaseline = "middle";
      state.gauges.forEach((name, i) => {
        const top = i * ROW;
        const scale = state.logs[i] ? Math.log : (x) => x;
        const [low, high] = state.ends.slice(2 * i, 2 * i + 2);
        const place = (x) => 1 + (w - 2) * Math.min(1, Math.max(0, (scale(Math.max(x, low)) - scale(low)) / (scale(high) - scale(low))));
        const edges = [low, ...state.breaks.slice(2 * i, 2 * i + 2), high].map(place);
        const marks = state.marks[i].split("|");
        pen.textAlign = "center";
        state.zones[i].split("|").forEach((zone, k) => {
          const here = k === now.zones[i];
          pen.globalAlpha = here ? 0.36 : 0.12;
          pen.fillStyle = colors.accent;
          pen.fillRect(edges[k], top + BAR, edges[k + 1] - edges[k], THICK);
          pen.globalAlpha = 1;
          pen.fillStyle = colors.ink;
          pen.font = here ? `bold ${font}` : font;
          if (pen.measureText(zone).width < edges[k + 1] - edges[k] - 4) pen.fillText(zone, (edges[k] + edges[k + 1]) / 2, top + BAR + THICK / 2 + 1);
        });
        pen.font = colors.font;
        edges.slice(0, marks.length).forEach((edge, k) => {
          const last = k === marks.length - 1;
          pen.textAlign = k ? (last ? "right" : "center") : "left";
          pen.fillText(marks[k], last ? w - 1 : edge, top + ENDS);
          if (k && !last) pen.fillRect(edge, top + BAR, 1, THICK + 1);
        });
        pen.font = font;
        pen.textAlign = "left";
        pen.fillStyle = i === told ? colors.accent : colors.ink;
        pen.fillText(name, 1, top + 7);
        pen.fillStyle = colors.ink;
        pen.textAlign = "right";
        pen.fillText(number(i), w - 1, top + 7);
        const mark = (value, face) => {
          const x = Math.min(w - 6, Math.max(6, place(value)));
          // Beyond an end it points there.
          const beyond = value > high ? 1 : value < low ? -1 : 0;
          const corners = beyond ? [[6 * beyond, -5], [-4 * beyond, -10], [-4 * beyond, 0]] : [[0, 0], [-6, -9], [6, -9]];
          pen.fillStyle = face;
          pen.strokeStyle = face === colors.quiet ? colors.quiet : colors.ink;
          pen.beginPath();
          for (const [a, b] of corners) pen.lineTo(x + a, top + BAR + b);
          pen.closePath();
          pen.fill();
          pen.stroke();
        };
        if (base && base !== now && now.zones[i] >= 0) mark(base.shown[i], colors.quiet);
        if (i === 0 && normalizes()) mark(now.spread, colors.paper); // without normalization
        if (now.zones[i] >= 0) mark(now.shown[i], colors.mark);
      });
    },
    changed(name) {
      // A head keeps some coordinates: width and heads move each other.
      if (values.width < state.keys * values.heads) {
        if (name === "heads") put("width", state.keys * values.heads);
        else put("heads", Math.floor(values.width / state.keys));
      }
      const before = now;
      compute();
      // Where the number that is told does not move, a bar that changes sides is.
      const crossed = now.zones.findIndex((zone, i) => zone !== before.zones[i]);
      if (crossed >= 0 && now.shown[told] === before.shown[told]) told = crossed;
    },
    reset() {
      told = state.told;
      chosen = state.chosen;
      computeBoth();
    },
    // A word of the text may set the sizes of another model. It is about the bar that it
    // names as `told`, from 0, or else about the first that changes sides.
    wordSet(word) {
      const model = state.models.findIndex((_, k) => same(k, SIZES));
      if (model >= 0 && !same(chosen, SIZES)) {
        chosen = model;
        computeBoth();
      }
      const changed = base ? now.zones.findIndex((each, i) => each !== base.zones[i]) : -1;
      if (changed >= 0) told = changed;
      if ("told" in word) told = Number(word.told);
    },
    text() {
      const [, kurtosis, , , order] = now.shown;
      const { time } = now;
      const special = state.special[chosen];
      const percent = (share) => `${short(100 * share)}\u00a0%`;
      const [fixed, shared] = [state.fixed[chosen], state.shared[chosen]];
      // A spread of logarithms, as what it does to the number itself.
      const varies = (spread) => (spread < 0.3 ? `${Number((100 * spread).toPrecision(2))}\u00a0%` : `a factor of ${short(Math.exp(spread))}`);
      const first = normalizes() ? ["linear and normalized before each branch", now.normalized] : ["linear", now.spread];
      const then = normalizes() ? ["without normalization", now.spread] : ["normalized before each branch", now.normalized];
      const said = [
        fixed && shared ? `Lengths do not vary: normalization fixes them after each branch; and where all layers are alike no theorem here uses T = L/n.`
          : fixed ? `Lengths do not vary: normalization fixes them after each branch. Under linear layers of these sizes the cosine of two orthogonal tokens would vary by ${short(now.spread / Math.SQRT2)} (T = L/n = ${short(time)}).`
            : `${OPENING[now.zones[0]]}: if layers are ${first[0]}, the squared length of a token varies by ${varies(first[1])} between random networks (one standard deviation; T = L/n = ${short(time)}); ${then[0]}, by ${varies(then[1])}.`,
        `An output is ${TAILS[now.zones[1]]}: its excess kurtosis over networks is ${few(kurtosis)} with heads of width ${short(now.keys)}; infinite width would leave ${few(now.limit)}.`,
        `If queries are keys, a token keeps ${percent(now.tied)} of its attention on average over random keys, and ${percent(now.orthogonal)} if its other logits are 0. If they are independent, as before training, it keeps ${percent(1 / values.tokens)}, and effectively sees ${many(now.seen)} of ${many(values.tokens)} tokens.`,
        `Random tokens lie in one hemisphere with probability ${chanceOf(now.chance, values.tokens, values.width)}.`,
        `With logits of this size the softmax is within 5\u00a0% after ${order} ${order === 1 ? "order" : "orders"}.`,
        `Were one layer repeated, with equal queries and keys, many heads and normalization after it, the cosine of tokens would go from 0 to ${reads(5)}; fewer heads keep it smaller${now.few ? ", and so few may keep it far smaller" : ""}.`,
      ];
      return `${said[told]}\nNot covered: trained weights, ${special ?? state.unknown[Number(normalizes())]}.`;
    },
  };
};
