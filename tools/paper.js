// Run in a page of the site before it is printed: an edition's answers are opened or
// moved to the end, explorers become some of their states, anchors are made known to the
// printer, and what is wider than the paper is set smaller. Returns what cannot be printed.
async ({ body, edition, answers }) => {
  const article = document.querySelector("article");
  const reader = edition === "reader";
  document.documentElement.dataset.paper = edition;
  if (body) {
    // The style sheet may stand behind an exhibit that goes: it takes its place again.
    const sheet = article.querySelector("link[rel=stylesheet]");
    const loaded = new Promise((resolve) => (sheet ? sheet.addEventListener("load", resolve, { once: true }) : resolve()));
    if (sheet) document.getElementById("first-rules").replaceWith(sheet);
    await loaded;
    article.innerHTML = body;
  }
  const words = (e) => e.textContent.replace(/\s+/g, " ").trim();
  const capital = (text) => text.replace(/^[a-z]/, (letter) => letter.toUpperCase());
  const element = (tag, attributes, ...inside) => {
    const made = Object.assign(document.createElement(tag), attributes);
    made.append(...inside);
    return made;
  };

  // The full edition unfolds everything, the other what is text.
  for (const fold of article.querySelectorAll("details"))
    fold.open = !reader || fold.matches(".sd-dropdown, .further");

  // States that make the point: those the author named, else first, middle and last of
  // what has the most stops; what else moves is in its middle.
  const states = (inputs, named) => {
    if (named) return named;
    const most = Math.max(...inputs.map((input) => Number(input.max)));
    const main = inputs.findLastIndex((input) => Number(input.max) === most);
    const middle = inputs.map((input) => Math.ceil(Number(input.max) / 2));
    const stops = [...new Set([0, middle[main], most])];
    return stops.map((stop) => middle.map((other, i) => (i === main ? stop : other)));
  };
  // The drawing as it stands, under names of its own.
  const copied = (drawing, mark) => {
    const text = drawing.outerHTML.replace(
      /(\sid="|url\(#|href="#)([^")]+)/g, (_, before, name) => `${before}${name}${mark}`);
    return document.createRange().createContextualFragment(text);
  };
  article.querySelectorAll(".book-explorer").forEach((figure, number) => {
    const inputs = [...figure.querySelectorAll('input[type="range"]')];
    const script = figure.querySelector('script[type="application/json"]');
    const grid = element("div", { className: "paper-states" });
    const { paper, captions } = JSON.parse(script.textContent);
    const caption = figure.querySelector("figcaption");
    states(inputs, paper).forEach((state, k) => {
      inputs.forEach((input, i) => {
        input.value = state[i];
        input.dispatchEvent(new Event("input", { bubbles: true }));
      });
      // A caption of its own belongs to its drawing; one for all stands below them.
      const own = captions ? `. ${caption.textContent}` : "";
      const said = element("p", {}, `${figure.dataset.shown}${own}`);
      const drawing = figure.firstElementChild.querySelector("svg");
      grid.append(element("div", { className: "paper-state" }, copied(drawing, `-${number}-${k}`), said));
    });
    if (captions) caption.remove();
    else if (caption && grid.children.length % 2) grid.append(caption);
    figure.firstElementChild.replaceWith(grid);
  });

  // Solutions leave their place to the reader, who finds them at the end.
  if (reader) {
    const asked = new RegExp(`^(${answers})\\b`);
    const end = element("section", { id: "paper-solutions" }, element("h2", {}, "Solutions"));
    for (const fold of article.querySelectorAll("details.sd-dropdown")) {
      const title = words(fold.querySelector("summary"));
      if (!asked.test(title)) continue;
      const number = end.children.length;
      const [one, other] = [`paper-asked-${number}`, `paper-solution-${number}`];
      const question = title.includes(":") ? `${title} ` : "";
      const item = fold.closest("ol > li");
      const place = item ? `Exercise ${[...item.parentElement.children].indexOf(item) + 1}` : "";
      const heading = words(fold.closest("section").querySelector(":is(h1, h2, h3)")).replace(/#$/, "");
      fold.querySelector("summary").remove();
      const back = element("a", { href: `#${one}` }, `Solution ${number}`);
      const whence = capital(question.replace(/^\w+: /, "").trim()) || place || heading;
      end.append(element("div", { id: other, className: "paper-solution" },
        element("p", {}, element("strong", {}, back, ". "), whence), ...fold.childNodes));
      const link = element("a", { href: `#${other}` }, `Solution ${number}`);
      fold.replaceWith(element("p", { id: one, className: "paper-asked" }, question, "→ ", link));
    }
    if (end.children.length > 1) (article.querySelector("section") ?? article).append(end);
  }

  // The printer keeps the places of those anchors that a link of the page names.
  const names = document.createElement("nav");
  names.hidden = true;
  for (const { id } of article.querySelectorAll("[id]:not(svg *, mjx-container *)")) {
    const link = document.createElement("a");
    link.href = `#${encodeURIComponent(id)}`;
    names.append(link);
  }
  document.body.append(names);
  await document.fonts.ready;

  const right = article.getBoundingClientRect().right + 1;
  const candidates = [...article.querySelectorAll("*:not(svg *, mjx-assistive-mml, mjx-assistive-mml *)")];
  const wide = () => candidates.filter((e) => e.getBoundingClientRect().right > right);
  const whole = (e) => e.closest("table, pre") ?? e.closest("mjx-container") ?? e;
  const smaller = (e) => {
    e.style.fontSize = `${0.95 * parseFloat(getComputedStyle(e).fontSize)}px`;
  };
  // Down to half the size: a formula by itself, a table when its text does not wrap.
  for (let round = 0; round < 14 && wide().length > 0; round += 1)
    new Set(wide().map(whole)).forEach(smaller);
  const say = (fault, e) => `${fault}: ${e.tagName} ${e.textContent.trim().slice(0, 80)}`;
  return wide().map((e) => say("too wide for the paper", e));
}
