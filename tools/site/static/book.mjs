// What every page does for its reader: shows as much code as asked for, opens what an
// address leads to, keeps the contents list true, and knows the way back after a jump.

const root = document.documentElement;
delete root.dataset.arriving; // it is here (finish.py)
const article = document.querySelector("article.bd-article");
const keep = (storage, name, value) => {
  try {
    if (value === undefined) return storage.getItem(name);
    storage.setItem(name, value);
  } catch {
    return null; // a browser that keeps nothing
  }
};

// The print button of the theme: a strict policy refuses inline handlers.
document
  .querySelectorAll(".btn-download-pdf-button")
  .forEach((button) => button.addEventListener("click", () => window.print()));

// The switch: no code, the ideas, or all of it. The head of the page has read the state.
const choice = document.querySelector(".code-switch");
const show = (code) => {
  root.dataset.code = code;
  article.querySelectorAll("details.fold").forEach((fold) => (fold.open = code === "all"));
};
if (choice) {
  const inputs = [...choice.querySelectorAll("input")];
  const chosen = inputs.find((input) => input.value === root.dataset.code) ?? inputs[1];
  chosen.checked = true;
  if (chosen.value !== "ideas") show(chosen.value);
  choice.addEventListener("change", (event) => {
    // The line at the top of the window stays where it is.
    const anchor = [...article.querySelectorAll("h1, h2, h3, p, figure")].find(
      (e) => e.checkVisibility() && e.getBoundingClientRect().top > 0,
    );
    const before = anchor?.getBoundingClientRect().top;
    show(event.target.value);
    keep(localStorage, "code", event.target.value);
    if (anchor && scrollY > 0)
      scrollBy({ top: anchor.getBoundingClientRect().top - before, behavior: "instant" });
  });
  choice.hidden = false;
}

// What an address names may lie in a fold.
const named = () => {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null; // an address that is no text
  }
};
const reveal = () => {
  const place = named();
  if (!article?.contains(place)) return;
  let opened = false;
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    opened ||= !fold.open;
    fold.open = true;
  }
  place.closest("section")?.querySelector(":scope > .further")?.setAttribute("open", "");
  if (opened) place.scrollIntoView({ behavior: "instant" });
};

// The contents list shows the last heading above a line in the upper part of the window.
const entries = [...document.querySelectorAll("#page-contents a[href^='#']")];
const items = [...document.querySelectorAll("#page-contents .toc-entry")];
const headings = entries
  .map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))])
  .filter(([, place]) => place);
let current = null;
const mark = () => {
  const atEnd = innerHeight + scrollY >= root.scrollHeight - 2;
  const line = atEnd ? innerHeight : innerHeight * 0.3;
  const above = headings.filter(([, place]) => place.checkVisibility() && place.getBoundingClientRect().top <= line);
  const [link] = above.at(-1) ?? [null];
  if (link === current) return;
  current = link;
  entries.forEach((each) => {
    each.classList.toggle("active", each === link);
    each.ariaCurrent = each === link ? "true" : null;
  });
  items.forEach((each) => each.classList.toggle("active", each.contains(link)));
  const box = link?.closest(".bd-sidebar-secondary");
  if (!box) return;
  const { top, bottom } = link.getBoundingClientRect(), frame = box.getBoundingClientRect();
  if (top < frame.top || bottom > frame.bottom) box.scrollTop += top - frame.top - frame.height / 3;
};
let asked = false;
const later = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    mark();
  });
};
if (headings.length) {
  addEventListener("scroll", later, { passive: true });
  addEventListener("resize", later);
  new ResizeObserver(later).observe(article);
  mark();
}

// The way back: where a link within the book was followed, and a button that leads there.
const KEY = "way-back";
const way = document.createElement("button");
way.type = "button";
way.className = "way-back";
way.hidden = true;
document.body.append(way);
const left = () => JSON.parse(keep(sessionStorage, KEY) || "null");
const title = () => document.querySelector("h1")?.firstChild ? document.title.split(" — ")[0] : "";
let word = null; // that has led to an exhibit out of its sight, and where it stood
const offer = () => {
  const from = left();
  word = null;
  way.hidden = from?.to !== location.pathname + location.hash;
  if (way.hidden) return;
  const page = from.page === location.pathname ? "" : ` in “${from.title}”`;
  way.textContent = `↩ Back to where you were${page}`;
  named()?.prepend(way); // the next stop of the keyboard
};
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("article a[href*='#']:not(.headerlink)");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || link.target) return;
  const folds = [...article.querySelectorAll("details")];
  const within = folds.flatMap((fold, number) => (fold.contains(link) ? [number] : []));
  const links = [...article.querySelectorAll("a")];
  keep(sessionStorage, KEY, JSON.stringify({
    to: to.pathname + to.hash, page: location.pathname, address: location.href,
    title: title(), link: links.indexOf(link), folds: within,
    top: link.getBoundingClientRect().top,
  }));
});
// A word that sets an exhibit (exhibit.mjs) may scroll to it, far away.
const far = ({ top, bottom }) => Math.max(-bottom, top - innerHeight) > innerHeight / 2;
document.addEventListener("click", (event) => {
  const place = event.target.closest?.("article .exhibit-word");
  if (!place) return;
  const { top } = place.getBoundingClientRect();
  setTimeout(() => {
    word = far(place.getBoundingClientRect()) ? { place, top } : null;
    way.hidden = !word;
    if (!word) return;
    way.textContent = "↩ Back to where you were";
    place.after(way);
    seen.observe(place);
  });
}, true);
// Who has scrolled back there needs no way.
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    if (word?.place !== target) continue;
    word = null;
    way.hidden = true;
  }
});
// The link that was followed, where it was in the window; what is loaded later moves it.
const returned = (link, top) => {
  const put = () => scrollBy({ top: link.getBoundingClientRect().top - top, behavior: "instant" });
  put();
  link.focus({ preventScroll: true });
  if (document.readyState !== "complete") addEventListener("load", put, { once: true });
};
const followed = (from) => {
  const folds = article.querySelectorAll("details");
  from.folds.forEach((number) => folds[number] && (folds[number].open = true));
  const link = article.querySelectorAll("a")[from.link];
  if (link) returned(link, from.top);
};
way.addEventListener("click", () => {
  const from = left();
  way.hidden = true;
  if (word) {
    returned(word.place, word.top);
    word = null;
  } else if (from.page === location.pathname) {
    keep(sessionStorage, KEY, "");
    history.replaceState(history.state, "", from.address);
    followed(from);
  } else {
    keep(sessionStorage, KEY, JSON.stringify({ ...from, back: true }));
    location.assign(from.address);
  }
});
const arrive = () => {
  const from = left();
  if (from?.back && from.page === location.pathname) {
    keep(sessionStorage, KEY, "");
    return followed(from);
  }
  reveal();
  offer();
};
addEventListener("hashchange", arrive);
addEventListener("pageshow", arrive);
if (article) arrive();

// What was searched for, marked where the search has led.
const words = new URLSearchParams(location.search).get("q")?.toLowerCase().split(/\s+/).filter((word) => word.length > 2);
if (words?.length && article && globalThis.CSS?.highlights) {
  const ranges = [];
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("script, style, pre, svg, mjx-container")) continue;
    const text = node.data.toLowerCase();
    for (const word of words)
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
  }
  CSS.highlights.set("searched", new Highlight(...ranges));
  addEventListener("keydown", (event) => event.key === "Escape" && CSS.highlights.delete("searched"));
}

// What is copied of a formula is its TeX, whose letters the style sheet draws: with the
// text around it, or alone while the formula has the focus. Half of one is not copied.
const edge = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest("[data-tex]");
const asTex = (formula) => {
  const mark = formula.querySelector("mjx-container").hasAttribute("display") ? "$$" : "$";
  return `${mark}${formula.dataset.tex}${mark}`;
};
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  const give = (text, html) => {
    event.clipboardData.setData("text/plain", text);
    if (html) event.clipboardData.setData("text/html", html);
    event.preventDefault();
  };
  if (selection.isCollapsed) {
    const formula = document.activeElement.closest("[data-tex]");
    return formula && give(formula.dataset.tex);
  }
  const range = selection.getRangeAt(0).cloneRange();
  const [first, last] = [edge(range.startContainer), edge(range.endContainer)];
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const copy = document.createElement("div");
  copy.append(range.cloneContents());
  copy.querySelector(".way-back")?.remove();
  const formulas = copy.querySelectorAll("[data-tex]");
  if (!formulas.length) return;
  formulas.forEach((each) => each.replaceWith(asTex(each)));
  copy.style.cssText = "position: absolute; left: -9999px; white-space: pre-line";
  document.body.append(copy); // its lines are those that it would be shown in
  give(copy.innerText, copy.innerHTML);
  copy.remove();
});
