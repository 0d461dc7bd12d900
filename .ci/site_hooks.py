"""What mkdocs calls while it builds the site: the version in the footer, and a description of each page for search engines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tool_field_tables import write_tables  # beside this file

MAX_LENGTH = 155
"""Characters of a description; search engines cut longer ones."""
_ROOT = Path(__file__).parents[1]


def on_config(config: Any) -> Any:
    """Name the version of gitsched that the pages describe."""
    found = re.search(r'__version__ = "(.+)"', (_ROOT / "gitsched" / "__init__.py").read_text("utf-8"))
    version = found[1] if found else ""
    config.extra["version_of_gitsched"] = version
    config.copyright = f"gitsched {version}, Apache License 2.0"
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add the tables that are made from the program, and take the first sentences of a page as its description."""
    if page.file.src_uri == "delivery-tool-fields.md":
        markdown = write_tables(markdown)
    page.meta.setdefault("description", describe(markdown))
    return markdown


def describe(markdown: str) -> str:
    """Return the first paragraph of a page as one line of plain text, at most as long as a description."""
    paragraphs = re.split(r"\n\s*\n", re.sub(r"(?s)<!--.*?-->|^```.*?^```", "", markdown, flags=re.MULTILINE))
    text = next((one for one in paragraphs if re.match(r"[A-Za-z`\[*]", one.strip())), "")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", lambda found: found[1] or "", text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1].rpartition(" ")[0] + "…"
