"""Write one kind of result in the format of the option -o."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gitsched.cli import formats, output
from gitsched.report.blocks import blocks_to_markdown
from gitsched.report.serialized_simulation import serialize_simulated_source

if TYPE_CHECKING:
    from gitsched.model.simulation import SimulatedSource
    from gitsched.report.blocks import Block

T = TypeVar("T")
JSON_SHOWN = 2_000_000
"""The number of characters of JSON up to which a page contains it; more is left to -o json."""


class ResultWriter(Generic[T]):
    """Writes one kind of result in one format. `write` makes the text, in which a bug may show, and `show` prints it.

    With a `file_name`, a page has links that save its tables as CSV and the data as JSON under this name. Pages, CSV and JSON show the
    source commit of a result, if it is given.
    """

    def __init__(
        self,
        form: str,
        title: str,
        text: Callable[[T, int], str],
        blocks: Callable[[T], list[Block]],
        data: Callable[[T], dict[str, Any]],
        file_name: str = "",
    ) -> None:
        self._file_name = file_name
        self._form, self._title, self._text, self._blocks, self._data = form, title, text, blocks, data
        self._written = ""
        self._serialized: dict[str, Any] = {}

    def write(self, value: T, source: SimulatedSource | None = None) -> None:
        if self._form == "text":
            self._written = self._text(value, output.find_width())
        elif self._form == "markdown":
            self._written = blocks_to_markdown(self._blocks(value))
        elif self._form == "html":
            self._written = self._write_html(value, source)
        else:
            self._serialized = self._serialize(value, source)

    def _serialize(self, value: T, source: SimulatedSource | None) -> dict[str, Any]:
        data = self._data(value)
        if source is None:
            return data
        return {name: data[name] for name in ("apiVersion", "kind")} | serialize_simulated_source(source) | data

    def _write_html(self, value: T, source: SimulatedSource | None) -> str:
        from gitsched.report.page.blocks import Download, list_csv_files, write_blocks_page  # needs jinja2

        blocks, name = self._blocks(value), self._file_name
        downloads = list_csv_files(name, blocks, source) if name else []
        data = formats.format_json(self._serialize(value, source)) if name else ""
        if 0 < len(data) <= JSON_SHOWN:
            downloads.append(Download(f"{name}.json", "application/json", data, "JSON"))
        return write_blocks_page(self._title, blocks, downloads, source)

    def show(self) -> None:
        if self._form == "html":
            output.show(self._written)
        elif self._form == "markdown":
            formats.show_text(self._written)
        else:
            formats.show_as(self._form, lambda _: self._written, lambda: self._serialized)
