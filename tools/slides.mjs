// Turns slides over: keys, the two buttons, a swipe, and the number in the address.
const slides = [...document.querySelectorAll(".slide")];
const said = document.querySelector(".deck-number");
let at = 0;

// What is too high for its slide is set smaller, its figure before its letters; lengths
// are in rem, so that this holds for every screen and for paper.
const fit = (slide) => {
  const room = slide.querySelector(".slide-body");
  const figure = room.querySelector("figure");
  for (const [name, least] of [["--picture", figure ? 0.7 : 1], ["--fit", 0.5]]) {
    let size = Number(room.style.getPropertyValue(name)) || 1;
    while (size > least && room.scrollHeight > room.clientHeight + 1)
      room.style.setProperty(name, (size *= 0.95));
  }
};
const narrow = matchMedia("(max-width: 700px)");
const letters = (element) => parseFloat(getComputedStyle(element).fontSize);
// A formula that is too wide for a phone is set smaller, and then it scrolls.
const shrink = (slide) => {
  for (const formula of slide.querySelectorAll('mjx-container[display="true"]')) {
    const room = (0.98 * formula.clientWidth) / formula.scrollWidth;
    const size = (100 * letters(formula)) / letters(formula.parentElement);
    if (room < 0.98) formula.style.fontSize = `${size * Math.max(room, 0.6)}%`;
  }
};
const fitAll = () => {
  document.body.dataset.fitting = "";
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  slides.forEach(fit);
  document.querySelectorAll("details").forEach((fold) => (fold.open = false));
  delete document.body.dataset.fitting;
};

const show = (number, jump = true) => {
  at = Math.min(Math.max(number, 0), slides.length - 1);
  slides.forEach((slide, i) => slide.classList.toggle("slide-shown", i === at));
  said.textContent = `${at + 1} / ${slides.length}`;
  if (jump) history.replaceState(null, "", `#${at + 1}`);
  scrollTo(0, 0);
  if (narrow.matches) shrink(slides[at]);
};
const linked = () => (Number.parseInt(location.hash.slice(1), 10) || 1) - 1;

// An answer that is folded comes before the next slide.
const forth = () => {
  const fold = slides[at].querySelector("details:not([open])");
  if (fold) fold.open = true;
  else show(at + 1);
};
const ways = {
  ArrowRight: forth, ArrowDown: forth, PageDown: forth, " ": forth, n: forth,
  ArrowLeft: () => show(at - 1), ArrowUp: () => show(at - 1), PageUp: () => show(at - 1), p: () => show(at - 1),
  Home: () => show(0), End: () => show(slides.length - 1),
  f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen()),
  d: () => {
    const { dataset } = document.documentElement;
    dataset.theme = dataset.theme === "dark" ? "light" : "dark";
  },
};
addEventListener("keydown", (event) => {
  const own = event.target.closest?.("input, button, canvas, summary, [tabindex]");
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !ways[event.key]) return;
  // What moves a slider or presses a button does not turn the slide.
  if (own && !["PageDown", "PageUp", "Escape"].includes(event.key)) return;
  event.preventDefault();
  ways[event.key]();
});
document.querySelector(".deck-back").addEventListener("click", () => show(at - 1));
document.querySelector(".deck-forth").addEventListener("click", forth);
addEventListener("hashchange", () => show(linked(), false));

// A swipe over text; what a finger moves in a figure stays there.
let touched = null;
addEventListener("touchstart", ({ target, changedTouches: [touch] }) => {
  touched = target.closest("figure, mjx-container, .slide-body table") ? null : touch;
}, { passive: true });
addEventListener("touchend", ({ changedTouches: [touch] }) => {
  if (!touched) return;
  const [x, y] = [touch.clientX - touched.clientX, touch.clientY - touched.clientY];
  if (Math.abs(x) > 60 && Math.abs(x) > 2 * Math.abs(y)) (x < 0 ? forth : () => show(at - 1))();
}, { passive: true });

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => (fold.open = true)));
if (!narrow.matches) fitAll();
show(linked());
// An exhibit that begins to move is another picture; one with more to say grows.
const moving = new WeakSet();
const growth = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const slide = target.closest(".slide-shown");
    if (!slide || narrow.matches) continue;
    if (target.matches(".exhibit-moves") && !moving.has(target)) {
      moving.add(target);
      for (const name of ["--picture", "--fit"])
        slide.querySelector(".slide-body").style.removeProperty(name);
    }
    fit(slide);
  }
});
document.querySelectorAll(".slide figure").forEach((figure) => growth.observe(figure));
document.body.dataset.ready = "";
