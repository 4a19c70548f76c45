// Tokens that step away from what they attend to, and the heat above them. Kernels
// compute both; here is what is drawn, dragged and timed.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";

const SECONDS = 10; // for the whole film
const FRAME = 9; // milliseconds of computing in a frame, about
const SINKHORN = 0, SCORE = 2; // values of `layer`; the softmax is the other one
const ROUNDING = 1e-9; // of a number of layers
const REST = 1.5; // seconds for which the film stands before it plays by itself
const HELP =
  "Tokens. Full stop and comma choose one, arrow keys move it, with Shift farther; Escape lets it go; the space bar plays and pauses.";

const LEVELS = [0.75, 0.5, 0.25, 0.1, 0.02]; // of the largest density
const shade = (p) => {
  const level = LEVELS.find((each) => p >= each);
  return level === undefined ? 0 : 255 * (0.14 + 0.5 * level);
};
const two = (x) => x.toFixed(2).replace("-", "−").replace("−0.00", "0.00");
const lawOf = ({ means, variances, weights }) => ({
  c: means.length, means: Float64Array.from(means), variances: Float64Array.from(variances), weights: Float64Array.from(weights),
});
const heights = lawOf({ means: [0], variances: [1], weights: [1] });

// One layer on tokens (n, 2): where they go, how many each sees, whether they freeze.
export const layer = (state, { eps, layer: kind, plane }, call, x, time) => {
  const n = x.length / 2;
  const asked = (name, inputs) => {
    const answer = call(name, { n, eps, ...inputs });
    if (!answer) throw new Refused(`At ε = ${short(eps)} a layer on these tokens cannot be computed.`);
    return answer;
  };
  if (kind === SCORE) {
    const next = x.slice();
    [lawOf(state), heights].slice(0, plane ? 2 : 1).forEach((law, d) => {
      const moved = asked("score", { ...law, time, x: Float64Array.from({ length: n }, (_, i) => x[2 * i + d]) });
      moved.next.forEach((value, i) => (next[2 * i + d] = value));
    });
    return { next, seen: null, frozen: false };
  }
  const weights = new Float64Array(n).fill(1 / n);
  const { kernel } = asked("kernel", { x });
  let u = new Float64Array(n).fill(1), received, error;
  for (let k = 0; ; k++) {
    let following;
    ({ received, error, next: following } = asked("update", { kernel, weights, u }));
    if (kind !== SINKHORN || error <= state.tol) break;
    if (k === state.updates) throw new Refused(`At ε = ${short(eps)} the scalings of these tokens do not converge.`);
    u = following;
  }
  const mass = u.map((each, i) => weights[i] * each);
  // What comes from its own place: copies of a token share it.
  const places = new Map();
  const keys = Array.from(mass, (_, i) => `${x[2 * i]},${x[2 * i + 1]}`);
  keys.forEach((key, i) => places.set(key, (places.get(key) ?? 0) + mass[i]));
  const own = Float64Array.from(keys, (key) => places.get(key));
  const moved = asked("layer", { x, kernel, weights, mass, received, own });
  return { ...moved, frozen: moved.frozen && places.size > 1 };
};

// How densely tokens lie: a share over half the way from neighbor to neighbor.
export const densities = (x) => {
  const n = x.length / 2;
  const order = [...Array(n).keys()].sort((i, j) => x[2 * i] - x[2 * j]);
  const gaps = order.slice(1).map((i, k) => x[2 * i] - x[2 * order[k]]);
  const density = new Float64Array(n);
  order.forEach((i, k) => (density[i] = 2 / (n * ((gaps[k - 1] ?? gaps[k]) + (gaps[k] ?? gaps[k - 1])))));
  return density;
};

export default ({ stage, state, values, call, act, play, playing, redraw, put }) => {
  const { reach, top, horizon } = state;
  const law = lawOf(state);
  const canvas = document.createElement("canvas");
  canvas.className = "exhibit-film";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", HELP);
  const bands = document.createElement("canvas");
  stage.append(canvas);

  let film, start, before, edits, colors, rest, held = null, chosen = null;

  // Where the film is: the layer that is done, and the part of the next.
  const at = () => {
    const k = Math.floor(values.time / values.eps + ROUNDING);
    return [k, Math.max(0, values.time / values.eps - k)];
  };
  const needed = (time = values.time) => Math.ceil(time / values.eps - ROUNDING);
  const ready = () => film.length > needed();
  // What was moved by hand stays where it was put, in the first layer from then on.
  const edit = (k) => {
    for (const { time, i, to } of edits) if (needed(time) === k) film[k].x.set(to, 2 * i);
  };
  const begin = () => {
    film = [{ x: start.slice(), grown: 0 }];
    edit(0);
  };
  // What a layer makes of the tokens that it meets, computed once.
  const after = (k) => (film[k].after ??= layer(state, values, call, film[k].x, k * values.eps));
  const grow = () => {
    const { x, grown } = film.at(-1);
    const { next } = after(film.length - 1);
    // What layers add to the variance, not what a hand does.
    film.push({ x: next.slice(), grown: grown + variance(next) - variance(x) });
    edit(film.length - 1);
  };
  const work = (layers, until = Infinity) => {
    while (film.length <= layers && performance.now() < until) grow();
  };
  const setUp = () => {
    const first = state.counts.filter((n) => n < values.tokens).reduce((sum, n) => sum + n, 0);
    start = Float64Array.from(state.places.slice(2 * first, 2 * (first + values.tokens)));
    if (!values.plane) start = start.map((c, k) => (k % 2 ? 0 : c));
    edits = [];
    held = chosen = before = null;
    rest = REST;
    begin();
  };
  // Tokens as they are to be seen, or still those of before.
  const shown = () => {
    if (!ready() && before) return before;
    const [k, part] = at();
    const { x, after } = film[Math.min(k, film.length - 1)];
    return (before = part > ROUNDING && after ? x.map((c, j) => c + part * (after.next[j] - c)) : x);
  };

  // Places on the canvas.
  let box = null; // left, right, head, foot, and where tokens of a line are
  const measure = (w, height) => {
    const [left, right, head, foot] = values.plane ? [1, w - 1, 1, height - 1] : [34, w - 10, 22, height - 50];
    const scale = (right - left) / (2 * reach);
    box = { left, right, head, foot, scale, cx: (left + right) / 2, cy: values.plane ? height / 2 : foot + 14 };
  };
  const spot = (x, i) => [box.cx + box.scale * x[2 * i], box.cy - (values.plane ? box.scale * x[2 * i + 1] : 0)];
  const place = ({ clientX, clientY }) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  const token = (event) => {
    const [X, Y] = place(event);
    const x = shown();
    let [best, least] = [null, event.pointerType === "touch" ? 26 : 14];
    for (let i = 0; i < x.length / 2; i++) {
      const [U, V] = spot(x, i);
      const far = Math.hypot(U - X, V - Y);
      if (far < least) [best, least] = [i, far];
    }
    return best;
  };
  const kept = (c, most) => Math.min(most, Math.max(-most, c));
  // A token is moved in the layer that is done; what came after is computed anew.
  const move = (i, across, up) => {
    work(needed());
    const [k] = at();
    put("time", k * values.eps);
    const to = [kept(across, reach), values.plane ? kept(up, canvas.clientHeight / 2 / box.scale) : 0];
    edits = edits.filter((each) => each.i !== i || needed(each.time) !== k);
    edits.push({ time: values.time, i, to });
    film.length = k + 1;
    film[k] = { x: film[k].x.slice(), grown: film[k].grown };
    edit(k);
  };
  const drag = (event) => {
    const [X, Y] = place(event);
    move(held, (X - box.cx) / box.scale, (box.cy - Y) / box.scale);
  };

  canvas.addEventListener("touchstart", (event) => {
    // A finger on a token moves it, and else scrolls the page.
    const { clientX, clientY } = event.touches[0];
    if (token({ clientX, clientY, pointerType: "touch" }) !== null) event.preventDefault();
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button > 0) return;
    held = chosen = token(event);
    if (held === null) return redraw();
    canvas.dataset.held = held;
    act(() => drag(event));
    if (canvas.isConnected) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (held !== null) act(() => drag(event));
    else canvas.style.cursor = box && token(event) !== null ? "grab" : "";
  });
  const release = () => {
    held = null;
    delete canvas.dataset.held;
    redraw();
  };
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(name, release);

  const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener("keydown", (event) => {
    const [n, way] = [start.length / 2, ARROWS[event.key]];
    if (!box || event.altKey || event.ctrlKey || event.metaKey) return;
    if (way) {
      chosen ??= 0;
      const far = (event.shiftKey ? 0.05 : 0.01) * reach;
      const x = shown();
      act(() => move(chosen, x[2 * chosen] + far * way[0], x[2 * chosen + 1] + far * way[1]));
    } else if (event.key === "." || event.key === ",") chosen = ((chosen ?? -1) + (event.key === "." ? 1 : n - 1 + (chosen === null))) % n;
    else if (event.key === "Escape") chosen = null;
    else if (event.key === " ") act(play);
    else return;
    event.preventDefault();
    redraw();
  });

  const density = (of, length, most) => {
    const x = Float64Array.from({ length }, (_, k) => most * ((2 * k) / (length - 1) - 1));
    const heat = call("heat", { n: length, ...of, x, time: values.time });
    if (!heat) throw new Refused(`The heat at time ${short(values.time)} cannot be computed.`);
    return heat.density;
  };
  // The heat in the plane, a product of two densities: bands, in one color of the theme.
  const paintPlane = (pen, w, height) => {
    const [W, H] = [w, height].map(Math.round);
    const [across, up] = [density(law, W, reach), density(heights, H, height / 2 / box.scale)];
    [bands.width, bands.height] = [W, H];
    const inner = bands.getContext("2d");
    const image = inner.createImageData(W, H);
    const most = Math.max(...across) * Math.max(...up);
    for (let i = 0, k = 3; i < H; i++)
      for (let j = 0; j < W; j++, k += 4) image.data[k] = shade((across[j] * up[i]) / most);
    inner.putImageData(image, 0, 0);
    inner.globalCompositeOperation = "source-in";
    inner.fillStyle = colors.quiet;
    inner.fillRect(0, 0, W, H);
    pen.drawImage(bands, 0, 0, w, height);
  };
  const paintLine = (pen, x, ring) => {
    const { left, right, head, foot, cx, cy, scale } = box;
    const high = (p) => foot - (foot - head) * Math.min(1, p / top);
    const heat = density(law, 161, reach);
    pen.beginPath();
    heat.forEach((p, k) => pen.lineTo(left + ((right - left) * k) / 160, high(p)));
    pen.strokeStyle = colors.ink;
    pen.lineWidth = 1.8;
    pen.stroke();
    pen.lineTo(right, foot);
    pen.lineTo(left, foot);
    pen.fillStyle = colors.tint;
    pen.globalCompositeOperation = "destination-over";
    pen.fill();
    pen.globalCompositeOperation = "source-over";
    // The axis, and where each token started.
    pen.strokeStyle = colors.quiet;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(left, head);
    pen.lineTo(left, foot);
    pen.lineTo(right, foot);
    for (let i = 0; i < start.length / 2; i++) {
      pen.moveTo(cx + scale * start[2 * i], cy + 9);
      pen.lineTo(cx + scale * start[2 * i], cy + 14);
    }
    pen.stroke();
    pen.fillStyle = colors.quiet;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const p of [0, 0.1, 0.2].filter((each) => each <= top)) pen.fillText(String(p), left - 5, high(p));
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    for (let k = -3; k <= 3; k++) pen.fillText(short((k / 4) * reach).replace("-", "−"), cx + (k / 4) * reach * scale, foot + 48);
    pen.fillText("x", right, foot + 48);
    pen.textAlign = "left";
    pen.textBaseline = "top";
    pen.fillText("density", 2, 4);
    // The outermost tokens have a neighbor on one side only.
    const ends = [Math.min, Math.max].map((end) => x.reduce((a, c, k) => (k % 2 ? a : end(a, c)), x[0]));
    densities(x).forEach((p, i) => ends.includes(x[2 * i]) || ring(cx + scale * x[2 * i], high(p)));
  };
  const paint = () => {
    const [pen, w, height] = fitted(canvas);
    measure(w, height);
    const x = shown();
    const n = x.length / 2;
    const r = Math.min(4.5, Math.max(2.2, 30 / Math.sqrt(n)));
    pen.font = colors.font;
    const dot = (X, Y, size = r, color = colors.accent) => {
      pen.fillStyle = color;
      pen.strokeStyle = colors.paper;
      pen.lineWidth = 0.8;
      pen.beginPath();
      pen.arc(X, Y, size, 0, 2 * Math.PI);
      if (n < 100) pen.stroke();
      pen.fill();
    };
    const ring = (X, Y) => {
      pen.fillStyle = colors.paper;
      pen.strokeStyle = colors.accent;
      pen.lineWidth = 1.3;
      pen.beginPath();
      pen.arc(X, Y, r - 0.4, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    };
    if (values.plane) paintPlane(pen, w, height);
    else paintLine(pen, x, ring);
    for (let i = 0; i < n; i++) dot(...spot(x, i));
    if (chosen !== null) dot(...spot(x, chosen), r + 2, colors.mark);
    pen.textAlign = "left";
    pen.textBaseline = "top";
    const left = box.left + (values.plane ? 6 : 26);
    // The key, in the corner that stays empty.
    (values.plane ? ["heat", "token"] : ["heat", "crowd", "token", "start"]).forEach((name, k) => {
      const [X, Y] = [w - 52, 10 + 15 * k];
      pen.fillStyle = colors.ink;
      pen.fillText(name, X + 10, Y - 6);
      if (name === "token") dot(X, Y);
      else if (name === "crowd") ring(X, Y);
      else {
        const up = name === "start";
        pen.fillStyle = up || values.plane ? colors.quiet : colors.ink;
        pen.fillRect(X - (up ? 0 : 6), Y - (up ? 3 : values.plane ? 4 : 1), up ? 1 : 12, up ? 6 : values.plane ? 8 : 2);
      }
    });
    if (!film[at()[0]]?.after?.frozen) return;
    pen.fillStyle = colors.mark;
    pen.fillText("tokens hardly see each other", left, 4);
  };
  // What the heat adds to the variance of the tokens that it carries.
  const heatAdds = () => {
    const k = state.counts.indexOf(start.length / 2);
    const times = state.carried.length / state.counts.length - 1;
    const place = (values.time / horizon) * times, j = Math.min(times - 1, Math.floor(place));
    const [low, high] = [0, 1].map((i) => state.carried[k * (times + 1) + j + i]);
    const across = low + (place - j) * (high - low);
    // Heights are normal: heat multiplies them, and their variance grows evenly.
    return values.plane ? (across + varianceOf(start, 1) * values.time) / 2 : across;
  };
  const varianceOf = (x, d) => {
    const each = x.filter((_, k) => k % 2 === d);
    const mean = each.reduce((sum, c) => sum + c, 0) / each.length;
    return each.reduce((sum, c) => sum + (c - mean) ** 2, 0) / each.length;
  };
  const variance = (x) => (varianceOf(x, 0) + varianceOf(x, 1)) / (values.plane ? 2 : 1);

  return {
    // A film that opens at its end stands there.
    rests: () => values.time >= horizon,
    tick(seconds) {
      if (held !== null) return true;
      rest -= seconds;
      if (rest > 0 && values.time === 0) return true;
      if (values.time >= horizon) put("time", 0);
      const next = Math.min(horizon, values.time + (seconds * horizon) / SECONDS);
      work(needed(next), performance.now() + FRAME);
      put("time", Math.min(next, Math.max(values.time, (film.length - 1) * values.eps)));
      return values.time < horizon;
    },
    // To the end of the next layer.
    step() {
      put("time", values.time >= horizon ? 0 : Math.min(horizon, (at()[0] + 1) * values.eps));
    },
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      // What is said of a layer needs the attention in it as well.
      if (!playing() && !(ready() && film[at()[0]].after)) {
        work(needed(), performance.now() + FRAME);
        if (ready()) after(at()[0]);
        // Another frame goes on, and says what has come out.
        queueMicrotask(ready() ? () => act(() => {}) : redraw);
      }
      paint();
    },
    changed(name) {
      if (name === "time") return playing() && play();
      if (name === "tokens" || name === "plane") return setUp();
      begin();
    },
    reset: setUp,
    text() {
      const kind = ["Sinkhorn", "softmax", "exact score"][values.layer];
      const n = start.length / 2;
      const place = `${n} token${n > 1 ? "s" : ""} ${values.plane ? "in the plane" : "on the line"}, ${kind}, ε = ${short(values.eps)}`;
      if (!ready()) return `${place}: the layers up to time ${two(values.time)} are being computed.`;
      const { seen, frozen } = film[at()[0]].after ?? {};
      const said = !seen ? ""
        : n === 1 ? " A single token has nobody to see, and stays where it is."
        : frozen ? " In this layer tokens hardly see each other: most pay more than nine tenths of their attention to their own place."
        : ` A token attends to ${(seen.reduce((sum, each) => sum + each, 0) / n).toFixed(1)} tokens, itself included.`;
      const [k, part] = at();
      const done = part > ROUNDING ? `between layers ${k} and ${k + 1}` : `layer ${k}`;
      const grown = film[k].grown + variance(shown()) - variance(film[k].x);
      const heated = heatAdds();
      const share = heated > 0 ? ` (${((100 * grown) / heated).toFixed(0).replace("-", "−").replace("−0", "0")} %)` : "";
      return (
        `Time ${two(values.time)}, ${done}: ${place}. Their variance has grown by ` +
        `${two(grown)}; the heat itself would add ${two(heated)}${share}.${said}`
      );
    },
  };
};
