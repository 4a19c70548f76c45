// Brings the explorers of a page to life: each range input chooses a frame, and what
// differs in it from the first frame is written into the drawing. The frames were
// computed by the book's Python; nothing is computed here.

const mount = (figure) => {
  const { slots, frames, alt, captions, stops } = JSON.parse(
    figure.querySelector('script[type="application/json"]').textContent,
  );
  const drawing = figure.firstElementChild;
  const inputs = [...figure.querySelectorAll('input[type="range"]')];
  const outputs = [...figure.querySelectorAll("output")];
  const elements = slots.map(([mark]) =>
    drawing.querySelector(`[data-slot="${mark}"]`),
  );

  const labels = [...figure.querySelectorAll("label")];
  const caption = figure.querySelector("figcaption");

  const show = () => {
    // Frames are in the order of a product: the last argument moves fastest.
    const index = inputs.reduce(
      (sum, input, i) => sum * stops[i].length + Number(input.value),
      0,
    );
    inputs.forEach((input, i) => {
      const value = stops[i][Number(input.value)];
      outputs[i].textContent = value;
      input.setAttribute("aria-valuetext", value);
    });
    // On paper a sentence says what the drawing was made for.
    figure.dataset.shown = inputs
      .map((_, i) => `${labels[i].textContent} = ${outputs[i].textContent}`)
      .join(", ");
    if (slots.length === 0) drawing.innerHTML = frames[index][0];
    drawing.firstElementChild.setAttribute("aria-label", alt[index]);
    if (captions) caption.textContent = captions[index] ?? "";
    slots.forEach(([, name], i) => {
      const value = frames[index][i];
      if (name === "#text") elements[i].firstChild.data = value;
      else elements[i].setAttribute(name, value);
    });
  };

  inputs.forEach((input) => input.addEventListener("input", show));
  figure.querySelector(".explorer-controls").hidden = false;
  show(); // a reload may have kept the sliders where they were
};

const mountAll = (place) => place.querySelectorAll(".book-explorer").forEach(mount);
mountAll(document);
// A live page says where new output stands.
document.addEventListener("book:output", (event) => mountAll(event.target));
