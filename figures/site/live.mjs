// Makes the cells of a live page editable and runs them in a kernel of a Jupyter server:
// one that serves this page (make live), or one that Binder makes. No dependency: the
// server's REST address starts a kernel, one WebSocket carries its messages.
// https://jupyter-client.readthedocs.io/en/stable/messaging.html

const bar = document.querySelector(".live");
const says = bar.querySelector(".live-says");
const say = (text) => (says.textContent = text);
const RULE = "Click into a cell to edit it. Run (Shift+Enter) runs it, after the cells above it that have not run.";
const DRAWN = "Sliders of new explorers move between the stops that Python has drawn.";
const KEPT = "Your edits are kept on this page; what the cells computed is gone.";
const NOWHERE = "No server answers here, so this page shows its stored results. To run its cells, type make live in a clone of the project and open the address that it prints.";
const REFUSED = "A server answers here but does not know this page. Open the address that make live printed last: it carries the key.";
const LOST = `The connection to the server is lost. ${KEPT}`;
const TRIES = "Starting a server on mybinder.org; this can take some minutes …";

class Refusal extends Error {}

// -- The kernel ------------------------------------------------------------------------

class Kernel {
  // `server` has an address, ending in a slash, and a token; `lost` is called with a
  // sentence when what the kernel knew is gone.
  static async start(server, lost) {
    const { id } = await ask(server, "api/kernels", { method: "POST", body: '{"name": "python3"}' });
    const kernel = new Kernel(server, id, lost);
    await kernel.open();
    return kernel;
  }

  constructor(server, id, lost) {
    Object.assign(this, { server, id, lost, session: crypto.randomUUID() });
    this.waiting = new Map(); // message id: what waits for its answers
  }

  open() {
    const address = new URL(`api/kernels/${this.id}/channels`, this.server.address);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = new URLSearchParams({ session_id: this.session, token: this.server.token });
    this.socket = new WebSocket(address);
    this.socket.onmessage = ({ data }) => typeof data === "string" && this.receive(JSON.parse(data));
    return new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onclose = () => {
        reject(new Error(LOST));
        if (!this.closing) this.fail(LOST, true);
      };
    });
  }

  receive({ header, parent_header: parent, content }) {
    const state = header.msg_type === "status" && content.execution_state;
    if (!this.restarting && ["restarting", "autorestarting", "dead"].includes(state)) {
      const next = state === "dead" ? "Press Restart for a new one." : "A new one has started.";
      this.fail(`The kernel died, perhaps for want of memory. ${next} ${KEPT}`, state === "dead");
    }
    const run = this.waiting.get(parent.msg_id);
    if (!run) return;
    if (header.msg_type === "execute_reply") run.status = content.status;
    else if (state === "idle") run.idle = true;
    else run.show(header.msg_type, content);
    if (run.idle && run.status) {
      this.waiting.delete(parent.msg_id);
      run.resolve(run.status === "ok");
    }
  }

  // Whether the code ran without error; `show` gets what it shows, message by message.
  execute(code, show) {
    const msg_id = crypto.randomUUID();
    const header = { msg_id, msg_type: "execute_request", session: this.session, username: "reader", version: "5.3", date: new Date().toISOString() };
    const content = { code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false, stop_on_error: true };
    this.socket.send(JSON.stringify({ channel: "shell", header, parent_header: {}, metadata: {}, content, buffers: [] }));
    return new Promise((resolve, reject) => this.waiting.set(msg_id, { show, resolve, reject }));
  }

  fail(sentence, gone) {
    const runs = [...this.waiting.values()];
    this.waiting.clear();
    this.lost(sentence, gone);
    runs.forEach((run) => run.reject(new Error(sentence)));
  }

  interrupt() {
    return ask(this.server, `api/kernels/${this.id}/interrupt`, { method: "POST" });
  }

  async restart() {
    this.restarting = true;
    this.fail("Restarting Python …", false);
    await ask(this.server, `api/kernels/${this.id}/restart`, { method: "POST" });
    this.restarting = false;
    this.lost(`The kernel was restarted. ${KEPT}`, false);
    return this;
  }

  stop() {
    this.closing = true;
    this.socket.close();
    ask(this.server, `api/kernels/${this.id}`, { method: "DELETE", keepalive: true }).catch(() => {});
  }
}

const ask = async (server, path, options = {}) => {
  const headers = { Authorization: `token ${server.token}` };
  let answer;
  try {
    answer = await fetch(new URL(path, server.address), { ...options, headers, cache: "no-store" });
  } catch {
    throw new Refusal(NOWHERE);
  }
  if ([401, 403].includes(answer.status)) throw new Refusal(REFUSED);
  // A site without a server may answer anything, its page of unknown addresses included.
  const json = answer.headers.get("Content-Type")?.startsWith("application/json");
  if (!answer.ok || (answer.status !== 204 && !json)) throw new Refusal(NOWHERE);
  return answer.status === 204 ? null : answer.json();
};

// -- Servers ---------------------------------------------------------------------------

// The server that also serves this page. Its key comes in the fragment of the address
// that `make live` prints, which no server sees, and is kept for the next pages.
const here = () => {
  const key = new URLSearchParams(location.hash.slice(1)).get("token");
  if (key) {
    localStorage.setItem("live-token", key);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const root = new URL(document.documentElement.dataset.content_root, location);
  return { address: new URL("jupyter/", root), token: localStorage.getItem("live-token") ?? "" };
};

const binder = () =>
  new Promise((resolve, reject) => {
    const events = new EventSource(bar.dataset.binder);
    const end = (sentence) => {
      events.close();
      reject(new Refusal(sentence));
    };
    events.onerror = () => end("mybinder.org does not answer. Try again later, or run the page on your machine.");
    events.onmessage = ({ data }) => {
      const { phase, url, token } = JSON.parse(data);
      if (phase === "failed") end("mybinder.org could not make a server for this book.");
      else if (phase === "ready") {
        events.close();
        resolve({ address: new URL(url), token });
      } else say(`${TRIES} (${phase})`);
    };
  });

// -- Output ----------------------------------------------------------------------------

const element = (tag, classes, text = "") => {
  const made = document.createElement(tag);
  made.className = classes;
  made.textContent = text;
  return made;
};

const printed = (text, kind) => {
  const box = element("div", `output ${kind}`);
  const plain = text.replace(/\u001b\[[0-9;]*m/g, ""); // colors of a terminal
  box.append(element("pre", "", plain));
  return box;
};

const joined = (value) => (Array.isArray(value) ? value.join("") : value);

// One output as an element: the richest of its forms that a page can show. The kernel
// is the reader's own; scripts and handlers in its output are stopped by the policy.
const shown = (data) => {
  const html = data["text/html"] ?? data["image/svg+xml"];
  if (html !== undefined) {
    const box = element("div", "output text_html");
    box.innerHTML = joined(html);
    return box;
  }
  for (const type of ["image/png", "image/jpeg"]) {
    if (type in data) {
      const image = element("img", "output");
      image.src = `data:${type};base64,${joined(data[type]).replace(/\s/g, "")}`;
      image.alt = joined(data["text/plain"] ?? "Output of this cell.");
      return image;
    }
  }
  return printed(joined(data["text/plain"] ?? ""), "text_plain");
};

// What shows the messages of one run in a place, which is emptied when the first comes.
const writer = (place) => {
  let stream = null; // the last box, when it is a stream
  let clear = false;
  const named = new Map(); // boxes by display id
  const add = (box, name) => {
    if (clear) place.replaceChildren();
    clear = false;
    stream = null;
    const old = named.get(name);
    if (old) old.replaceWith(box);
    else place.append(box);
    if (name) named.set(name, box);
    box.dispatchEvent(new Event("book:output", { bubbles: true }));
  };
  return (type, content) => {
    const name = content.transient?.display_id;
    if (type === "stream" && stream?.name === content.name && !clear) {
      stream.pre.append(content.text);
    } else if (type === "stream") {
      const box = printed(content.text, `stream ${content.name}`);
      add(box);
      stream = { name: content.name, pre: box.firstChild };
    } else if (type === "error") {
      add(printed(content.traceback.join("\n") || `${content.ename}: ${content.evalue}`, "traceback"));
    } else if (type === "clear_output") {
      if (content.wait) clear = true;
      else place.replaceChildren();
    } else if (["execute_result", "display_data"].includes(type) || (type === "update_display_data" && named.has(name))) {
      add(shown(content.data), name);
    }
  };
};

// -- Cells -----------------------------------------------------------------------------

// A line break that a browser made an element counts as one.
const textOf = (part) => {
  const copy = part.cloneNode(true);
  copy.querySelectorAll("br").forEach((br) => br.replaceWith("\n"));
  return copy.textContent;
};

class Cell {
  constructor(number, pre) {
    Object.assign(this, { number, pre, box: pre.closest(".cell"), ran: false, edited: false });
    pre.setAttribute("role", "textbox");
    pre.setAttribute("aria-multiline", "true");
    pre.setAttribute("aria-label", `Code of cell ${number}`);
    pre.spellcheck = false;
    this.button = element("button", "live-run", `Run cell ${number}`);
    this.button.type = "button";
    this.button.addEventListener("click", () => runTo(this));
    pre.closest(".cell_input").append(this.button);
    pre.addEventListener("input", () => {
      this.ran = false;
      this.edited = true;
    });
    pre.addEventListener("keydown", (event) => {
      // The page has shortcuts of one key, which are code here.
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
      if (event.key !== "Enter") return;
      if (event.shiftKey || event.ctrlKey || event.metaKey) runTo(this);
      // A new line starts where the one before it does.
      else document.execCommand("insertText", false, `\n${indent(pre)}`);
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

  get output() {
    const found = this.box.querySelector(".cell_output");
    if (found) return found;
    const made = element("div", "cell_output docutils container");
    this.box.append(made);
    return made;
  }
}

const indent = (pre) => {
  const range = getSelection().getRangeAt(0).cloneRange();
  range.setStart(pre, 0);
  const line = textOf(range.cloneContents()).split("\n").at(-1);
  return line.match(/^ */)[0] + (line.trimEnd().endsWith(":") ? "    " : "");
};

// Code that is not on the page: run in its place. What it shows is shown at the top.
class HiddenCell {
  constructor(code) {
    const output = element("div", "cell_output");
    bar.append(output);
    Object.assign(this, { code, output, ran: false, edited: false, name: "code that the page hides" });
  }
}

// -- The page --------------------------------------------------------------------------

let cells = [];
let server = null;
let starting = null; // promise of the kernel
let running = false;

const lost = (sentence, gone) => {
  cells.forEach((cell) => (cell.ran = false));
  if (gone) starting = null;
  say(sentence);
};

const kernel = () => {
  if (starting === null) {
    starting = Kernel.start(server, lost);
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
};

const makeCells = () => {
  const inputs = [...document.querySelectorAll(".cell_input pre")];
  const codes = JSON.parse(bar.querySelector("script").textContent);
  let number = 0;
  cells = codes.map((code) => (code === null ? new Cell(number + 1, inputs[number++]) : new HiddenCell(code)));
  buttons.stop.disabled = true;
  bar.querySelector(".live-buttons").replaceChildren(...Object.values(buttons));
  say(`Connected to ${server.address.host}. ${RULE} ${DRAWN}`);
};

const useBinder = async () => {
  say(TRIES);
  server = await binder();
  makeCells();
};

const open = async () => {
  const place = bar.querySelector(".live-buttons");
  place.hidden = false;
  try {
    server = here();
    say("Looking for a server …");
    await ask(server, "api/status");
    makeCells();
  } catch (error) {
    say(error.message);
    const again = [button("Try again", open)];
    if (bar.dataset.binder) again.push(button("Start on Binder", useBinder));
    place.replaceChildren(...again);
  }
};

addEventListener("pagehide", () => starting?.then((python) => python.stop()));
addEventListener("beforeunload", (event) => cells.some((cell) => cell.edited) && event.preventDefault());
open();
