// Gauges that say between which limits a network stands. The kernels compute every number
// from the sizes on the sliders; a menu of published models sets these.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";

const NAMES = ["width", "depth", "heads", "tokens", "spread"];
const ROW = 57; // pixels of the height of a gauge
const [BAR, THICK, NAMED] = [23, 14, 46]; // of its bar, and of the names of its zones

const many = (count) => Math.round(count).toLocaleString("en");
// What is lost in rounding is not printed.
const few = (value) => (value < 1e-6 ? "less than 10⁻⁶" : short(value));

export default ({ stage, state, values, call, act, put }) => {
  const menu = document.createElement("select");
  menu.className = "exhibit-menu";
  menu.setAttribute("aria-label", "model");
  for (const [i, name] of ["your own", ...state.models].entries()) menu.add(new Option(name, String(i - 1)));
  const canvas = document.createElement("canvas");
  canvas.className = "exhibit-gauges";
  canvas.setAttribute("aria-hidden", "true");
  canvas.style.height = `${ROW * state.gauges.length}px`;
  stage.append(menu, canvas);
  const arrays = {};
  for (const name of ["score", "chance", "place", "share", "node", "weight", "orders", "log_factorial"]) arrays[name] = Float64Array.from(state[name]);
  let found, colors, chosen = state.chosen;

  const ask = (name, inputs) => {
    const answer = call(name, inputs);
    if (!answer) throw new Refused("These sizes cannot be computed.");
    return answer;
  };
  const compute = () => {
    const { width, depth, heads, tokens, spread } = values;
    const { branch } = state;
    const { score, chance, place, share, node, weight, orders, log_factorial } = arrays;
    const keys = width / heads;
    const beta = spread * Math.sqrt(keys);
    const lengths = ask("lengths", { width, depth, branch });
    const law = ask("kurtosis", { z: score.length, p: place.length, width, heads, key_width: keys, tokens, spread, score, chance, place, share });
    const context = ask("context", { tokens, beta, key_width: keys });
    const wendel = ask("hemisphere", { g: node.length, tokens, width, node, weight });
    const order = ask("order", { r: orders.length, spread, orders, log_factorial });
    let at = { next: 0 };
    for (let k = 0; k < depth; k++) at = ask("layer", { cosine: at.next, tokens, beta, key_width: keys, branch });
    found = {
      shown: [lengths.time, law.kurtosis, beta / Math.log(tokens), tokens / width, order.order, at.next],
      keys, spread: lengths.spread, limit: law.c / heads, seen: law.seen, tied: context.tied, chance: wendel.probability,
    };
    found.zones = found.shown.map((value, i) => state.zones[i].split("|").slice(1).filter((_, k) => value > state.breaks[2 * i + k]).length);
    const sizes = NAMES.map((name) => values[name]);
    // Several models have the same sizes: the one that was chosen stays.
    const alike = (i) => i >= 0 && sizes.every((size, k) => size === state.sizes[NAMES.length * i + k]);
    if (!alike(chosen)) chosen = state.models.findIndex((_, i) => alike(i));
    menu.value = String(chosen);
  };
  menu.addEventListener("change", () => {
    chosen = Number(menu.value);
    const first = NAMES.length * chosen;
    if (first >= 0) act(() => { NAMES.forEach((name, k) => put(name, state.sizes[first + k])); compute(); });
  });

  return {
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      const [pen, w] = fitted(canvas);
      pen.font = colors.font;
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
          const here = k === found.zones[i];
          pen.globalAlpha = here ? 0.36 : 0.12;
          pen.fillStyle = colors.accent;
          pen.fillRect(edges[k], top + BAR, edges[k + 1] - edges[k], THICK);
          pen.globalAlpha = 1;
          pen.fillStyle = colors.ink;
          pen.font = here ? `bold ${colors.font}` : colors.font;
          if (pen.measureText(zone).width < edges[k + 1] - edges[k] - 4) pen.fillText(zone, (edges[k] + edges[k + 1]) / 2, top + NAMED);
        });
        pen.font = colors.font;
        pen.fillStyle = colors.ink;
        pen.textAlign = "left";
        pen.fillText(name, 1, top + 7);
        edges.slice(0, state.zones[i].split("|").length).forEach((edge, k) => {
          pen.fillText(marks[k], edge + 7, top + BAR + THICK / 2);
          if (k) pen.fillRect(edge, top + BAR, 1, THICK + 3);
        });
        pen.textAlign = "right";
        pen.fillText(few(found.shown[i]), w - 1, top + 7);
        pen.fillText(marks.at(-1), w - 7, top + BAR + THICK / 2);
        const x = Math.min(w - 6, Math.max(6, place(found.shown[i])));
        pen.fillStyle = colors.mark;
        pen.strokeStyle = colors.ink;
        pen.beginPath();
        for (const [a, b] of [[0, 0], [-6, -9], [6, -9]]) pen.lineTo(x + a, top + BAR + b);
        pen.closePath();
        pen.fill();
        pen.stroke();
      });
    },
    changed(name) {
      // A head keeps some coordinates: width and heads move each other.
      if (values.width < state.keys * values.heads) {
        if (name === "heads") put("width", state.keys * values.heads);
        else put("heads", Math.floor(values.width / state.keys));
      }
      compute();
    },
    reset() {
      chosen = state.chosen;
      compute();
    },
    text() {
      const [time, kurtosis, , , order, cosine] = found.shown;
      const special = state.special[chosen];
      const percent = (share) => `${short(100 * share)}\u00a0%`;
      return [
        `At initialization ${special ? state.models[chosen] : "your model"} ${state.verdicts.map((said, i) => said.split("|")[found.zones[i]] ?? "").join("")}.`,
        `T = ${short(time)}: from network to network the logarithm of a token's squared length varies by ${short(found.spread)}.`,
        `Excess kurtosis ${few(kurtosis)} with heads of width ${short(found.keys)}; infinite width would leave ${few(found.limit)}.`,
        `A token puts ${percent(found.tied)} on itself if queries are keys; if they are independent, it sees ${many(found.seen)} of ${many(values.tokens)} tokens.`,
        `Random tokens lie in one hemisphere with probability ${short(found.chance)}.`,
        `The softmax is within 5\u00a0% after ${order} ${order === 1 ? "order" : "orders"}.`,
        `With the same weights in each layer the cosine of tokens ends at ${few(cosine)}.`,
        special && `Not covered: trained weights, ${special}.`,
      ].filter(Boolean).join("\n");
    },
  };
};
