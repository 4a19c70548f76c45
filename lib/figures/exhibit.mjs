// Brings the live exhibits of a page to life. Kernels compute: functions of the book's
// Python, printed as JavaScript. Here is what all exhibits share: controls, a clock,
// what is said of what moves, and the stored pictures where a kernel says no.
import { generator } from "./random.mjs";

const SCRIPTS = {
  film: () => import("./film.mjs"),
  globe: () => import("./globe.mjs"),
  histogram: () => import("./histogram.mjs"),
  networks: () => import("./networks.mjs"),
  planes: () => import("./planes.mjs"),
  regimes: () => import("./regimes.mjs"),
  training: () => import("./training.mjs"),
  weights: () => import("./weights.mjs"),
};
const SAID_EVERY = 3000; // milliseconds between sentences while something moves
const SHOWN_EVERY = 80; // for the eye
const LONGEST = 0.05; // seconds that one frame may stand for: nothing is made up for
const LATE = 40; // milliseconds to wait for a frame on a machine that is overloaded

export class Refused extends Error {}

export const short = (value) => {
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(size < 1 ? 2 : 3)));
};

// A canvas as large as its box, in pixels of the screen: its pen, width and height.
export const fitted = (canvas) => {
  const { clientWidth: w, clientHeight: height } = canvas;
  const scale = window.devicePixelRatio || 1;
  const [W, H] = [Math.round(w * scale), Math.round(height * scale)];
  if (canvas.width !== W || canvas.height !== H) [canvas.width, canvas.height] = [W, H];
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, w, height);
  return [pen, w, height];
};

// The colors of the theme, and the font of what is drawn.
export const colorsOf = (stage) => {
  const style = getComputedStyle(stage);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    ink: style.color, paper: of("--pst-color-background"), accent: of("--limit-accent"), tint: of("--limit-tint"),
    quiet: of("--pst-color-text-muted"), line: of("--limit-line"), mark: of("--limit-mark"), font: `12px ${style.fontFamily}`,
  };
};

const element = (tag, classes, text = "") => {
  const made = document.createElement(tag);
  made.className = classes;
  made.textContent = text;
  return made;
};

// The outputs of a kernel, or null where it says that it was not recorded for this.
const caller = (kernels) => (name, inputs) => {
  const outputs = kernels[name](inputs);
  const bad = (value) => (typeof value === "number" ? !Number.isFinite(value) : value.some?.((x) => !Number.isFinite(x)));
  return outputs.ok && !Object.values(outputs).some(bad) ? outputs : null;
};

// A slider or buttons; `moved` is called with each new value. Returns how to set it.
const control = (described, box, moved) => {
  if (described.kind === "choice") {
    box.addEventListener("change", (event) => moved(Number(event.target.value)));
    return (value) => box.querySelectorAll("input").forEach((each) => (each.checked = Number(each.value) === value));
  }
  const { low, high, log, zero, whole } = described;
  const [input, output] = box;
  const at = (place) => {
    if (zero && place <= 0) return 0;
    const value = log ? low * (high / low) ** place : low + (high - low) * place;
    return whole ? Math.round(value) : value;
  };
  const place = (value) => {
    if (zero && value <= 0) return 0;
    return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  };
  const shown = (value) => {
    output.textContent = short(value);
    input.setAttribute("aria-valuetext", short(value));
  };
  const put = (value) => {
    input.value = place(value);
    shown(value);
  };
  const change = () => {
    const value = at(Number(input.value));
    shown(value);
    moved(value);
  };
  input.addEventListener("input", change);
  // The same way of one key in every browser: a hundredth, with a page key a tenth; at
  // least one where numbers are whole.
  const ways = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
  input.addEventListener("keydown", (event) => {
    const way = ways[event.key];
    if (way === undefined) return;
    event.preventDefault();
    const now = Number(input.value);
    let next = Math.min(1, Math.max(0, now + way / 100));
    if (whole && at(next) === at(now)) next = place(Math.min(high, Math.max(low, at(now) + Math.sign(way))));
    input.value = next;
    change();
  });
  return put;
};

// Words of the text that set the exhibit before them, or else the first, as `eps=0.4
// layer=2` of the attribute data-set: buttons, as soon as it moves.
const follow = (figure, set) => document.querySelectorAll("[data-set]").forEach((word) => {
  const all = [...document.querySelectorAll(".book-exhibit")];
  const before = (each) => each.compareDocumentPosition(word) & Node.DOCUMENT_POSITION_FOLLOWING;
  if ((all.findLast(before) ?? all[0]) !== figure) return;
  const made = element("button", "exhibit-word");
  made.type = "button";
  made.append(...word.childNodes);
  made.addEventListener("click", () => set(word.dataset.set.split(" ").map((part) => part.split("="))));
  word.replaceWith(made);
});

const run = (figure, data, make, kernels) => {
  const part = (name) => figure.querySelector(`.exhibit-${name}`);
  const [stage, controls, note] = ["stage", "controls", "note"].map(part);
  const heard = element("span", "", note.textContent);
  note.replaceChildren(heard);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const values = {};
  let playing = false, seen = false, stale = true, anew = true, frame = 0, last = 0, asked = 0, refused = false;
  let told = "", toldAt = 0, shownAt = 0, waiting = 0;

  const tell = (text) => {
    toldAt = performance.now();
    if (text !== told) heard.textContent = note.dataset.now = told = text;
  };
  // After what the reader did: once, when it is over.
  const say = () => {
    clearTimeout(waiting);
    if (!refused) guarded(() => (note.dataset.now = view.text()));
    note.dataset.moved = "";
    waiting = setTimeout(() => {
      delete note.dataset.moved;
      if (!refused) tell(view.text());
    }, 250);
  };
  // The stored pictures take the place of what cannot be computed, and a sentence why.
  const refuse = (error) => {
    refused = true;
    play(false);
    figure.classList.remove("exhibit-moves");
    figure.dataset.stands = "";
    stage.hidden = true;
    clearTimeout(waiting);
    delete note.dataset.moved;
    tell(`${error.message} The pictures are stored ones, for the values below them.`);
  };
  const guarded = (act) => {
    try {
      return act();
    } catch (error) {
      refuse(error);
      return false;
    }
  };
  const turn = (now) => {
    frame = 0;
    const seconds = Math.min(Math.max(now - last, 0) / 1000, LONGEST);
    last = now;
    const waited = now - asked;
    if (playing) {
      if (!guarded(() => view.tick(seconds))) play(false);
      else if (performance.now() > toldAt + SAID_EVERY) tell(view.text());
      else if (now > shownAt + SHOWN_EVERY) {
        shownAt = now;
        note.dataset.now = view.text();
      }
      stale = true;
    }
    if (stale && !refused) guarded(() => view.draw(anew));
    stale = anew = false;
    // A machine that cannot keep up has as much time again for the rest of the page.
    if (waited > LATE) {
      frame = -1;
      setTimeout(() => { frame = 0; wake(); }, Math.min(waited, 500));
    } else wake();
  };
  const wake = () => {
    if (!frame && seen && !document.hidden && !refused && (playing || stale)) {
      asked = performance.now();
      frame = requestAnimationFrame(turn);
    }
  };
  const redraw = () => {
    stale = anew = true;
    wake();
  };
  // Something the reader did: what was refused is tried again.
  const act = (change) => {
    if (refused) {
      refused = false;
      stage.hidden = false;
      figure.classList.add("exhibit-moves");
    }
    guarded(change);
    say();
    redraw();
  };
  const buttons = element("div", "exhibit-buttons");
  const button = (text, press) => {
    const made = element("button", "", text);
    made.type = "button";
    made.addEventListener("click", press);
    buttons.append(made);
    return made;
  };
  let toggle = null;
  const play = (on) => {
    if (!toggle || playing === on) return;
    playing = on;
    // What is said now and then is for the ear; for the eye it would lag behind.
    figure.classList.toggle("exhibit-plays", on);
    toggle.textContent = on ? "Pause" : "Play";
    if (!on) say();
    wake();
  };
  const api = {
    stage, values, redraw, act, play: () => play(!playing), playing: () => playing, state: data.state,
    put: (name, value) => setters[name]((values[name] = value)),
    call: caller(kernels), random: generator(data.seed),
  };
  const moves = () => !still.matches && !view.rests?.();
  const rows = [...controls.children];
  const view = make(api);
  if (view.tick) {
    toggle = button("Play", () => act(() => play(!playing)));
    button("Step", () => act(() => { play(false); view.step(); }));
    button("Reset", () => act(() => { reset(); play(moves()); }));
  }
  if (view.again) button("Draw again", () => act(() => { view.again(); play(!still.matches); }));
  const setters = {};
  const reset = () => {
    for (const [name, { start }] of Object.entries(data.controls)) setters[name]((values[name] = start));
    view.reset();
  };
  for (const [name, described] of Object.entries(data.controls)) {
    let box = rows.shift();
    if (described.kind === "slider") box = [rows.shift(), rows.shift()];
    setters[name] = control(described, box, (value) => act(() => { values[name] = value; view.changed(name); }));
  }
  if (buttons.children.length) controls.prepend(buttons);
  reset();
  const set = (pairs) => {
    // Of what is higher than the screen, the first picture is seen.
    figure.scrollIntoView({ block: figure.offsetHeight > innerHeight ? "start" : "nearest" });
    act(() => {
      reset();
      for (const [name, value] of pairs.filter(([name]) => setters[name])) {
        api.put(name, Number(value));
        view.changed(name);
      }
      view.wordSet?.(Object.fromEntries(pairs)); // it may know more than controls
      play(moves());
    });
  };
  follow(figure, set);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => follow(figure, set));
  controls.hidden = stage.hidden = false;
  figure.classList.add("exhibit-moves");
  note.setAttribute("role", "status");
  tell(view.text());
  new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    wake();
  }).observe(figure);
  new ResizeObserver(redraw).observe(stage);
  new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  document.addEventListener("visibilitychange", wake);
  still.addEventListener("change", () => still.matches && play(false));
  play(moves());
};

const mount = async (figure) => {
  if ("mounted" in figure.dataset) return;
  figure.dataset.mounted = "";
  try {
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    const names = Object.keys(data.kernels);
    const files = names.map((name) => import(`./kernels/${data.kernels[name]}.mjs`));
    const [script, ...kernels] = await Promise.all([SCRIPTS[data.script](), ...files]);
    run(figure, data, script.default, Object.fromEntries(names.map((name, i) => [name, kernels[i].default])));
  } catch (error) {
    figure.querySelector(".exhibit-note").textContent = `Stored pictures: what would move them was not loaded (${error.message}).`;
    figure.dataset.stands = "";
  }
};

// A figure is whole when something follows it: while the page still comes in, the last
// one waits.
const mountAll = (place) => place.querySelectorAll(".book-exhibit").forEach((figure) => {
  if (document.readyState !== "loading" || figure.querySelector("figcaption")) mount(figure);
});
mountAll(document);
if (document.readyState === "loading") {
  const watch = new MutationObserver(() => mountAll(document));
  watch.observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => {
    watch.disconnect();
    mountAll(document);
  });
}
// A live page says where new output stands.
document.addEventListener("book:output", (event) => mountAll(event.target));
