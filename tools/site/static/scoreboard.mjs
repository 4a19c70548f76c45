// The filters of the scoreboard. The address says which claims are shown, as in
// "#?page=4-mean-field-sphere&verdict=refuted", so that a view can be linked; any other
// address shows all of them. Without this script the whole table is there.

const form = document.querySelector(".claim-filters");
const fields = [...form.querySelectorAll("[name]")];
const count = form.querySelector("[role=status]");
const sections = [...document.querySelectorAll("section.claims")];

// The claims print a minus sign and an apostrophe that no keyboard has.
const plain = (text) =>
  text.normalize("NFKC").toLowerCase().replaceAll("−", "-").replaceAll("’", "'");

const rows = sections.flatMap((section) =>
  [...section.querySelectorAll("tbody tr")].map((element) => ({
    element,
    page: section.id.replace("claims-", ""),
    claim: plain(element.cells[1].textContent),
  })),
);

const show = () => {
  const { page, verdict, kind, claim } = Object.fromEntries(
    fields.map((field) => [field.name, field.value]),
  );
  const words = plain(claim).split(/\s+/);
  const matches = (row) =>
    (!page || row.page === page) &&
    (!verdict || row.element.classList.contains(`claim-${verdict}`)) &&
    (!kind || row.element.classList.contains(`kind-${kind}`)) &&
    words.every((word) => row.claim.includes(word));
  rows.forEach((row) => (row.element.hidden = !matches(row)));
  sections.forEach((section) => {
    section.hidden = !section.querySelector("tbody tr:not([hidden])");
  });
  const shown = rows.filter((row) => !row.element.hidden).length;
  count.textContent = `${shown} of ${rows.length} claims shown`;
};

const write = () => {
  const chosen = fields.filter((field) => field.value.trim());
  const query = new URLSearchParams(chosen.map((f) => [f.name, f.value.trim()]));
  const place = location.pathname + location.search;
  history.replaceState(history.state, "", chosen.length ? `${place}#?${query}` : place);
};

const read = () => {
  const filtered = location.hash.startsWith("#?");
  const query = new URLSearchParams(filtered ? location.hash.slice(2) : "");
  fields.forEach((field) => {
    field.value = query.get(field.name) ?? "";
    if (field.selectedIndex === -1) field.value = ""; // an option there is not
  });
  show();
  // What was hidden or is shown now has moved the place that the address names.
  if (filtered) form.scrollIntoView();
  else document.getElementById(location.hash.slice(1))?.scrollIntoView();
};

form.addEventListener("input", () => {
  show();
  write();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.querySelector("button").addEventListener("click", () => {
  fields.forEach((field) => (field.value = ""));
  show();
  write();
});
window.addEventListener("hashchange", read);
form.hidden = false;
read();
