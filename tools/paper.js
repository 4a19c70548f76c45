// Run in a page of the site before it is printed: answers are opened, anchors are made
// known to the printer, and what is wider than the paper is set smaller. Returns what
// cannot be printed.
async ({ body, note }) => {
  const article = document.querySelector("article");
  if (body) article.innerHTML = body;
  if (note) {
    const line = document.createElement("p");
    line.textContent = note;
    article.querySelector("p").after(line);
  }
  for (const fold of article.querySelectorAll("details:not(.hide)")) fold.open = true;
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
  return [
    ...wide().map((e) => say("too wide for the paper", e)),
    ...[...article.querySelectorAll("mjx-merror")].map((e) => say("no mathematics", e)),
  ];
}
