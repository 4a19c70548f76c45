// The cells of a live page: code that can be edited, beside a button that runs it.

import { element } from "./live-output.mjs";

// Whether this browser can edit plain text in place. One that cannot would paste markup.
export const canEdit = () => {
  try {
    document.createElement("pre").contentEditable = "plaintext-only";
    return true;
  } catch {
    return false;
  }
};

// A line break that a browser made an element counts as one.
const textOf = (part) => {
  const copy = part.cloneNode(true);
  copy.querySelectorAll("br").forEach((br) => br.replaceWith("\n"));
  return copy.textContent;
};

// A cell of the page: `run` and `changed` are called with it.
export class Cell {
  constructor(number, pre, { run, changed }) {
    Object.assign(this, { number, pre, box: pre.closest(".cell"), ran: false });
    const book = [...pre.cloneNode(true).childNodes]; // with the colors of the code
    this.undo = () => {
      pre.replaceChildren(...book.map((node) => node.cloneNode(true)));
      this.ran = false;
    };
    pre.setAttribute("role", "textbox");
    pre.setAttribute("aria-multiline", "true");
    pre.setAttribute("aria-label", `Code of cell ${number}`);
    pre.spellcheck = false;
    this.button = element("button", "live-run", `Run cell ${number}`);
    this.button.type = "button";
    this.button.addEventListener("click", () => run(this));
    pre.closest(".cell_input").append(this.button);
    pre.addEventListener("input", () => {
      this.ran = false;
      changed(this);
    });
    pre.addEventListener("keydown", (event) => {
      // The page has shortcuts of one key, which are code here.
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
      if (event.key !== "Enter") return;
      if (event.shiftKey || event.ctrlKey || event.metaKey) run(this);
      else newLine(indent(pre));
      event.preventDefault();
    });
    pre.contentEditable = "plaintext-only";
  }

  get name() {
    return `cell ${this.number}`;
  }

  get code() {
    return textOf(this.pre);
  }

  set code(text) {
    this.pre.textContent = text;
    this.ran = false;
  }

  get output() {
    const output = this.box.querySelector(".cell_output");
    if (output) return output;
    const made = element("div", "cell_output docutils container");
    this.box.append(made);
    return made;
  }
}

// A new line starts where the one before it does. WebKit drops the break of a text that
// is inserted; Firefox does not know the command for a break.
const newLine = (margin) => {
  const broken = document.execCommand("insertLineBreak");
  if (!broken || margin) document.execCommand("insertText", false, broken ? margin : `\n${margin}`);
};

const indent = (pre) => {
  const range = getSelection().getRangeAt(0).cloneRange();
  range.setStart(pre, 0);
  const line = textOf(range.cloneContents()).split("\n").at(-1);
  return line.match(/^ */)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
};

// Code that is not on the page: run in its place. What it shows is shown at the top.
export class HiddenCell {
  constructor(code, bar) {
    const output = element("div", "cell_output");
    bar.append(output);
    Object.assign(this, { code, output, ran: false, name: "code that the page hides" });
  }
}
