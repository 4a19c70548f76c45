"""The site: what Jupyter Book, Sphinx and their theme are told to make of the book.

``extension`` is the Sphinx extension that _config.yml names; it sets up the others.

- ``outputs``: verdicts and figures on a page, statements and verdicts linked.
- ``directives`` is what the directives share; ``scoreboard``, ``records``, ``running``
  show what was verified, what runs recorded, and how the book is run;
  ``ratio_figure`` draws the benchmarks.
- ``words``: words of the text that set the controls of an exhibit.
- ``head``: what a page tells search engines and who shares its address; ``card`` draws
  the picture of a shared link.
- ``typeset``: formulas, by MathJax in this process and not in the reader's browser.
- ``plain``: the notebooks that people download, in Markdown that every program shows.
- ``finish``: what the theme's finished pages are mended of, with ``bundle`` for their
  style sheets; ``live_page`` makes their live twins. Both edit HTML by ``markup``.

``templates`` and ``static`` hold the templates, the scripts and the styles.
"""
