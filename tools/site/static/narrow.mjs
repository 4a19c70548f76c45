// Says of what is wider than its place that it scrolls (data-scrolls), and towards which
// side there is more (data-more); narrow.css draws it. What scrolls can have the focus. A
// formula in a line that is wider than its paragraph gets a line of its own, and scrolls
// as well.

const WIDE = [
  "pre",
  'mjx-container[display="true"]',
  ".formula-wide",
  ".pst-scrollable-table-container",
].join(", ");
const STOPS = ["pre", ".cell_output > .output", ".pst-scrollable-table-container"].join(", ");
const article = document.querySelector("article.bd-article");

// The content of the block in which a formula stands: what a line has room for.
const room = (element) => {
  let block = element.parentElement;
  while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
  const { paddingLeft, paddingRight } = getComputedStyle(block);
  return block.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
};

// What lies in a closed fold has no place yet; it is measured when the fold opens.
const shown = (selector) => [...article.querySelectorAll(selector)].filter((each) => each.checkVisibility?.() ?? true);

// Everything is measured before anything changes: else each change costs a layout.
const giveLines = () => {
  const formulas = shown('mjx-container:not([display="true"])');
  const holders = formulas.map((each) => each.closest(".formula") ?? each.parentElement);
  holders.forEach((each) => {
    each.classList.remove("formula-wide");
    each.removeAttribute("data-scrolls"); // it may have been wide until now
    delete each.dataset.more;
  });
  const wide = holders.filter((each) => each.offsetWidth > room(each) + 1);
  wide.forEach((each) => each.classList.add("formula-wide"));
};

const mark = (elements) => {
  const sizes = elements.map((each) => [each.scrollWidth - each.clientWidth, each.scrollLeft]);
  elements.forEach((element, number) => {
    const [beyond, at] = sizes[number];
    const more = [at > 1 && "left", at < beyond - 1 && "right"].filter(Boolean).join(" ");
    element.toggleAttribute("data-scrolls", beyond > 1);
    if (beyond > 1 && more) element.dataset.more = more;
    else delete element.dataset.more;
  });
};

const setStops = () => {
  const blocks = shown(STOPS);
  const scroll = blocks.map((e) => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight);
  blocks.forEach((each, number) => (each.tabIndex = scroll[number] || each.isContentEditable ? 0 : -1));
};

const measure = () => {
  giveLines();
  setStops();
  mark(shown(WIDE));
};

// Folds that open together, as all code at the touch of the switch, are one change.
let asked = false;
const soon = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    measure();
  });
};

if (article) {
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (entry.contentRect.width === width) return; // it has become longer
    width = entry.contentRect.width;
    measure();
  }).observe(article);
  // Neither event bubbles, and both are seen on their way down.
  document.addEventListener("toggle", soon, true);
  document.addEventListener("scroll", (event) => event.target.matches?.(WIDE) && mark([event.target]), {
    capture: true,
    passive: true,
  });
  document.addEventListener("book:output", soon);
}
