// Shows what a link to a statement, a work or a verdict leads to, and what the letters of
// a formula mean: after a rest of the mouse, on focus, and at a first tap. The second tap
// follows the link. Escape closes, and the mouse may move into the preview.

const REST = 350; // milliseconds
const LINK = "article a.internal[href*='#']:not(.headerlink)";
const article = document.querySelector("article.bd-article");
const top = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
const cache = new Map();

// The pieces of a page that are shown elsewhere, a file beside the page.
const piecesOf = (page) => {
  if (!cache.has(page)) {
    const address = page.replace(/\.html$/, ".previews.json");
    cache.set(page, fetch(address).then((answer) => (answer.ok ? answer.json() : {}), () => ({})));
  }
  return cache.get(page);
};

const card = document.createElement("div");
card.className = "preview";
card.id = "preview";
card.hidden = true;
card.setAttribute("role", "note");
document.body.append(card);
let shown = null; // the element whose preview is on the page
let asked = null; // the last element that was asked about
let timer = 0;

const hide = () => {
  clearTimeout(timer);
  shown?.removeAttribute("aria-describedby");
  shown = asked = null;
  card.hidden = true;
};

const place = (element) => {
  const rects = element.getClientRects();
  const box = rects[0] ?? element.getBoundingClientRect();
  card.hidden = false;
  const width = card.offsetWidth, height = card.offsetHeight;
  const left = Math.min(Math.max(box.left - 16, 8), innerWidth - width - 8);
  const last = rects[rects.length - 1] ?? box;
  const below = last.bottom + 6 + height < innerHeight || box.top < height + 70;
  card.style.left = `${left + scrollX}px`;
  card.style.top = `${scrollY + (below ? last.bottom + 6 : box.top - 6 - height)}px`;
};

// A page without formulas has not asked for their styles.
const styled = async () => {
  if (!card.querySelector(".math") || document.querySelector(".math:not(.preview *), #formulas")) return;
  const sheet = document.createElement("link");
  Object.assign(sheet, { id: "formulas", rel: "stylesheet", href: new URL("_static/formulas.css", top) });
  document.head.append(sheet);
  await new Promise((done) => (sheet.onload = sheet.onerror = done));
};

const present = async (element, html, go) => {
  if (!html) return false;
  hide();
  shown = element;
  card.innerHTML = html;
  if (go) {
    const line = document.createElement("p");
    line.className = "preview-go";
    const link = line.appendChild(document.createElement("a"));
    link.href = go;
    link.textContent = "Go there";
    link.addEventListener("click", hide);
    card.append(line);
  }
  element.setAttribute("aria-describedby", card.id);
  place(element);
  await styled();
  if (shown === element) place(element);
  return true;
};

const forLink = async (link) => {
  const to = new URL(link.href);
  if (to.origin !== location.origin || !to.pathname.endsWith(".html")) return null;
  const pieces = await piecesOf(to.origin + to.pathname);
  return pieces[decodeURIComponent(to.hash.slice(1))] ?? null;
};

// The letters of a formula, by what the page of notation says of them in this chapter.
const chapter = Number(document.querySelector("h1 .section-number")?.textContent);
const symbols = async () => {
  const pieces = await piecesOf(new URL("chapters/reference/notation.html", top).href);
  return (pieces[" symbols"] ?? []).filter(({ chapters }) => !chapters || chapters.includes(chapter));
};

// TeX as the page of notation has it there: one space, and no braces around one letter.
const plain = (tex) => tex.replace(/\{(\w)\}/g, " $1").replace(/\s+/g, " ").replace(/([_^]) /g, "$1");

const forFormula = async (formula) => {
  if (!chapter) return null;
  let tex = plain(formula.closest("[data-tex]").dataset.tex);
  const named = [];
  // The longest first: in n_k there is no n.
  const letters = (await symbols()).flatMap((each) => each.letters.map((name) => [name, each]));
  for (const [name, each] of letters.sort(([one], [two]) => two.length - one.length)) {
    const letter = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const rest = tex.replace(new RegExp(`(?<![A-Za-z\\\\])${letter}(?![A-Za-z])`, "g"), "\u0000");
    if (rest !== tex && !named.includes(each)) named.push(each);
    tex = rest;
  }
  if (!named.length) return null;
  const lines = named.slice(0, 8).map(({ symbol, meaning }) => `<dt>${symbol}</dt><dd>${meaning}</dd>`);
  return `<dl>${lines.join("")}</dl>`;
};

const ask = async (element) => {
  asked = element;
  if (element === shown) return true; // and what is still on its way comes too late
  const go = element.matches("a") ? element.href : null;
  const html = await (go ? forLink(element) : forFormula(element));
  if (asked !== element) return true; // a slow answer does not replace a later one
  return present(element, html, go);
};

const wanted = (target) => {
  const link = target.closest?.(LINK);
  if (link) return link;
  const formula = target.closest?.("article [data-tex] mjx-container");
  return formula && !formula.closest("a, summary, h1, h2, h3") ? formula : null;
};

if (article) {
  // Where the mouse was last: what a scrolled page moves under it has not been asked about.
  let mouse = "";
  const position = ({ clientX, clientY }) => `${clientX},${clientY}`;
  document.addEventListener("pointermove", (event) => (mouse = position(event)));
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse" || position(event) === mouse) return;
    clearTimeout(timer);
    if (card.contains(event.target)) return;
    const element = wanted(event.target);
    if (element) timer = setTimeout(() => ask(element), element === shown ? 0 : REST);
    else if (shown && shown !== document.activeElement) timer = setTimeout(hide, REST);
  });
  document.addEventListener("focusin", (event) => {
    if (card.contains(event.target)) return;
    const element = wanted(event.target);
    if (element && event.target.matches(":focus-visible")) ask(element);
    else if (shown) hide();
  });
  let tapped = null;
  document.addEventListener("pointerdown", (event) => (tapped = event.pointerType));
  document.addEventListener("click", async (event) => {
    if (card.contains(event.target)) return;
    const element = wanted(event.target);
    const touch = tapped === "touch" || tapped === "pen";
    if (!element || (!touch && element.matches("a"))) return hide();
    if (!touch || element === shown) return;
    if (element.matches("a")) {
      event.preventDefault();
      event.stopPropagation();
      if (!(await ask(element))) location.assign(element.href);
    } else if (!(await ask(element))) hide();
  }, true);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}
