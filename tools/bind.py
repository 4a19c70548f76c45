"""Printed pages bound into one document: places, links between pages, bookmarks."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag

from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    Fit,
    FloatObject,
    NameObject,
    NullObject,
    TextStringObject,
)

from tools.command import PipelineError

Place = tuple[int, Any, Any]  # sheet of the document, left, top
Places = dict[str, dict[str, Place]]  # address of a page: {anchor: place}


@dataclass(frozen=True)
class Heading:
    """A heading of a page: 1 its title, 2 a section."""

    level: int
    text: str
    id: str


@dataclass(frozen=True)
class Page:
    """A page of the site and the headings on it."""

    address: str
    part: str
    headings: tuple[Heading, ...]

    @property
    def title(self) -> str:
        return self.headings[0].text


def places_of(reader: PdfReader, start: int) -> dict[str, Place]:
    """Locate the anchors of a printed page that ``start`` sheets precede."""
    places: dict[str, Place] = {"": (start, None, None)}
    for name, goal in reader.named_destinations.items():
        number = reader.get_destination_page_number(goal)
        if number is not None and number >= 0:
            places[unquote(name.lstrip("/"))] = (start + number, goal.left, goal.top)
    return places


def all_places(
    pages: Sequence[Page], prints: Sequence[PdfReader], start: int
) -> Places:
    """The places of all pages, the first of which ``start`` sheets precede."""
    places = {}
    for page, reader in zip(pages, prints, strict=True):
        places[page.address] = places_of(reader, start)
        for entry in page.headings:
            if entry.id not in places[page.address]:
                raise PipelineError(f"{page.address}: no heading {entry.id!r} in print")
        start += len(reader.pages)
    return places


def destination(writer: PdfWriter, place: Place) -> ArrayObject:
    """A place in the form that links and bookmarks have."""
    number, *corner = place
    sheet = writer.pages[number]
    at = [NullObject() if x is None else FloatObject(x) for x in corner]
    return ArrayObject(
        [sheet.indirect_reference, NameObject("/XYZ"), *at, NullObject()]
    )


def relink(writer: PdfWriter, sheet: Any, site: str, here: str, places: Places) -> None:
    """Lead the links of one sheet to places of the document, or drop them.

    ``places`` gives the places of each page of the site by its address.
    """
    kept = ArrayObject()
    for annotation in sheet.get("/Annots", ()):
        link = annotation.get_object()
        if "/Dest" in link:
            address, anchor = here, str(link["/Dest"]).lstrip("/")
        else:
            uri = link["/A"]["/URI"]
            if not uri.startswith(site):
                kept.append(annotation)
                continue
            address, anchor = urldefrag(uri.removeprefix(site))
        place = places.get(address, {}).get(unquote(anchor))
        if place is not None:
            link.pop("/A", None)
            link[NameObject("/Dest")] = destination(writer, place)
            kept.append(annotation)
    sheet[NameObject("/Annots")] = kept


def add_outline(
    writer: PdfWriter, pages: Sequence[Page], places: Places, front: int
) -> None:
    """Bookmarks: contents and pages, and under each its sections, folded."""
    writer.add_outline_item(title="Contents", page_number=front)
    for page in pages:
        number, *_ = places[page.address][""]
        top = writer.add_outline_item(
            title=page.title, page_number=number, is_open=False
        )
        for entry in page.headings[1:]:
            number, left, height = places[page.address][entry.id]
            fit = Fit.xyz(left, height)
            writer.add_outline_item(
                title=entry.text, page_number=number, parent=top, fit=fit
            )


def bound(
    pages: Sequence[Page],
    prints: Sequence[PdfReader],
    places: Places,
    site: str,
    meta: dict[str, str],
) -> bytes:
    """One document of the prints: title page, contents, and the pages."""
    writer = PdfWriter()
    owners = [pages[0].address] * 2 + [page.address for page in pages]
    for reader in prints:
        for sheet in reader.pages:
            writer.add_page(sheet)
    sheets = iter(writer.pages)
    for address, reader in zip(owners, prints, strict=True):
        for _ in reader.pages:
            relink(writer, next(sheets), site, address, places)
    add_outline(writer, pages, places, len(prints[0].pages))
    writer.add_metadata({f"/{key}": value for key, value in meta.items()})
    root = writer.root_object
    root[NameObject("/Lang")] = TextStringObject("en")
    root[NameObject("/PageMode")] = NameObject("/UseOutlines")
    preferences = DictionaryObject(
        {NameObject("/DisplayDocTitle"): BooleanObject(True)}
    )
    root[NameObject("/ViewerPreferences")] = preferences
    writer.compress_identical_objects()
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()
