// Says of what is wider than its place that it scrolls (data-scrolls), and towards which
// side there is more (data-more); narrow.css draws it. A formula in a line that is wider
// than its paragraph gets a line of its own, and scrolls as well.

const WIDE = [
  "pre",
  'mjx-container[display="true"]',
  ".formula-wide",
  ".pst-scrollable-table-container",
].join(", ");
const article = document.querySelector("article.bd-article");

// The content of the block in which a formula stands: what a line has room for.
const room = (element) => {
  let block = element.parentElement;
  while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
  const { paddingLeft, paddingRight } = getComputedStyle(block);
  return block.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
};

const giveLines = () => {
  const formulas = article.querySelectorAll('mjx-container:not([display="true"])');
  const holders = [...formulas].map((each) => each.closest(".formula") ?? each.parentElement);
  holders.forEach((each) => {
    each.classList.remove("formula-wide");
    each.removeAttribute("data-scrolls"); // it may have been wide until now
    delete each.dataset.more;
  });
  const wide = holders.filter((each) => each.offsetWidth > room(each) + 1);
  wide.forEach((each) => each.classList.add("formula-wide"));
};

const mark = (element) => {
  const beyond = element.scrollWidth - element.clientWidth;
  const at = element.scrollLeft;
  const more = [at > 1 && "left", at < beyond - 1 && "right"].filter(Boolean).join(" ");
  element.toggleAttribute("data-scrolls", beyond > 1);
  if (beyond > 1 && more) element.dataset.more = more;
  else delete element.dataset.more;
};

const measure = () => {
  giveLines();
  article.querySelectorAll(WIDE).forEach(mark);
};

if (article) {
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (entry.contentRect.width === width) return; // it has become longer
    width = entry.contentRect.width;
    measure();
  }).observe(article);
  // Neither event bubbles, and both are seen on their way down.
  document.addEventListener("toggle", measure, true);
  document.addEventListener("scroll", (event) => event.target.matches?.(WIDE) && mark(event.target), {
    capture: true,
    passive: true,
  });
  document.addEventListener("book:output", measure);
}
