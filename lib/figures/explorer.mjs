// Brings the explorers of a page to life: each range input chooses a frame, and what
// differs in it from the first frame is written into the drawing. The frames were
// computed by the book's Python; nothing is computed here.

// Moves one input through its stops, from when it is first seen until the reader takes
// over; readers who want less motion start it themselves.
const play = (figure, button, input, output, show) => {
  const last = Number(input.max);
  let timer = null;
  let rest = 0; // ticks to stay at the last frame
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
    output.removeAttribute("aria-live");
  };
  const step = () => {
    const now = Number(input.value);
    if (now === last && rest > 0) {
      rest -= 1;
      return;
    }
    input.value = now === last ? 0 : now + 1;
    rest = 10;
    show();
  };
  const start = () => {
    if (timer !== null) return;
    output.setAttribute("aria-live", "off");
    button.textContent = "Pause";
    timer = setInterval(step, 150);
  };
  button.addEventListener("click", () => (timer === null ? start() : stop()));
  input.addEventListener("input", stop);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  let begun = false;
  new IntersectionObserver(([entry]) => {
    if (entry.isIntersecting && !begun) start();
    else if (!entry.isIntersecting) stop();
    begun = begun || entry.isIntersecting;
  }).observe(figure);
};

const mount = (figure) => {
  const { slots, frames, alt, stops } = JSON.parse(
    figure.querySelector('script[type="application/json"]').textContent,
  );
  const drawing = figure.firstElementChild;
  const inputs = [...figure.querySelectorAll('input[type="range"]')];
  const outputs = [...figure.querySelectorAll("output")];
  const elements = slots.map(([mark]) =>
    drawing.querySelector(`[data-slot="${mark}"]`),
  );

  const labels = [...figure.querySelectorAll("label")];

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
    slots.forEach(([, name], i) => {
      const value = frames[index][i];
      if (name === "#text") elements[i].firstChild.data = value;
      else elements[i].setAttribute(name, value);
    });
  };

  inputs.forEach((input) => input.addEventListener("input", show));
  const button = figure.querySelector(".explorer-play");
  if (button) play(figure, button, inputs[0], outputs[0], show);
  figure.querySelector(".explorer-controls").hidden = false;
  show(); // a reload may have kept the sliders where they were
};

const mountAll = (place) => place.querySelectorAll(".book-explorer").forEach(mount);
mountAll(document);
// A live page says where new output stands.
document.addEventListener("book:output", (event) => mountAll(event.target));
