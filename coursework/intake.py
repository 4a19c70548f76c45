"""Take in what was handed in: find the notebook, and put its cells where they belong.

What comes back from students is a file of theirs: renamed, zipped, saved by another
program, with links, without marks. The notebook that is graded is assembled from the
one given out, with the student's answers and the student's own cells in it.
"""

from __future__ import annotations

import copy
import io
import json
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from nbformat import NotebookNode

from coursework import plan

LARGEST = 100 << 20  # bytes of a notebook
LONGEST = 500_000  # characters of a cell
EXTRA = 20 << 20  # bytes of all other files


class Unreadable(ValueError):
    """There is nothing to grade; says why in one sentence."""


def files(folder: Path) -> Iterator[Path]:
    """Regular files of a folder; links are not followed."""
    for path in sorted(folder.iterdir()):
        kind = path.lstat().st_mode
        if stat.S_ISDIR(kind):
            yield from files(path)
        elif stat.S_ISREG(kind):
            yield path


def find(folder: Path, name: str) -> tuple[NotebookNode, list[str]]:
    """The notebook of a set among the files of a folder, and what is odd about it."""
    if folder.is_symlink() or not folder.is_dir():
        raise Unreadable("what was handed in is no folder")
    every = [path for path in files(folder) if "checkpoints" not in path.parent.name]
    links = [p.name for p in folder.rglob("*") if p.is_symlink()]
    notes = [f"{link} is a link and was left out" for link in sorted(links)]
    placed = {str(path.relative_to(folder)): path for path in every}
    notebooks: dict[str, bytes] = {}
    for place, path in placed.items():
        if path.suffix in (".ipynb", ".zip") and path.stat().st_size > LARGEST:
            raise Unreadable(f"{place} has more than {LARGEST >> 20} MB")
        if path.suffix == ".ipynb":
            notebooks[place] = path.read_bytes()
    if not notebooks:
        for place, path in placed.items():
            if path.suffix == ".zip":
                notebooks |= dict(_unzipped(path.read_bytes(), place))
    wanted = f"{name}.ipynb"
    place = wanted if wanted in notebooks else _only(notebooks, name, [*placed, *links])
    if place != wanted:
        notes.append(f"{place} was taken for {wanted}")
    return read(notebooks[place], place), notes


def _only(notebooks: dict[str, bytes], name: str, every: list[str]) -> str:
    named = [p for p in notebooks if PurePosixPath(p).name == f"{name}.ipynb"]
    for chosen in (named, [*notebooks]):
        if len(chosen) == 1:
            return chosen[0]
    listed = ", ".join(sorted(notebooks or every)) or "nothing"
    more = "several notebooks" if notebooks else "no notebook"
    raise Unreadable(f"there is no file {name}.ipynb, but {more}: {listed}"[:500])


def _unzipped(
    content: bytes, place: str, depth: int = 2
) -> Iterator[tuple[str, bytes]]:
    """The notebooks of an archive, also of an archive in it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [m for m in archive.infolist() if "__MACOSX" not in m.filename]
            if sum(m.file_size for m in members) > LARGEST:
                raise Unreadable(f"{place} unpacks to more than {LARGEST >> 20} MB")
            for member in members:
                inner = f"{place}/{member.filename}"
                if member.filename.endswith(".ipynb"):
                    yield inner, archive.read(member)
                elif member.filename.endswith(".zip") and depth > 1:
                    yield from _unzipped(archive.read(member), inner, depth - 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise Unreadable(f"{place} is no archive that can be read: {error}") from None


def read(content: bytes, place: str) -> NotebookNode:
    """A notebook of any version, with its marks as they are; no outputs."""
    try:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = content.decode("utf-16" if wide else "utf-8-sig")
        raw = json.loads(text)
        for cell in raw.get("cells", []):
            cell.pop("attachments", None)
            if "outputs" in cell:
                cell["outputs"] = []
            if not isinstance(cell.get("metadata"), dict):
                cell["metadata"] = {}
        raw["metadata"] = {}
        notebook = nbformat.from_dict(raw)
        if raw.get("nbformat") != 4:
            notebook = nbformat.reads(json.dumps(raw), 4)
        for cell in notebook.cells:
            cell.source = _joined(cell.source)
            if cell.cell_type not in ("code", "markdown", "raw"):
                raise ValueError(f"it has a cell of type {str(cell.cell_type)[:40]}")
        return notebook
    except RecursionError:
        raise Unreadable(f"{place} is not a notebook: nested too deeply") from None
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0][:120]
        raise Unreadable(f"{place} is not a notebook: {said}") from None


def _joined(source: Any) -> str:
    text = source if isinstance(source, str) else "".join(source)
    text.encode("utf-8")  # half a character is an error here, and not later
    return text.replace("\r\n", "\n").replace("\r", "\n")


def assemble(
    handed_in: NotebookNode, given: NotebookNode
) -> tuple[NotebookNode, list[str]]:
    """The notebook to grade, and what a person should know of how it came about."""
    notes: list[str] = []
    marks = {_name(c): c for c in given.cells if _name(c)}
    names = _matched(handed_in.cells, given, notes)
    last = {name: k for k, name in enumerate(names) if name}
    for name in marks:
        times = names.count(name)
        if not times:
            notes.append(f"cell {name} is missing")
        if times > 1:
            notes.append(f"cell {name} stands {times} times, the last counts")
    made: list[NotebookNode] = []
    waiting = list(given.cells)
    for number, (cell, name) in enumerate(zip(handed_in.cells, names, strict=True)):
        if len(cell.source) > LONGEST:
            notes.append(
                f"cell {number + 1} has {len(cell.source)} characters: left out"
            )
            cell = nbformat.v4.new_markdown_cell("(too long)")
        if name is None or last[name] != number:
            made.append(_plain(cell))
            continue
        place = next(k for k, c in enumerate(given.cells) if _name(c) == name)
        # What was deleted before this cell comes back before it.
        for lost in [c for c in given.cells[:place] if c in waiting]:
            waiting.remove(lost)
            if _name(lost) and _name(lost) not in last and _restored(lost):
                made.append(copy.deepcopy(lost))
        if given.cells[place] in waiting:
            waiting.remove(given.cells[place])
        made.append(_in_place(cell, given.cells[place], notes))
    for lost in waiting:
        if _name(lost) and _name(lost) not in last and _restored(lost):
            made.append(copy.deepcopy(lost))
    whole = copy.deepcopy(given)
    whole.cells = made
    for number, cell in enumerate(whole.cells):
        cell.id = f"cell-{number}"
    return whole, list(dict.fromkeys(notes))


def _restored(cell: NotebookNode) -> bool:
    """Tell whether a cell that is missing is put back: an answer may be elsewhere."""
    mark = cell.metadata.get("nbgrader", {})
    return bool(mark.get("locked") or mark.get("grade"))


def _name(cell: NotebookNode) -> str | None:
    mark = cell.metadata.get("nbgrader")
    name = mark.get("grade_id") if isinstance(mark, dict) else None
    return name if isinstance(name, str) else None


def _plain(cell: NotebookNode) -> NotebookNode:
    kinds = {"code": nbformat.v4.new_code_cell, "raw": nbformat.v4.new_raw_cell}
    make = kinds.get(cell.cell_type, nbformat.v4.new_markdown_cell)
    return make(cell.source)


def _in_place(
    cell: NotebookNode, given: NotebookNode, notes: list[str]
) -> NotebookNode:
    """A cell as it is given, with the student's text where it is an answer."""
    whole, mark = copy.deepcopy(given), given.metadata.nbgrader
    if not mark.solution:
        if cell.source.strip() != given.source.strip():
            notes.append(f"cell {mark.grade_id} was edited and is graded as given")
    elif cell.cell_type != given.cell_type and given.cell_type == "code":
        notes.append(f"cell {mark.grade_id} was made a {cell.cell_type} cell")
        whole.source = ""
    else:
        whole.source = cell.source
    return whole


def _matched(
    cells: list[NotebookNode], given: NotebookNode, notes: list[str]
) -> list[str | None]:
    """For each cell handed in the name of the given one that it is, by its mark.

    Cells that lost their marks are known by their id, a check or a locked cell by its
    text, an answer by the names it defines, the open problem by its place.
    """
    known = {_name(c): c for c in given.cells if _name(c)}
    names = [_name(cell) for cell in cells]
    for name in sorted({x for x in names if x and x not in known}):
        notes.append(f"cell {name} does not belong to this set"[:200])
    names = [name if name in known else None for name in names]
    lost = known.keys() - set(names)
    if not lost:
        return names
    ids = {c.get("id"): _name(c) for c in given.cells if _name(c) in lost}
    texts: dict[str, list[str]] = {}  # several checks may look the same
    for name in (n for n in known if n in lost):
        texts.setdefault(known[name].source.strip(), []).append(name)
    defined = {n: set(_defined(known[n])) for n in lost}
    mended = []
    for number, cell in enumerate(cells):
        if names[number] is not None:
            continue
        own = _defined(cell)
        by_names = [n for n in defined if defined[n] and defined[n] <= set(own)]
        solutions = [n for n in by_names if known[n].metadata.nbgrader.solution]
        alike = texts.get(cell.source.strip(), [])
        name = ids.get(cell.get("id")) or next(iter([*alike, *solutions]), None)
        if name in alike:
            alike.remove(name)
        if name in lost and known[name].cell_type == cell.cell_type:
            names[number] = name
            mended.append(name)
    names = _open(cells, names, given, mended)
    if mended:
        notes.append(f"{len(set(mended))} cells without their marks were recognized")
    return names


def _open(
    cells: list[NotebookNode],
    names: list[str | None],
    given: NotebookNode,
    mended: list[str],
) -> list[str | None]:
    """The text of an open problem without its mark: the last text of the notebook."""
    for cell in given.cells:
        name = _name(cell)
        if not name or name in names or cell.cell_type != "markdown":
            continue
        texts = {c.source.strip() for c in given.cells if c.cell_type == "markdown"}
        for number in reversed(range(len(cells))):
            if names[number] or cells[number].source.strip() in texts - {cell.source}:
                continue
            if cells[number].cell_type == "markdown":
                names[number] = name
                mended.append(name)
                break
    return names


def _defined(cell: NotebookNode) -> list[str]:
    if cell.cell_type != "code":
        return []
    try:
        return plan.defined(cell.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def collect(source: Path, target: Path, notebook: NotebookNode, name: str) -> list[str]:
    """Write a notebook and the other files that were handed in into a fresh folder."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / f"{name}.ipynb").write_text(nbformat.writes(notebook) + "\n", "utf-8")
    others = [p for p in source.iterdir() if p in set(files(source))]
    kept = [p for p in others if p.suffix not in (".ipynb", ".zip")]
    if sum(p.stat().st_size for p in kept) > EXTRA:
        return [f"other files were left out: more than {EXTRA >> 20} MB"]
    for path in kept:
        shutil.copyfile(path, target / path.name)
    return []
