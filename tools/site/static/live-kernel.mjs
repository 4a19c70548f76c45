// A kernel of a Jupyter server, and where such a server is: the one that serves this
// page (make live), or one that Binder makes. No dependency: the server's REST address
// starts a kernel, one WebSocket carries its messages.
// https://jupyter-client.readthedocs.io/en/stable/messaging.html

import { recall, store } from "./live-store.mjs";

const KEPT = "Your edits are kept; what the cells computed is gone.";
const NOWHERE = "No server answers here, so this page shows its stored results. To run its cells, type make live in a clone of the project and open the address that it prints.";
const REFUSED = "A server answers here but does not know this page. Open the address that make live printed last: it carries the key.";
const LOST = `The connection to the server is lost. ${KEPT}`;
const TRIES = "Starting a server on mybinder.org; this can take some minutes …";
// The kernel starts where the server says: with make live in an empty folder.
const START = '{"name": "python3", "path": ""}';

class Refusal extends Error {}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

export class Kernel {
  // `server` has an address, ending in a slash, and a token; `lost` is called with a
  // sentence when what the kernel knew is gone.
  static async start(server, lost) {
    const { id } = await ask(server, "api/kernels", { method: "POST", body: START });
    const kernel = new Kernel(server, id, lost);
    await kernel.open();
    return kernel;
  }

  constructor(server, id, lost) {
    Object.assign(this, { server, id, lost });
    this.waiting = new Map(); // message id: what waits for its answers
  }

  // `ready` is kept once the kernel has answered on a connection. A kernel that was
  // started again needs a new one: it may listen elsewhere, and the server may miss its
  // first messages, so that a cell would run without end.
  open() {
    const ready = this.connect();
    ready.catch((error) => this.ready === ready && this.lost(error.message, true));
    this.ready = ready;
    return ready;
  }

  async connect() {
    for (let tries = 0; tries < 12; tries++) {
      await this.dial();
      const answer = this.request("kernel_info_request", {}, () => {});
      if (await Promise.race([answer.then(() => true), pause(10)])) return;
      answer.catch(() => {});
      this.waiting.clear();
    }
    throw new Error(LOST);
  }

  dial() {
    this.close();
    this.session = crypto.randomUUID();
    const address = new URL(`api/kernels/${this.id}/channels`, this.server.address);
    address.protocol = address.protocol.replace("http", "ws");
    address.search = new URLSearchParams({ session_id: this.session, token: this.server.token });
    this.socket = new WebSocket(address);
    this.socket.onmessage = ({ data }) => typeof data === "string" && this.receive(JSON.parse(data));
    return new Promise((resolve, reject) => {
      this.socket.onopen = resolve;
      this.socket.onclose = () => {
        reject(new Error(LOST));
        this.fail(LOST, true);
      };
    });
  }

  close() {
    if (!this.socket) return;
    this.socket.onclose = this.socket.onmessage = null;
    this.socket.close();
  }

  receive({ header, parent_header: parent, content }) {
    const state = header.msg_type === "status" && content.execution_state;
    if (!this.restarting && ["restarting", "autorestarting", "dead"].includes(state)) {
      const next = state === "dead" ? "A new one starts with the next cell." : "A new one has started.";
      this.fail(`The kernel died, perhaps for want of memory. ${next} ${KEPT}`, state === "dead");
      if (state === "dead") this.close();
      else this.open();
      return;
    }
    const run = this.waiting.get(parent.msg_id);
    if (!run) return;
    if (header.msg_type.endsWith("_reply")) run.status = content.status;
    else if (state === "idle") run.idle = true;
    else run.show(header.msg_type, content);
    if (run.idle && run.status) {
      this.waiting.delete(parent.msg_id);
      run.resolve(run.status);
    }
  }

  // Whether the code ran without error; `show` gets what it shows, message by message.
  async execute(code, show) {
    await this.ready;
    const content = { code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false, stop_on_error: true };
    return (await this.request("execute_request", content, show)) === "ok";
  }

  request(msg_type, content, show) {
    const msg_id = crypto.randomUUID();
    const header = { msg_id, msg_type, session: this.session, username: "reader", version: "5.3", date: new Date().toISOString() };
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
    this.ready = null;
    this.fail("Restarting Python …", false);
    await ask(this.server, `api/kernels/${this.id}/restart`, { method: "POST" });
    await this.open();
    this.restarting = false;
    this.lost(`The kernel was restarted. ${KEPT}`, false);
    return this;
  }

  stop() {
    this.close();
    ask(this.server, `api/kernels/${this.id}`, { method: "DELETE", keepalive: true }).catch(() => {});
  }
}

export const ask = async (server, path, options = {}) => {
  const headers = { Authorization: `token ${server.token}` };
  let answer;
  try {
    answer = await fetch(new URL(path, server.address), { ...options, headers, cache: "no-store" });
  } catch {
    throw new Refusal(NOWHERE);
  }
  if ([401, 403].includes(answer.status)) throw new Refusal(REFUSED);
  // A site without a server may answer anything, its page of unknown addresses included.
  if (answer.status === 204) return null;
  if (!answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Refusal(NOWHERE);
  const content = await answer.json();
  if (!answer.ok) throw new Refusal(`The server could not do it: ${content.message}`);
  return content;
};

// -- Servers ---------------------------------------------------------------------------

// The server that also serves this page. Its key comes in the fragment of the address
// that `make live` prints, which no server sees, and is kept for the next pages. It is
// looked up anew for each kernel: the server may have been started again meanwhile, and
// its address opened in another tab.
let brought = "";
export const here = () => {
  const key = new URLSearchParams(location.hash.slice(1)).get("token");
  if (key) {
    brought = key;
    store("live-token", key);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const root = new URL(document.documentElement.dataset.content_root, location);
  return { address: new URL("jupyter/", root), token: recall("live-token") ?? brought };
};

export const binder = (build, say) =>
  new Promise((resolve, reject) => {
    say(TRIES);
    const events = new EventSource(build);
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
