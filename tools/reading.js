// What a reader meets on a page of the site, measured in the page as it stands: what is
// folded counts as folded. Lists name what is at fault, by its first words.
() => {
  const article = document.querySelector("article") ?? document.body;
  const all = (selector, within = article) => [...within.querySelectorAll(selector)];
  const box = (e) => e.getBoundingClientRect();
  const folded = (e) => {
    const fold = e.parentElement?.closest("details:not([open])");
    return fold && !(e.closest("summary")?.parentElement === fold && !folded(fold));
  };
  const seen = (e) =>
    e.checkVisibility({ visibilityProperty: true }) && box(e).height > 1 && !folded(e);
  const words = (e) => e.textContent.replace(/\s+/g, " ").trim();
  const told = (e) => words(e).slice(0, 60);
  const outermost = (list) => list.filter((e) => !list.some((o) => o !== e && o.contains(e)));

  // Vertical extents on the page, those that touch taken together.
  const origin = box(article).top;
  const whole = box(article).height;
  const extents = (elements) => {
    const spans = elements
      .map((e) => [box(e).top - origin, box(e).bottom - origin])
      .sort((a, b) => a[0] - b[0]);
    const joined = [];
    for (const [top, bottom] of spans) {
      const last = joined.at(-1);
      if (last && top <= last[1]) last[1] = Math.max(last[1], bottom);
      else joined.push([top, bottom]);
    }
    return joined;
  };
  const share = (spans) => spans.reduce((sum, [a, b]) => sum + b - a, 0) / whole;

  // Code is what a cell or a block of text shows, and not what a cell has printed.
  const printed = ".cell_output, .output";
  const code = all("pre").filter((e) => !e.closest(printed));
  const open = code.filter(seen);
  const frame = (e) => e.closest(".cell_input, div.highlight") ?? e;
  const lines = (e) => e.textContent.split("\n").filter((line) => line.trim()).length;
  const title = (e) => words(e).replace(/#$/, "").replace(/^[\d.]+\s*/, "");
  const framing = ["In brief", "At a glance", "What we saw", "Exercises", "Notes"];
  const sections = all("h2")
    .map((h) => [title(h), h.parentElement])
    .filter(([name, e]) => !framing.includes(name) && code.some((c) => e.contains(c)))
    .filter(([, e]) => !open.some((c) => e.contains(c) && lines(c) <= 6))
    .map(([name]) => name);

  // Figures, and pictures of some size that stand by themselves.
  const drawn = "svg, canvas, img, video";
  const loose = all(drawn).filter((e) => !e.closest("figure, mjx-container, a.headerlink"));
  const figures = outermost([...all("figure"), ...loose.filter((e) => box(e).height >= 80)]).filter(seen);
  const pictures = extents(figures);
  const edges = [0, ...pictures.flat(), whole];
  const ways = edges.filter((_, i) => i % 2 === 0).map((from, i) => edges[2 * i + 1] - from);

  // An exhibit is a figure that the reader moves; a live one moves without stops.
  const fine = (input) =>
    input.step === "any" || (input.max - input.min) / (input.step || 1) >= 50;
  const held = "input, button, canvas[tabindex]";
  const exhibits = figures.filter((e) => all(held, e).some(seen));
  const live = exhibits.filter(
    (e) => all("canvas[tabindex]", e).some(seen) || all("input[type=range]", e).some((i) => seen(i) && fine(i)),
  );
  let exhibit = 0;
  if (exhibits.length > 0) {
    const parts = all(drawn, exhibits[0]).filter(seen).map(box);
    const top = Math.min(...parts.map((b) => b.top)) + scrollY;
    const bottom = Math.max(...parts.map((b) => b.bottom)) + scrollY;
    exhibit = Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0)) / (bottom - top);
  }

  // A check takes no line of its own: one that is a block of more than one line is a box.
  const marks = all("*").filter(
    (e) => e.children.length === 0 && /^(HOLDS|REFUTED|FAILS|INCONCLUSIVE)$/i.test(e.textContent.trim()) &&
      seen(e) && !e.closest("table, pre, a"),
  );
  const block = (e) => {
    while (e !== article && getComputedStyle(e).display === "inline") e = e.parentElement;
    return e;
  };
  const unfolded = all(".verdict").filter(seen);
  const boxes = [...new Set([...unfolded, ...marks.map(block)])].filter((e) => {
    const style = getComputedStyle(e);
    const { display, float, position } = style;
    const aside = display.startsWith("inline") || float !== "none" || position === "absolute";
    const pixels = (name) => parseFloat(style[name]) || 0;
    const line = pixels("lineHeight") || 1.2 * pixels("fontSize");
    const high = e.clientHeight - pixels("paddingTop") - pixels("paddingBottom");
    const check = unfolded.includes(e) || /^\W*(HOLDS|REFUTED|FAILS|INCONCLUSIVE)/i.test(words(e));
    return check && !aside && high > 1.6 * line;
  });
  const refuted = all(".proof.admonition").filter((e) =>
    all("*", e).some((part) => seen(part) && part.children.length === 0 && /refuted/i.test(part.textContent)),
  );

  // A formula is cut where it is wider than something that does not scroll.
  const cut = all("mjx-container:not([display=true])").filter((e) => {
    if (!seen(e)) return false;
    const right = Math.max(...[e, ...all("mjx-math", e)].map((part) => box(part).right));
    for (let up = e.parentElement; up && up !== document.documentElement; up = up.parentElement) {
      const { overflowX } = getComputedStyle(up);
      if (["auto", "scroll"].includes(overflowX)) return false;
      if (["hidden", "clip"].includes(overflowX) && right > box(up).right + 1) return true;
    }
    return right > document.documentElement.clientWidth + 1;
  });
  // A cue is something painted where a thing goes on: a mask, a shade within, a mark.
  const cue = (e) => {
    const painted = ({ maskImage, backgroundImage, boxShadow }) =>
      (maskImage ?? "none") !== "none" || /gradient/.test(backgroundImage) || /inset/.test(boxShadow);
    const mark = (side) => {
      const style = getComputedStyle(e, side);
      return style.content !== "none" && style.content !== "normal" && (painted(style) || /\w|[→⇢▸…]/.test(style.content));
    };
    return painted(getComputedStyle(e)) || mark("::before") || mark("::after");
  };
  const scrolls = (e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);
  const overflow = all(`mjx-container[display=true], table, :is(${printed}) pre`).filter((e) => {
    if (!seen(e) || e.closest("figure")) return false;
    let around = e;
    for (let n = 0; n < 4 && around !== article; n += 1, around = around.parentElement) {
      if (scrolls(around)) break;
    }
    if (around === article || !scrolls(around)) return box(e).right > box(article).right + 1;
    if (around.scrollWidth <= around.clientWidth + 1) return false;
    return ![e, around, around.parentElement, around.parentElement.parentElement].some(cue);
  });

  // Sizes of labels in pixels of the screen; indices and powers are smaller by nature.
  const sizes = (window.paintedLabels ?? []).filter(([c]) => seen(c)).map(([, size, text]) => [size, text]);
  for (const text of figures.flatMap((e) => all("svg text", e.closest("svg")?.parentElement ?? e)).filter(seen)) {
    const { a, b, c, d } = text.getScreenCTM();
    const scale = Math.sqrt(Math.abs(a * d - b * c));
    const size = Math.max(...[text, ...text.querySelectorAll("tspan")].map((t) => parseFloat(getComputedStyle(t).fontSize)));
    if (text.textContent.trim()) sizes.push([size * scale, text.textContent]);
  }
  for (const e of figures.flatMap((f) => all("*:not(svg *, figcaption *, figcaption, script, sup, sub)", f))) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (own && seen(e) && !e.closest("figcaption, mjx-container"))
      sizes.push([parseFloat(getComputedStyle(e).fontSize), e.textContent]);
  }
  sizes.sort((one, two) => one[0] - two[0]);

  // Prose: sentences of the text, folded answers included; no code, no output, and not
  // what checks unfold to.
  const notes = all("h2").find((h) => title(h) === "Notes")?.parentElement;
  const blocks = all("p, figcaption, li, dd, td, th, h1, h2, h3, h4, summary").filter(
    (e) => !e.querySelector("p, li, dd, td") && !e.closest(`pre, ${printed}, details:not(.sd-dropdown, .further)`),
  );
  const prose = blocks.map((e) => {
    const copy = e.cloneNode(true);
    copy.querySelectorAll("mjx-container, .math").forEach((f) => f.replaceWith("x"));
    copy.querySelectorAll(".headerlink, script, style").forEach((f) => f.remove());
    return [words(copy), e];
  });
  const foreign = /\bthe (working )?notes\b|\bthe poster\b|\bthe sources?\b/i;
  const sentences = prose
    .filter(([, e]) => !notes?.contains(e))
    .flatMap(([text]) => text.split(/(?<=[.?!])\s+/))
    .filter((sentence) => foreign.test(sentence));

  return {
    exhibit, live: live.length, code: share(extents(open.map(frame))), sections,
    figures: share(pictures), way: Math.max(...ways) / innerHeight,
    boxes: boxes.map(told), refuted: refuted.map(told),
    cut: cut.map((e) => told(e.closest("p, li, dd, td") ?? e)), overflow: overflow.map(told),
    label: sizes[0]?.[0] ?? null, smallest: sizes[0]?.[1].trim() ?? null,
    sentences, words: prose.reduce((sum, [text]) => sum + text.split(" ").filter((w) => /\w/.test(w)).length, 0),
  };
}
