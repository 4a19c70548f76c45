// The search: sections of chapters first, then what stands around them. It loads the words
// of all sections, looks for what was typed and for what the field calls by other names,
// and shows where it is. No raw TeX: formulas are in the index as they are read.

import { SYNONYMS } from "./synonyms.mjs";

const MANY = 30; // results that are shown
const AROUND = 160; // characters of an excerpt
const base = new URL("../", import.meta.url);

// Letters without case and accents; hyphens and apostrophes as on any keyboard.
const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase()
  .replace(/[‐-–]/g, "-").replace(/’/g, "'");
// A word in its forms: metastable, metastability; layer, layers; merging, merger.
const stem = (word) => word.length < 5 ? word
  : word.replace(/(?:abilit(?:y|ies)|able|ations?|ings?|ers?|ed|es|s|ity|e)$/, "") || word;
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const pattern = (phrase) => phrase.split(/\s+/).map((word) => {
  const root = stem(word);
  return root.length < 3 ? `${escaped(root)}(?![\\p{L}\\p{N}])` : `${escaped(root)}[\\p{L}']*`;
}).join("[\\s-]+");
const finder = (phrase) => new RegExp(`(?<![\\p{L}\\p{N}])${pattern(phrase)}`, "gu");

// The terms of a query: known phrases first, then its single words; each with its kin.
export const termsOf = (query) => {
  let rest = ` ${plain(query).replace(/["“”]/g, " ").replace(/\s+/g, " ").trim()} `;
  const terms = [];
  const known = SYNONYMS.flat().sort((a, b) => b.length - a.length);
  for (const phrase of known)
    if (rest.includes(` ${plain(phrase)} `)) {
      terms.push(plain(phrase));
      rest = rest.replace(` ${plain(phrase)} `, " ");
    }
  terms.push(...rest.split(" ").filter(Boolean));
  return terms.map((term) => {
    const groups = SYNONYMS.filter((group) => group.some((each) => plain(each) === term));
    const kin = [...new Set(groups.flat().map(plain))].filter((each) => each !== term);
    return { term, find: finder(term), words: term.split(" ").map(finder),
             kin: kin.map((each) => ({ term: each, find: finder(each) })) };
  });
};

const count = (text, find) => (text.match(find) ?? []).length;
const worth = (entry, find) => {
  const title = count(entry.plainTitle, find) ? 8 + 4 * (entry.plainTitle.length < 40) : 0;
  return title + 2 * Math.log2(1 + count(entry.plainText, find));
};

const rate = (entry, terms) => {
  let total = 0, missing = 0;
  for (const { find, words, kin } of terms) {
    let own = worth(entry, find);
    if (!own && words.length > 1 && words.every((word) => worth(entry, word)))
      own = 0.4 * Math.min(...words.map((word) => worth(entry, word)));
    const others = Math.max(0, ...kin.map((each) => 0.35 * worth(entry, each.find)));
    if (!own && !others) missing += 1;
    total += own + others;
  }
  return { entry, missing, score: total * entry.weight };
};

export const search = (entries, query) => {
  const terms = termsOf(query);
  if (!terms.length) return { terms, places: [] };
  const rated = entries.map((entry) => rate(entry, terms)).filter(({ score }) => score > 0);
  const whole = rated.filter(({ missing }) => missing === 0);
  const places = (whole.length ? whole : rated)
    .sort((a, b) => a.missing - b.missing || b.score - a.score);
  return { terms, places };
};

export const prepared = (entries) => entries.map((entry) => ({
  ...entry, plainTitle: plain(entry.title), plainText: plain(entry.text),
}));

// The text with what was found in it between marks.
const marked = (text, finds) => {
  const spans = finds.flatMap((find) => [...plain(text).matchAll(find)].map((m) => [m.index, m.index + m[0].length]))
    .sort(([a], [b]) => a - b);
  const parts = document.createDocumentFragment();
  if (plain(text).length !== text.length) spans.length = 0; // letters of two code points
  let end = 0;
  for (const [from, to] of spans) {
    if (from < end) continue;
    parts.append(text.slice(end, from));
    parts.append(Object.assign(document.createElement("mark"), { textContent: text.slice(from, to) }));
    end = to;
  }
  parts.append(text.slice(end));
  return parts;
};

const excerpt = (entry, finds) => {
  const places = finds.map((find) => entry.plainText.search(new RegExp(find.source, "u"))).filter((n) => n >= 0);
  const from = places.length ? places[0] : 0;
  const start = from > AROUND / 2 ? entry.text.indexOf(" ", from - AROUND / 2) + 1 : 0;
  const stop = entry.text.indexOf(" ", start + AROUND);
  return `${start ? "… " : ""}${entry.text.slice(start, stop < 0 ? undefined : stop)}${stop < 0 ? "" : " …"}`;
};

const line = ({ entry }, terms, query) => {
  const finds = terms.flatMap(({ find, words }) => [find, ...words]);
  const kin = terms.flatMap(({ kin }) => kin.map(({ find }) => find));
  const item = document.createElement("li");
  const link = document.createElement("a");
  const to = new URL(entry.to, base);
  to.searchParams.set("q", query);
  link.href = to.href;
  link.append(marked(entry.title, finds));
  const place = Object.assign(document.createElement("span"), { className: "search-page", textContent: entry.page });
  const text = Object.assign(document.createElement("p"), { className: "context" });
  const own = finds.some((find) => count(entry.plainText, find));
  text.append(marked(excerpt(entry, own ? finds : kin), [...finds, ...kin]));
  item.append(link, " ", place, text);
  return item;
};

const results = typeof document === "undefined" ? null : document.getElementById("search-results");
if (results) {
  const status = document.getElementById("search-status");
  const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
  const field = document.querySelector(".bd-search-container input[name=q]");
  field.value = query;
  field.focus();
  if (query) {
    status.textContent = "Searching …";
    try {
      const answer = await fetch(new URL("_static/search-sections.json", base));
      if (!answer.ok) throw new Error(answer.status);
      const { terms, places } = search(prepared(await answer.json()), query);
      const list = Object.assign(document.createElement("ul"), { className: "search" });
      list.append(...places.slice(0, MANY).map((each) => line(each, terms, query)));
      results.replaceChildren(list);
      const also = [...new Set(terms.flatMap(({ kin }) => kin.map(({ term }) => term)))];
      const more = places.length > MANY ? `the ${MANY} best of ${places.length} places` : `${places.length} place${places.length === 1 ? "" : "s"}`;
      status.textContent = places.length
        ? `Search finished: ${more} for “${query}”${also.length ? `, also by its other names: ${also.slice(0, 4).join(", ")}` : ""}.`
        : `Search finished: nothing found for “${query}”.`;
    } catch (error) {
      status.textContent = `The words of the book could not be loaded (${error.message}).`;
    }
  }
}
