// The output of a cell: messages of a kernel as elements of the page.

export const element = (tag, classes, text = "") => {
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
export const writer = (place) => {
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
