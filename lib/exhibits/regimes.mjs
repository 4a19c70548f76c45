// Gauges that say between which limits a network stands. The kernels compute every number
// from the sizes on the sliders; a menu of published models sets these.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";

const NAMES = ["width", "depth", "heads", "tokens", "spread"];
const ROW = 43; // pixels of the height of a gauge

const many = (count) => Math.round(count).toLocaleString("en");

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
  let found, colors;

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
    for (let k = 0; k < depth; k++) at = ask("layer", { cosine: at.next, tokens, beta, branch });
    found = {
      shown: [lengths.time, law.kurtosis, beta / Math.log(tokens), tokens / width, order.order, at.next],
      spread: lengths.spread, limit: law.c / heads, seen: law.seen, tied: context.tied, chance: wendel.probability,
    };
    const sizes = NAMES.map((name) => values[name]);
    menu.value = String(state.models.findIndex((_, i) => sizes.every((size, k) => size === state.sizes[NAMES.length * i + k])));
  };
  menu.addEventListener("change", () => {
    const first = NAMES.length * Number(menu.value);
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
        pen.textAlign = "center";
        state.zones[i].split("|").forEach((zone, k) => {
          pen.globalAlpha = k % 2 ? 0.34 : 0.14;
          pen.fillStyle = colors.accent;
          pen.fillRect(edges[k], top + 18, edges[k + 1] - edges[k], 19);
          pen.globalAlpha = 1;
          pen.fillStyle = colors.ink;
          if (pen.measureText(zone).width < edges[k + 1] - edges[k] - 4) pen.fillText(zone, (edges[k] + edges[k + 1]) / 2, top + 28);
        });
        pen.fillStyle = colors.ink;
        pen.textAlign = "left";
        pen.fillText(name, 1, top + 8);
        pen.textAlign = "right";
        pen.fillText(short(found.shown[i]), w - 1, top + 8);
        const x = Math.min(w - 6, Math.max(6, place(found.shown[i])));
        pen.fillStyle = colors.mark;
        pen.fillRect(x - 1, top + 15, 2, 24);
        pen.beginPath();
        pen.arc(x, top + 15, 5, 0, 2 * Math.PI);
        pen.fill();
      });
    },
    changed: compute,
    reset: compute,
    text() {
      const [time, kurtosis, , , order, cosine] = found.shown;
      const special = state.special[Number(menu.value)];
      const percent = (share) => `${short(100 * share)}\u00a0%`;
      return (
        `${special ? `${state.models[Number(menu.value)]}. ` : ""}T = ${short(time)}: the logarithm of a token's squared length varies by ${short(found.spread)} between networks.` +
        ` Excess kurtosis ${short(kurtosis)}, of which infinite width leaves ${short(found.limit)}.` +
        ` A token puts ${percent(found.tied)} on itself where queries are keys; where they are independent it sees ${many(found.seen)} of ${many(values.tokens)}.` +
        ` Random tokens share a hemisphere with probability ${short(found.chance)}.` +
        ` ${order} orders of the softmax give 5\u00a0%; with shared layers the cosine ends at ${short(cosine)}.` +
        `${special ? ` Not covered: trained weights, ${special}.` : ""}`
      );
    },
  };
};
