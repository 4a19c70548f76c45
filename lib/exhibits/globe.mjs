// Tokens on a globe, and the energy and the number of clusters against logarithmic time.
// The kernels `step` and `crowd` compute; here is what is drawn, dragged and timed.
import { Refused, colorsOf, fitted, short } from "./exhibit.mjs";

const DECADE = 5; // seconds for a decade of time
const SLOW = 0.8; // before this time, the clock is as fast as at it
const FRAME = 7; // milliseconds of computing in a frame, at most
const LONGEST = 0.25; // longest step; the kernel refuses it where it is too long
const SHORTEST = 1e-5;
const TRAIL = 4; // places that a token leaves behind, one every few frames
const HELP =
  "Globe. Arrow keys turn it; full stop and comma choose a token, Shift with an arrow key moves it, Escape lets it go; the space bar plays and pauses.";

const unit = (v) => {
  const size = Math.hypot(...v);
  return size > 0 ? v.map((c) => c / size) : [0, 0, 1];
};

export default ({ stage, state, values, call, random, act, play, playing, redraw }) => {
  const [first, end] = state.axis;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const globe = document.createElement("canvas");
  const charts = document.createElement("canvas");
  globe.className = "exhibit-globe";
  globe.tabIndex = 0;
  globe.setAttribute("role", "application");
  globe.setAttribute("aria-label", HELP);
  charts.className = "exhibit-charts";
  charts.setAttribute("aria-hidden", "true");
  stage.append(globe, charts);

  let x, n, time, past, before, near, h, trail, eye, points, colors, said;
  let ticks = 0, charted = 0;
  let held = null, turning = null, chosen = null, spun = true;

  // What is measured now, written down where it is a visible way from the last point.
  const measure = () => {
    const crowd = call("crowd", { n, x, beta: values.beta, radius: state.radius });
    if (!crowd) throw new Refused(`With β = ${short(values.beta)} the energy of these tokens is not computed.`);
    near = crowd.neighbors;
    const point = [time, crowd.height, crowd.clusters];
    if (past.length > 1 && time < past.at(-2)[0] * 1.01) past.pop();
    past.push(point);
  };
  // The clock begins anew at each change by hand; the curve before it stays, paler.
  const begin = () => {
    if (past?.length > 3) before = past;
    [time, past, h, said] = [first, [], LONGEST, ""];
    measure();
  };
  const put = (tokens) => {
    x = tokens;
    n = x.length / 3;
    trail = [];
    points = Array.from({ length: n }, () => [0, 0, 0, 0]);
    if (chosen !== null && chosen >= n) chosen = null;
  };
  // Whether most tokens have one beside them that no force could part from them for long.
  const fused = () => {
    const twin = (i) => {
      for (let j = 0; j < n; j++) {
        if (j !== i && Math.hypot(x[3 * i] - x[3 * j], x[3 * i + 1] - x[3 * j + 1], x[3 * i + 2] - x[3 * j + 2]) < 1e-9) return true;
      }
      return false;
    };
    return points.filter((_, i) => twin(i)).length > n / 2;
  };
  const drawn = (count) => {
    const fresh = new Float64Array(3 * count);
    for (let i = 0; i < count; i++) fresh.set(unit([random.normal(), random.normal(), random.normal()]), 3 * i);
    return fresh;
  };

  // Moves the tokens through a span of time; less of it on a slow machine.
  const move = (span) => {
    const value = Float64Array.of(values.value, 0, 0, 0, values.value, 0, 0, 0, values.value);
    if (!(span > 0)) return;
    const limit = performance.now() + FRAME;
    let left = span;
    do {
      const dt = Math.min(left, h);
      const moved = call("step", { n, x, beta: values.beta, dt, value });
      if (moved) {
        x = moved.next.slice();
        left -= dt;
        if (!held) time += dt;
        h = Math.min(2 * h, LONGEST);
        if (held) x.set(held.to, 3 * held.i);
      } else {
        h = dt / 2;
        if (h < SHORTEST) throw new Refused(`With β = ${short(values.beta)} these tokens cannot be moved in steps that are accurate.`);
      }
    } while (left > 1e-9 * span && performance.now() < limit);
    measure();
  };
  const ahead = (seconds) => Math.max(held ? 1 : time, SLOW) * (10 ** (seconds / DECADE) - 1);

  // The eye looks along −y of the turned sphere; depth is positive in front.
  const frameOf = () => [Math.cos(eye[0]), Math.sin(eye[0]), Math.cos(eye[1]), Math.sin(eye[1])];
  const seen = (X, Y, Z, [c, s, ct, st]) => {
    const back = s * X + c * Y;
    return [c * X - s * Y, ct * Z - st * back, -(st * Z + ct * back)];
  };
  const lifted = (across, up) => {
    const far = Math.hypot(across, up);
    const [a, e] = far > 1 ? [across / far, up / far] : [across, up];
    const f = -Math.sqrt(Math.max(0, 1 - a * a - e * e));
    const [c, s, ct, st] = frameOf();
    const back = ct * f - st * e;
    return unit([c * a + s * back, -s * a + c * back, ct * e + st * f]);
  };
  const radius = () => 0.41 * globe.clientWidth;
  const place = (event) => {
    const box = globe.getBoundingClientRect();
    const R = radius();
    return [(event.clientX - box.left - box.width / 2) / R, (box.top + box.height / 2 - event.clientY) / R];
  };
  const token = (event) => {
    const [a, e] = place(event);
    const reach = (event.pointerType === "touch" ? 24 : 14) / radius();
    let [best, least] = [null, reach ** 2];
    for (let i = 0; i < n; i++) {
      const [across, up, depth] = seen(x[3 * i], x[3 * i + 1], x[3 * i + 2], frameOf());
      const square = (across - a) ** 2 + (up - e) ** 2;
      if (depth > 0 && square < least) [best, least] = [i, square];
    }
    return best;
  };
  const drag = (i, to) => {
    held = { i, to };
    globe.dataset.held = i;
    x.set(to, 3 * i);
    begin();
  };

  globe.addEventListener("touchstart", (event) => {
    // A finger on a token moves it, on the globe turns it, and else scrolls the page.
    const touch = event.touches[0];
    if (token({ clientX: touch.clientX, clientY: touch.clientY, pointerType: "touch" }) !== null) event.preventDefault();
  }, { passive: false });
  globe.addEventListener("pointerdown", (event) => {
    if (!event.isPrimary || event.button > 0) return;
    spun = false;
    const i = token(event);
    if (i === null) turning = [event.clientX, event.clientY, ...eye];
    else act(() => drag((chosen = i), lifted(...place(event))));
    if (globe.isConnected) globe.setPointerCapture(event.pointerId);
    redraw();
  });
  globe.addEventListener("pointermove", (event) => {
    if (held) act(() => drag(held.i, lifted(...place(event))));
    else if (turning) {
      const R = radius();
      eye = [turning[2] - (event.clientX - turning[0]) / R, Math.max(-1.5, Math.min(1.5, turning[3] + (event.clientY - turning[1]) / R))];
      redraw();
    }
  });
  const release = () => {
    if (held) act(begin);
    held = turning = null;
    delete globe.dataset.held;
    redraw();
  };
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) globe.addEventListener(name, release);

  const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  globe.addEventListener("keydown", (event) => {
    const way = ARROWS[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (way && event.shiftKey) {
      chosen ??= 0;
      const [across, up, depth] = seen(x[3 * chosen], x[3 * chosen + 1], x[3 * chosen + 2], frameOf());
      // A token behind the globe comes to its rim first.
      const edge = depth < 0 ? 1 / Math.max(Math.hypot(across, up), 1e-9) : 1;
      act(() => {
        x.set(lifted(across * edge + 0.08 * way[0], up * edge + 0.08 * way[1]), 3 * chosen);
        begin();
      });
    } else if (way) {
      spun = false;
      eye = [eye[0] - 0.1 * way[0], Math.max(-1.5, Math.min(1.5, eye[1] + 0.1 * way[1]))];
    } else if (event.key === "." || event.key === ",") chosen = ((chosen ?? -1) + (event.key === "." ? 1 : n - 1 + (chosen === null))) % n;
    else if (event.key === "Escape") chosen = null;
    else if (event.key === " ") act(play);
    else return;
    event.preventDefault();
    redraw();
  });

  const drawGlobe = (colors) => {
    const [pen, w, height] = fitted(globe);
    const [R, cx, cy, view] = [radius(), w / 2, height / 2, frameOf()];
    const dot = (a, e, r) => {
      pen.beginPath();
      pen.arc(cx + R * a, cy - R * e, r, 0, 2 * Math.PI);
    };
    const shade = pen.createRadialGradient(cx - R * 0.35, cy - R * 0.4, R * 0.1, cx, cy, R);
    shade.addColorStop(0, colors.paper);
    shade.addColorStop(1, colors.tint);
    pen.fillStyle = shade;
    pen.strokeStyle = colors.line;
    pen.lineWidth = 1;
    dot(0, 0, R);
    pen.fill();
    pen.stroke();
    // Circles of latitude and a meridian, where they are in front.
    const curve = (at) => {
      pen.beginPath();
      for (let k = 0; k <= 72; k++) {
        const [a, e, depth] = seen(...at((k / 36) * Math.PI), view);
        if (depth > 0) pen.lineTo(cx + R * a, cy - R * e);
        else pen.moveTo(cx + R * a, cy - R * e);
      }
      pen.stroke();
    };
    for (const level of [-0.5, 0, 0.5]) {
      const around = Math.sqrt(1 - level * level);
      curve((p) => [around * Math.cos(p), around * Math.sin(p), level]);
    }
    for (const turn of [0, Math.PI / 3, (2 * Math.PI) / 3]) curve((p) => [Math.sin(p) * Math.cos(turn), Math.sin(p) * Math.sin(turn), Math.cos(p)]);
    for (let i = 0; i < n; i++) {
      [points[i][0], points[i][1], points[i][2]] = seen(x[3 * i], x[3 * i + 1], x[3 * i + 2], view);
      points[i][3] = i;
    }
    points.sort((p, q) => p[2] - q[2]);
    // Where each token was in the last frames.
    pen.strokeStyle = colors.accent;
    pen.lineWidth = 1.2;
    pen.globalAlpha = 0.35;
    pen.beginPath();
    for (const [across, up, depth, i] of points) {
      if (depth < 0) continue;
      const way = trail.map((old) => seen(old[3 * i], old[3 * i + 1], old[3 * i + 2], view));
      if (!way.length || Math.hypot(way[0][0] - across, way[0][1] - up) < 0.01) continue;
      pen.moveTo(cx + R * across, cy - R * up);
      for (const [a, e] of way.reverse()) pen.lineTo(cx + R * a, cy - R * e);
    }
    pen.stroke();
    const size = R * 0.019 * Math.min(2, Math.sqrt(96 / n));
    const named = [];
    for (const [a, e, depth, i] of points) {
      const r = size * Math.sqrt(near[i]) * (1 + 0.12 * depth) + 1;
      const mine = i === held?.i || i === chosen;
      // Behind the globe they are pale; opaque all the same, since many lie in one place.
      pen.fillStyle = mine ? colors.mark : depth > 0 ? colors.accent : colors.line;
      pen.strokeStyle = colors.paper;
      dot(a, e, mine ? Math.max(6, size * 1.6) : r);
      pen.fill();
      pen.stroke();
      if (mine) continue;
      // How many there are, once, where there is room for it.
      if (r > 9) named.push([cx + R * a, cy - R * e, r, near[i], depth > 0 ? colors.paper : colors.ink]);
    }
    pen.globalAlpha = 1;
    pen.font = colors.font;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    // While groups still form, numbers would lie on one another.
    if (!settled(past.at(-1)[2])) return;
    named.reverse().forEach(([X, Y, r, count, ink], k) => {
      pen.fillStyle = ink;
      if (!named.slice(0, k).some(([U, V]) => Math.hypot(U - X, V - Y) < r)) pen.fillText(String(count), X, Y);
    });
  };

  const settled = (count) => Math.abs(count - Math.round(count)) < 0.02;
  const raised = (power) => `10${[..."" + power].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;
  const panel = (pen, colors, box, name, value, log, top, ticks) => {
    const [left, up, width, height] = box;
    const across = (t) => left + (width * Math.log(t / first)) / Math.log(end / first);
    const high = (y) => up + height * (1 - (log ? Math.log(Math.max(y, 1)) / Math.log(top) : y / top));
    pen.lineWidth = 1;
    pen.strokeStyle = colors.line;
    pen.fillStyle = colors.quiet;
    pen.textBaseline = "middle";
    for (const tick of ticks) {
      pen.beginPath();
      pen.moveTo(left, high(tick));
      pen.lineTo(left + width, high(tick));
      pen.stroke();
      pen.textAlign = "right";
      pen.fillText(String(tick), left - 5, high(tick));
    }
    pen.textBaseline = "top";
    pen.textAlign = "center";
    const every = width < 200 ? 2 : 1;
    for (let power = Math.round(Math.log10(first)); power <= Math.log10(end) + 1e-9; power++) {
      const X = across(10 ** power);
      pen.beginPath();
      pen.moveTo(X, up + height);
      pen.lineTo(X, up + height + 4);
      pen.stroke();
      if ((power + 4) % every === 0) pen.fillText(power === 0 ? "1" : power === 1 ? "10" : raised(power), X, up + height + 6);
    }
    const line = (points, color, thick) => {
      pen.lineJoin = "round";
      pen.strokeStyle = color;
      pen.lineWidth = thick;
      pen.beginPath();
      for (const point of points) pen.lineTo(across(point[0]), high(point[value]));
      pen.stroke();
    };
    if (before) line(before, colors.line, 1.2);
    line(past, colors.ink, 1.8);
    const now = past.at(-1);
    pen.fillStyle = colors.accent;
    pen.beginPath();
    pen.arc(across(now[0]), high(now[value]), 4, 0, 2 * Math.PI);
    pen.fill();
    pen.fillStyle = colors.ink;
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    pen.fillText(`${name} ${value === 1 ? now[1].toFixed(2) : counted(now[2])}`, left, up - 7);
  };
  const counted = (count) => (settled(count) ? String(Math.round(count)) : `≈ ${Math.round(count)}`);
  const drawCharts = (colors) => {
    charted = performance.now();
    const [pen, w, height] = fitted(charts);
    pen.font = colors.font;
    const [pad, foot, head] = [34, 38, 22];
    const width = (w - 2 * pad - 20) / 2;
    const tall = height - foot - head;
    const second = [2 * pad + width + 8, head, width, tall];
    panel(pen, colors, [pad, head, width, tall], "energy", 1, false, 1, [0, 0.5, 1]);
    panel(pen, colors, second, "clusters", 2, true, Math.max(n, 10), [1, 10, 100].filter((k) => k <= Math.max(n, 10)));
    pen.fillStyle = colors.quiet;
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    for (const left of [pad, second[0]]) pen.fillText("time", left + width / 2, height - 3);
  };

  return {
    rests: () => state.rests > 0,
    tick(seconds) {
      const there = () => state.rests && time >= state.time;
      const been = there();
      if (been) said = "";
      move(ahead(seconds));
      if (ticks++ % 4 === 0) trail.push(x.slice());
      if (trail.length > TRAIL) trail.shift();
      if (spun) eye = [eye[0] - 0.06 * seconds, eye[1]];
      // One that rests stops where its reversal has brought it back.
      if (values.value < 0 && there() && !been) {
        said = " The start is back; Play goes on.";
        return false;
      }
      return time < end;
    },
    step: () => move(ahead(0.4)),
    draw(anew) {
      if (anew || !colors) colors = colorsOf(stage);
      drawGlobe(colors);
      // Curves of time change little from frame to frame.
      if (anew || performance.now() > charted + 60) drawCharts(colors);
    },
    changed(name) {
      if (name === "tokens") {
        const kept = x.subarray(0, 3 * Math.min(n, values.tokens));
        const all = drawn(Math.round(values.tokens));
        all.set(kept);
        put(all);
      }
      const stuck = name === "value" && values.value < 0 && fused();
      if (stuck) put(3 * n === state.x.length ? Float64Array.from(state.x) : drawn(n));
      begin();
      if (stuck) said = " Tokens in one place cannot part: it begins where the picture opened.";
      // One that rests waits for this.
      if (name === "value" && state.rests && !playing() && !still.matches) play();
    },
    // Back to where the exhibit opened, or with tokens drawn here to their beginning.
    reset() {
      put(Float64Array.from(state.x));
      eye = [...state.eye];
      held = turning = chosen = null;
      before = null;
      [h, said] = [LONGEST, ""];
      time = state.time;
      past = state.times.map((t, k) => [t, state.heights[k], state.clusters[k]]);
      measure();
    },
    again() {
      put(drawn(n));
      begin();
    },
    text() {
      const [, height, clusters] = past.at(-1);
      const many = n === 1 ? "1 token" : `${n} tokens`;
      const what = n === 1 ? "it stays where it is" : `${counted(clusters)} cluster${Math.round(clusters) === 1 ? "" : "s"}`;
      const more = values.value > 0 && clusters > 1.5 ? "at a lower β more would meet" : "drag a token, or draw again";
      const over = time >= end ? ` The axis ends here: ${more}.` : said;
      return `Time ${short(time)}, β = ${short(values.beta)}, V = ${values.value > 0 ? "+" : "−"}I: ${many}, ${what}; energy ${values.beta ? `${height.toFixed(2)} of its largest value` : "constant, as always for β = 0"}.${over}`;
    },
  };
};
