"""What mkdocs calls while it builds the site: it makes pages from the program, and adds the version and the descriptions of pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import api_field_tables
import tool_field_tables  # beside this file, as the next two
from command_pages import list_pages, move_links, write_index, write_page
from mkdocs.structure.files import File, Files

MAX_LENGTH = 155
"""Characters of a description; search engines cut longer ones."""
_ROOT = Path(__file__).parents[1]


def on_config(config: Any) -> Any:
    """Name the version of gitsched that the pages describe."""
    found = re.search(r'__version__ = "(.+)"', (_ROOT / "gitsched" / "__init__.py").read_text("utf-8"))
    version = found[1] if found else ""
    config.extra["version_of_gitsched"] = version
    config.copyright = f"gitsched {version}, Apache License 2.0"
    for section in config.nav:
        for entry in next(iter(section.values())) if isinstance(section, dict) else []:
            if isinstance(entry, dict) and entry.get("Commands") == "cli.md":
                entry["Commands"] = ["cli.md", *({name: f"commands/{name}.md"} for name in list_pages())]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each command."""
    page = (_ROOT / "docs" / "cli.md").read_text("utf-8")
    for name in list_pages():
        files.append(File.generated(config, f"commands/{name}.md", content=write_page(name, page)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add what is made from the program, and take the first sentences of a page as its description."""
    path = page.file.src_uri
    if path == "cli.md":
        markdown = write_index(markdown)
    if path == "api-fields.md":
        markdown += "\n" + api_field_tables.write_tables()
    if path == "delivery-tool-fields.md":
        markdown = tool_field_tables.write_tables(markdown)
    if path.startswith("development/"):
        page.meta.setdefault("search", {"boost": 0.1})  # the pages for users come first
    markdown = move_links(markdown, "../" if path.startswith("commands/") else "")
    page.meta.setdefault("description", describe(markdown))
    return markdown


def describe(markdown: str) -> str:
    """Return the first paragraph of a page as one line of plain text, at most as long as a description."""
    paragraphs = re.split(r"\n\s*\n", re.sub(r"(?s)<!--.*?-->|^```.*?^```", "", markdown, flags=re.MULTILINE))
    text = next((one for one in paragraphs if re.match(r"[A-Za-z`\[*]", one.strip())), "")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", lambda found: found[1] or "", text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1].rpartition(" ")[0] + "…"
