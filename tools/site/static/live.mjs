// Makes the cells of a live page editable and runs them in a kernel (live-kernel.mjs).

import { Cell, HiddenCell, canEdit } from "./live-cells.mjs";
import { Kernel, ask, binder, here } from "./live-kernel.mjs";
import { element, writer } from "./live-output.mjs";
import { Edits } from "./live-store.mjs";

const RULE = "Click into a cell to edit it. Run (Shift+Enter) runs it, after the cells above it that have not run.";
const DRAWN = "Sliders of new explorers move between the stops that Python has drawn.";
const OLD = "This browser is too old to edit code on a page. The text and the stored results are complete.";
const FLEETING = "This browser keeps nothing for this page: your edits last until you reload or close it.";

const bar = document.querySelector(".live");
const place = bar.querySelector(".live-buttons");
const says = bar.querySelector(".live-says");
const say = (text) => (says.textContent = text);

let cells = [];
let edits = null;
let lasting = true; // whether the browser keeps the edits
let connect = here; // gives the server of the next kernel
let starting = null; // promise of the kernel
let running = false;

const lost = (sentence, gone) => {
  cells.forEach((cell) => (cell.ran = false));
  if (gone) starting = null;
  say(sentence);
};

const kernel = () => {
  if (starting === null) {
    starting = Promise.resolve(connect()).then((server) => Kernel.start(server, lost));
    starting.catch(() => (starting = null));
  }
  return starting;
};

const runTo = async (target) => {
  if (running) {
    say(`Wait for the cell that is running, or press Stop.`);
    return;
  }
  running = true;
  buttons.stop.disabled = false;
  const until = cells.indexOf(target) + 1;
  const todo = cells.slice(0, until).filter((cell) => cell === target || !cell.ran);
  try {
    say("Starting Python …");
    const python = await kernel();
    for (const cell of todo) {
      say(`Running ${cell.name} …`);
      if (!(await runOne(python, cell))) {
        say(`Stopped in ${cell.name}: the message is ${cell.pre ? "below it" : "here"}.`);
        return;
      }
    }
    say(`${target.name[0].toUpperCase()}${target.name.slice(1)} has run.`);
  } catch (error) {
    say(error.message);
  } finally {
    running = false;
    buttons.stop.disabled = true;
  }
};

const runOne = async (python, cell) => {
  const place = cell.output;
  place.setAttribute("aria-busy", "true");
  const write = writer(place);
  let started = false;
  // Stored results stay until there are new ones.
  const fresh = () => {
    if (!started) place.replaceChildren();
    started = true;
  };
  const before = cell.code;
  try {
    const good = await python.execute(before, (type, content) => {
      if (!["stream", "error", "execute_result", "display_data"].includes(type) && !started) return;
      fresh();
      write(type, content);
    });
    fresh();
    cell.ran = good && cell.code === before; // edited meanwhile: to be run again
    return good;
  } finally {
    place.removeAttribute("aria-busy");
  }
};

const button = (text, action) => {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", () => action().catch((error) => say(error.message)));
  return made;
};

const buttons = {
  all: button("Run all", () => runTo(cells.at(-1))),
  stop: button("Stop", async () => (await kernel()).interrupt()),
  restart: button("Restart", async () => {
    if (starting === null) say("No kernel is running: a new one starts with the next cell.");
    // Whoever runs a cell meanwhile waits for the new kernel.
    else {
      starting = starting.then((python) => python.restart());
      starting.catch(() => (starting = null));
      await starting;
    }
  }),
  undo: button("Undo my edits", async () => {
    const edited = visible().filter((_, index) => edits.of(index) !== undefined);
    edited.forEach((cell) => {
      cell.undo();
      changed(cell);
    });
    say("The code is the book's again. Run the cells for their results.");
  }),
};

const visible = () => cells.filter((cell) => cell.pre);

const changed = (cell) => {
  const kept = edits.set(visible().indexOf(cell), cell.code);
  if (lasting && !kept && !running) say(FLEETING);
  lasting = kept;
  buttons.undo.hidden = edits.kept.size === 0;
};

// The edits of the last visit, if the book has the same code still.
const bringBack = () => {
  edits = new Edits(location.pathname, visible().map((cell) => cell.code));
  const edited = visible().filter((_, index) => edits.of(index) !== undefined);
  edited.forEach((cell) => (cell.code = edits.of(visible().indexOf(cell))));
  buttons.undo.hidden = edited.length === 0;
  const names = edited.map((cell) => cell.number).join(", ");
  return edited.length ? `Your edits are back (cells: ${names}).` : DRAWN;
};

const makeCells = (server) => {
  const inputs = [...document.querySelectorAll(".cell_input pre")];
  const codes = JSON.parse(bar.querySelector("script").textContent);
  let number = 0;
  const make = (code) => (code === null ? new Cell(number + 1, inputs[number++], { run: runTo, changed }) : new HiddenCell(code, bar));
  cells = codes.map(make);
  buttons.stop.disabled = true;
  place.replaceChildren(...Object.values(buttons));
  say(`Connected to ${server.address.host}. ${RULE} ${bringBack()}`);
};

const useBinder = async () => {
  const server = await binder(bar.dataset.binder, say);
  connect = () => server;
  makeCells(server);
};

// Python in the browser is a site of its own beside this one, with the same notebook.
const useLite = async () => location.assign(bar.dataset.lite);

const open = async () => {
  try {
    say("Looking for a server …");
    const server = here();
    await ask(server, "api/status");
    makeCells(server);
  } catch (error) {
    say(error.message);
    const ways = [button("Try again", open)];
    if (bar.dataset.binder) ways.push(button("Start on Binder", useBinder));
    if (bar.dataset.lite) ways.push(button(`Python in the browser (${bar.dataset.size} MB)`, useLite));
    place.replaceChildren(...ways);
  }
};

addEventListener("pagehide", () => {
  starting?.then((python) => python.stop()).catch(() => {});
  lost("", true); // the browser may show this page again as it is now
});
addEventListener("beforeunload", (event) => !lasting && event.preventDefault());
if (canEdit()) {
  place.hidden = false;
  open();
} else say(OLD);
