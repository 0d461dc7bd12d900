"""Pages of the site that are made from the program: one for each command, with its options, exit codes and examples.

docs/cli.md has what `--help` does not say, in a section for each command. On a forge, links lead to these sections; in the site, each of
them begins the page of its command, and links to it lead there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import cleandoc

import click

from gitsched.cli import COMMANDS, cli
from gitsched.cli.help_sections import write_options

TABLE = "<!-- the table of commands -->"
_SECTION = re.compile(r"^## gitsched ([^\n]+)\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(((?:\.\./)*)(?:cli\.md)?#gitsched-([a-z-]+)\)")
_PAGE_IN_HELP = re.compile(r"docs/([\w-]+)\.md")


def list_pages() -> list[str]:
    """Return the names of the commands that have a page."""
    return list(COMMANDS)


def write_index(page: str) -> str:
    """Return docs/cli.md as the site shows it: a table that links the pages of the commands, and no sections of commands."""
    rows = "".join(f"| [`{name}`](commands/{name}.md) | {summary} |\n" for name, summary in COMMANDS.items())
    return _SECTION.sub("", page).replace(TABLE, f"| command | what it does |\n|---|---|\n{rows}")


def write_page(name: str, page: str) -> str:
    """Return the page of a command; `page` is docs/cli.md, whose sections about the command come first."""
    texts = dict(_SECTION.findall(page))
    root = click.Context(cli, info_name="gitsched", help_option_names=["-h", "--help"])
    command = cli.get_command(root, name)
    assert command is not None
    return "\n".join([f"# gitsched {name}\n", *_describe(command, click.Context(command, root, name), texts, "##")])


def move_links(markdown: str, folder: str = "") -> str:
    """Let links to the sections of commands in docs/cli.md lead to their pages; `folder` leads from docs/ to the page with the link."""

    def move(found: re.Match[str]) -> str:
        command = max((name for name in COMMANDS if f"{found[2]}-".startswith(f"{name}-")), key=len, default="")
        anchor = "" if found[2] == command else f"#gitsched-{found[2]}"
        return f"]({found[1]}{folder}commands/{command}.md{anchor})" if command else found[0]

    return _LINK.sub(move, markdown)


def lead_up(markdown: str) -> str:
    """Let links of a page of docs/ lead to the same pages from a directory in it."""
    return re.sub(r"\]\((?!#|https?:)", "](../", markdown)


def _describe(command: click.Command, ctx: click.Context, texts: dict[str, str], heading: str) -> Iterator[str]:
    yield f"{_escape(cleandoc(command.help or ''))}\n"
    path = ctx.command_path.removeprefix("gitsched ")
    if path in texts:
        yield lead_up(texts[path])
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            yield f"{heading} gitsched {path} {name}\n"
            yield from _describe(child, click.Context(child, ctx, name), texts, "")
        return
    usage = " ".join(command.collect_usage_pieces(ctx))
    yield f"```\n{ctx.command_path} {usage}\n```\n"
    formatter = _MarkdownFormatter(heading)
    write_options(command, ctx, formatter)
    yield formatter.getvalue()
    if command.epilog:
        _, _, examples = command.epilog.partition("Examples:\n")
        yield f"{_write_title(heading, 'Examples')}\n\n```console\n{_write_examples(examples)}```\n"


def _write_title(heading: str, title: str) -> str:
    return f"{heading} {title}" if heading else f"**{title}**"


def _write_examples(lines: str) -> str:
    return "".join(f"{line.strip() if line.strip().startswith('#') else f'$ {line.strip()}'}\n" for line in lines.splitlines())


class _MarkdownFormatter(click.HelpFormatter):
    """Writes the sections of a --help as Markdown tables, below headings or, without one, below titles that no table of contents has."""

    def __init__(self, heading: str) -> None:
        super().__init__()
        self.heading = heading

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        first = "code" if name == "Exit codes" else "option"
        self.write(f"{_write_title(self.heading, name)}\n\n| {first} | meaning |\n|---|---|\n")
        yield
        self.write("\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:  # noqa: ARG002 - the parameters of click
        for names, meaning in rows:
            first = ", ".join(f"`{name}`" for name in re.split(r", (?=-)", names))
            self.write(f"| {first} | {_escape(meaning)} |\n")


def _escape(text: str) -> str:
    """Return a text of a help as Markdown; what is in backticks is code there, too."""
    parts = re.split(r"(`[^`]*`)", text.replace("\b\n", ""))
    plain = [part if part.startswith("`") else re.sub(r"([*_\[\]<|])", r"\\\1", part) for part in parts]
    return _PAGE_IN_HELP.sub(lambda found: f"[{found[1]}](../{found[1]}.md)", "".join(plain))
