"""Every command of the project ends with its work done, or in one sentence.

Only the standard library; what one system alone has is imported where it is used.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
NOT_FOUND = "404"  # the page of the site for an address that has none
LIMIT = 240  # seconds until what needs a few on an idle machine is given up
T = TypeVar("T")


class PipelineError(RuntimeError):
    """Says in one sentence what is wrong, and names the file."""


def run_main(
    main: Callable[[], object],
    kept: str | None = None,
    foreseen: type[Exception] = PipelineError,
) -> None:
    """Call ``main``; exit with one sentence after an error that was ``foreseen``.

    So too after an interruption, where ``kept`` says what that has left intact.
    """
    try:
        sys.exit(main())
    except foreseen as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        if kept is None:
            raise
        sys.exit(f"error: interrupted; {kept}")


def replace(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(part, path)
    except OSError as error:
        raise PipelineError(
            f"{path} was not written ({error.strerror}); what was there still is"
        ) from None
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def exclusive(folder: Path, what: str) -> Iterator[None]:
    """One process at a time is within it; a second one stops with a sentence."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise PipelineError(f"another {what} is running here; wait for it") from None
    finally:
        os.close(descriptor)


def until(condition: Callable[[], T], stopped: Callable[[], bool] = lambda: False) -> T:
    """The value of a condition once it is true; else its last, at the limit.

    What can no longer come true because something has ``stopped`` is not waited for.
    """
    end = time.monotonic() + LIMIT
    while True:
        over = stopped() or time.monotonic() > end
        if (value := condition()) or over:
            return value
        time.sleep(0.1)


def today() -> str:
    """The date, for the records of a run."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def children_seconds() -> float:
    """CPU seconds of the processes that were started here and have ended."""
    import resource

    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
