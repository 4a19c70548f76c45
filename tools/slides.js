// Run in a chapter of the site, its figures not yet moving: returns the slides it makes,
// as {kind, heading, html}, and the fonts of its formulas.
async ({ answers, left }) => {
  const article = document.querySelector("article");
  article.querySelectorAll("details").forEach((fold) => (fold.open = true));
  await document.fonts.ready;
  const words = (e) => e.textContent.replace(/\s+/g, " ").trim();
  const asked = new RegExp(`^(${answers})\\b`);
  const outside = new RegExp(`^(${left})$`);

  // A part of the page as it stands on a slide: without links, marks and folds.
  const part = (e) => {
    const copy = e.cloneNode(true);
    copy.querySelectorAll(".headerlink, .copybtn, .statement-checks, summary > :is(svg, [class*=icon], [class*=chevron])")
      .forEach((x) => x.remove());
    copy.querySelectorAll("mjx-container").forEach((x) => x.removeAttribute("tabindex"));
    copy.querySelectorAll("a").forEach((x) => {
      const plain = document.createElement("span");
      plain.append(...x.childNodes);
      x.replaceWith(plain);
    });
    return copy;
  };
  const markup = (...parts) => parts.filter(Boolean).map((e) => part(e).outerHTML).join("");
  const inner = (e) => part(e).innerHTML;
  const before = (e) => {
    const place = e.closest(".cell") ?? e;
    const last = place.previousElementSibling;
    return last?.matches("p") ? last : (last?.querySelector(":scope > p") ?? null);
  };
  // A paragraph, and the formula that ends its sentence.
  const sentence = (e) => {
    if (!e?.matches("p")) return [];
    const next = e.nextElementSibling;
    return /[.?!)]$/.test(words(e)) || !next?.matches("div.math") ? [e] : [e, next];
  };
  const capital = (text) => text.replace(/^[a-z]/, (letter) => letter.toUpperCase());
  const [head] = article.querySelectorAll("h1");
  const opening = head.parentElement.querySelector("p");
  const slides = [{ kind: "title", heading: inner(head), html: markup(opening) }];
  const question = (e) => (e && e !== opening && words(e).endsWith("?") ? e : null);
  const kinds = "h2, figure, .proof.admonition:has(> .admonition-title), details.sd-dropdown";
  for (const e of article.querySelectorAll(kinds)) {
    const section = e.closest("section:has(> h2)");
    const top = section?.querySelector(":scope > h2");
    const near = e.closest("section:has(> h2, > h3)")?.querySelector(":is(h2, h3)") ?? head;
    if (top && outside.test(words(part(top)).replace(/^[\d.]+\s*/, ""))) continue;
    if (e.parentElement.closest(kinds)) continue;
    const heading = inner(near);
    if (e.matches("h2")) {
      const next = e.nextElementSibling;
      const lead = next?.matches("section") ? next.querySelector("h3 + p") : next;
      slides.push({ kind: "section", heading, html: markup(...sentence(lead)) });
    } else if (e.matches("figure")) {
      slides.push({ kind: "figure", heading, html: markup(question(before(e)), e) });
    } else if (e.matches("details")) {
      const title = e.querySelector("summary");
      if (!asked.test(words(title))) continue;
      const said = words(title).includes(":") ? `<p>${capital(inner(title).trim().replace(/^[^:]*:\s*/, ""))}</p>` : markup(before(e));
      const answer = inner(e.querySelector(".sd-summary-content"));
      slides.push({ kind: "question", heading, html: `${said}<details><summary>Answer</summary><div>${answer}</div></details>` });
    } else {
      slides.push({ kind: "statement", heading, html: markup(e) });
    }
  }
  const fonts = [...document.fonts].filter((font) => font.status === "loaded").map((font) => font.family);
  return { slides, fonts };
}
