// How the search orders what it finds: as Sphinx does, and chapters before the pages of
// the reference that are as good a match.
var Scorer = {
  score: ([page, , , , score]) => score + (/^chapters\/\d/.test(page) ? 1 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
