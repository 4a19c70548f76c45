// What a live page keeps in the browser: the key of its server, and the reader's edits.
// Where storage is refused or full, the page works without it and says what it loses.

export const recall = (key) => {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
};

// Whether it is kept.
export const store = (key, value) => {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
};

// The edits of one page: for each cell, by its stored code and its place among cells of
// the same code, what the reader made of it. Code that the book has changed since is not
// found, so its edit is not brought back.
export class Edits {
  constructor(page, codes) {
    const seen = new Map();
    this.place = `live-edits:${page}`;
    this.codes = codes;
    this.names = codes.map((code) => {
      seen.set(code, (seen.get(code) ?? 0) + 1);
      return `${seen.get(code)} ${code}`;
    });
    const kept = this.recalled();
    const edited = this.names.filter((name) => typeof kept[name] === "string");
    this.kept = new Map(edited.map((name) => [name, kept[name]]));
  }

  recalled() {
    try {
      return JSON.parse(recall(this.place)) ?? {};
    } catch {
      return {}; // not ours, or cut off: the page starts from the book
    }
  }

  // The reader's code of a cell, undefined where the book's stands.
  of(index) {
    return this.kept.get(this.names[index]);
  }

  // Whether the edit is kept.
  set(index, code) {
    if (code === this.codes[index]) this.kept.delete(this.names[index]);
    else this.kept.set(this.names[index], code);
    return store(this.place, JSON.stringify(Object.fromEntries(this.kept)));
  }
}
