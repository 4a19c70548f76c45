// Pictures with their softmax weights as bars, and a polynomial in the scores as lines.
// The kernel `expand` computes both; the radio buttons of the query become pictures.
import { Refused, short } from "./exhibit.mjs";

const DOWN = 0.375; // of the axis lies below 0, as in .exhibit-bar of book.css

const made = (tag, classes, parent, text = "") => {
  const element = document.createElement(tag);
  element.className = classes;
  element.textContent = text;
  parent.append(element);
  return element;
};
const percent = (weight) => {
  const [size, sign] = [100 * Math.abs(weight), weight < 0 ? "−" : ""];
  if (size > 0 && size < 0.001) return sign ? ">−0.001 %" : "<0.001 %";
  if (size > 0 && size < 0.095) return `${sign}${Number(size.toPrecision(1))} %`;
  return `${sign}${size.toFixed(size > 0 && size < 9.95 ? 1 : 0)} %`;
};
const points = (weight) => percent(weight).replace(/%$/, "percentage points");

export default ({ stage, state, values, call }) => {
  const m = state.names.length;
  const figure = stage.closest("figure");
  const choices = figure.querySelectorAll(".exhibit-choice");
  const queries = choices[choices.length - 1];
  queries.classList.add("exhibit-garments");
  stage.append(queries);
  const legend = made("p", "exhibit-legend", stage);
  const columns = [...queries.querySelectorAll("label")].map((label, i) => {
    const column = { label, name: state.names[i] };
    label.replaceChildren(label.querySelector("input"));
    const image = made("img", "dark-light", label); // a name by which the theme adds no paper
    image.src = state.pictures[i];
    image.alt = column.name;
    const box = made("span", "exhibit-bar", label);
    box.setAttribute("aria-hidden", "true");
    column.bar = made("i", "", box);
    column.line = made("b", "", box);
    column.said = made("span", "exhibit-weight", label);
    return column;
  });
  for (const [kind, text] of [["i", "weight"], ["b", "polynomial"]]) {
    made(kind, "", legend);
    made("span", "", legend, text);
  }
  made("u", "", legend);
  made("span", "", legend, `equal weights, ${percent(1 / m)}`);
  const off = made("span", "exhibit-beyond", legend, "▲▼ off the scale");
  const scale = made("span", "exhibit-scale", legend);
  let exact, polynomial, bound;

  const compute = () => {
    const row = Float64Array.from(state.logits.slice(m * values.query, m * (values.query + 1)));
    const expanded = call("expand", { n: 1, m, logits: row, temperature: values.temperature });
    if (!expanded) throw new Refused(`At τ₀ = ${short(values.temperature)} the polynomial leaves the range of numbers.`);
    [exact, polynomial, bound] = [expanded.softmax, expanded[`order${values.order}`], expanded[`bound${values.order}`][0]];
  };
  const draw = () => {
    const top = state.tops.find((each) => Math.max(...exact) <= each) ?? 1;
    const high = (y) => (100 * (Math.min(1, Math.max(-DOWN, y / top)) + DOWN)) / (1 + DOWN);
    stage.style.setProperty("--equal", `${100 - high(1 / m)}%`);
    off.style.visibility = polynomial.some((y) => y > top || y < -DOWN * top) ? "" : "hidden";
    scale.textContent = `scale ${percent(-DOWN * top).replace(/ %$/, "")} to ${percent(top)}`;
    columns.forEach(({ label, bar, line, said, name }, i) => {
      bar.style.bottom = `${high(0)}%`;
      bar.style.height = `${high(exact[i]) - high(0)}%`;
      line.style.bottom = `${high(polynomial[i])}%`;
      const beyond = polynomial[i] / top;
      line.textContent = beyond > 1 ? "▲" : beyond < -DOWN ? "▼" : "";
      line.style.transform = beyond < -DOWN ? "translateY(-11px)" : ""; // clear of the number below
      said.textContent = percent(exact[i]);
      label.title = `${name}: ${percent(exact[i])}, polynomial ${percent(polynomial[i])}`;
      label.classList.toggle("exhibit-chosen", i === values.query);
    });
  };
  return {
    draw,
    changed: compute,
    // Numbers take place: they are there before the exhibit is shown.
    reset() {
      compute();
      draw();
    },
    text() {
      const gaps = exact.map((weight, i) => Math.abs(weight - polynomial[i]));
      const most = exact.indexOf(Math.max(...exact));
      const least = Math.min(...polynomial);
      const negative = least < -5e-4 ? ` The polynomial even gives a weight of ${percent(least)}.` : "";
      return (
        `Query ${state.names[values.query]}, τ₀ = ${short(values.temperature)}: most weight, ${percent(exact[most])}, on ${state.names[most]}.` +
        ` Largest error of order ${values.order}: ${points(Math.max(...gaps))} (proved bound: ${bound > 1 ? "above 100" : points(bound)}).${negative}`
      );
    },
  };
};
