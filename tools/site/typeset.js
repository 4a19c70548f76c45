// Formulas without a page: TeX in, the markup of MathJax's CHTML output out, with the
// MathML that a screen reader is given. Run after the parts that typeset.py names.
// What a page of the book does not keep is not known here: definitions in a formula
// (they would reach the formulas after it), links, handlers.
const PACKAGES = [
  "base", "ams", "amscd", "bbox", "boldsymbol", "braket", "cancel", "color",
  "configmacros", "enclose", "extpfeil",
];

// What only an XML file or MathJax itself would read.
const UNUSED = / (?:xmlns|data-mjx-[\w-]+|texclass)="[^"]*"/g;

const typesetter = ({ tex = {}, chtml = {} }, fontURL) => {
  const { input, output, adaptors, handlers, a11y, mathjax } = MathJax._;
  const adaptor = adaptors.liteAdaptor.liteAdaptor();
  a11y["assistive-mml"].AssistiveMmlHandler(handlers.html_ts.RegisterHTMLHandler(adaptor));
  const refuse = (_, error) => {
    throw error;
  };
  const reader = new input.tex_ts.TeX({ ...tex, packages: PACKAGES, formatError: refuse });
  const font = new output.chtml.fonts.tex_ts.TeXFont({ fontURL });
  const writer = new output.chtml_ts.CHTML({ ...chtml, font, adaptiveCSS: false });
  const page = mathjax.mathjax.document("", { InputJax: reader, OutputJax: writer });

  const one = ([text, display]) => {
    reader.reset(); // no number and no label of another formula
    const made = page.convert(text, { display });
    const [unknown] = adaptor.tags(made, "mjx-utext");
    if (unknown) throw new Error(`its fonts have no ${adaptor.textContent(unknown)}`);
    adaptor.removeAttribute(made, "style"); // it stands in the style sheet
    adaptor.setAttribute(made, "tabindex", "0"); // its letters are explained on focus
    const [spoken] = adaptor.tags(made, "mjx-assistive-mml");
    adaptor.removeAttribute(spoken, "unselectable"); // so does this
    return adaptor.outerHTML(made).replace(UNUSED, "");
  };

  return {
    // A list of the markup, or of why there is none, for each formula of a list.
    set: (formulas) => formulas.map((formula) => {
      try {
        return { markup: one(formula) };
      } catch (error) {
        return { refused: error.message };
      }
    }),
    // All rules; those for letters that no page has are left out when a site is
    // finished. In a page MathJax measures the letters around each formula and writes
    // the size beside it: the height of an x is that of the text.
    styles: () => `${adaptor.textContent(writer.styleSheet(page)).replace(/\/\*.*?\*\//g, "")}
mjx-container { position: relative; font-size: calc(1ex / ${writer.font.params.x_height}); }
`,
  };
};
