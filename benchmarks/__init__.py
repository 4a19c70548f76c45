"""Costs of the functions of ``lib``, beside another way and the machine's limit.

``make bench`` measures every row and writes ``results.json``, which the book renders.
One file per module of ``lib``; its list ``ROWS`` holds the declarations::

    Row(
        name="softmax of 1000 rows of 64",
        ours=lambda: softmax(u),
        peer=lambda: scipy_softmax(u, axis=-1),
        peer_name="scipy.special.softmax",
        reference=lambda: exact_softmax(u),
        limit={"exp": u.size, "bytes": 2 * u.nbytes},
    )

and ``Growth(name, sizes, run, expected)`` for the exponent of a cost. Rows that lose
stay in, with a ``reason``. A row whose peer comes in a package that may be absent names
it in ``needs``; without the package the row says so.
"""
