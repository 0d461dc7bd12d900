"""Match text with a shell pattern: `*`, `?`, character classes and backslashes. Takes time in proportion to pattern times text."""

from __future__ import annotations

from gitsched.named_tuples import NamedTuple


class GlobToken(NamedTuple):
    """One element of a pattern: any text (`star`), or one character in (or, if `negated`, outside of) `ranges`; None is any character."""

    star: bool = False
    ranges: tuple[tuple[str, str], ...] | None = None
    negated: bool = False

    def accepts(self, character: str) -> bool:
        """Return whether one character matches."""
        if self.ranges is None:
            return True
        return any(low <= character <= high for low, high in self.ranges) != self.negated


def parse_glob(pattern: str) -> list[GlobToken] | None:
    """Return the elements of a pattern; None if it is not valid."""
    tokens: list[GlobToken] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "*":
            tokens.append(GlobToken(star=True))
        elif character == "?":
            tokens.append(GlobToken())
        elif character == "[":
            found = _parse_class(pattern, position)
            if found is None:
                return None
            position, token = found
            tokens.append(token)
        elif character == "\\":
            if position == len(pattern):
                return None
            tokens.append(GlobToken(ranges=((pattern[position],) * 2,)))
            position += 1
        else:
            tokens.append(GlobToken(ranges=((character, character),)))
    return tokens


def _parse_class(pattern: str, position: int) -> tuple[int, GlobToken] | None:
    negated = pattern[position : position + 1] == "^"
    position += negated
    ranges: list[tuple[str, str]] = []

    def read() -> str:
        nonlocal position
        character = pattern[position : position + 1]
        if character in ("", "-", "]"):
            return ""
        position += 2 if character == "\\" else 1
        return pattern[position - 1 : position]

    while not (ranges and pattern[position : position + 1] == "]"):
        low = high = read()
        if pattern[position : position + 1] == "-":
            position += 1
            high = read()
        if not low or not high:
            return None
        ranges.append((low, high))
    return position + 1, GlobToken(ranges=tuple(ranges), negated=negated)


def matches_glob(tokens: list[GlobToken] | None, text: str) -> bool:
    """Return whether a pattern matches the whole text; None, of an invalid pattern, matches nothing."""
    if tokens is None:
        return False
    index = position = 0
    star, resumed = -1, 0
    while position < len(text):
        if index < len(tokens) and tokens[index].star:
            star, resumed = index, position
            index += 1
        elif index < len(tokens) and tokens[index].accepts(text[position]):
            index += 1
            position += 1
        elif star >= 0:
            resumed += 1
            index, position = star + 1, resumed
        else:
            return False
    return all(token.star for token in tokens[index:])


def list_matching_lengths(tokens: list[GlobToken], text: str) -> list[int]:
    """Return the lengths of the beginnings of a text that a pattern matches, in ascending order. Reads the text once."""
    steps = [token for index, token in enumerate(tokens) if not (token.star and index and tokens[index - 1].star)]
    stars = sum(1 << index for index, token in enumerate(steps) if token.star)
    accepted: dict[str, int] = {}
    end, state = 1 << len(steps), 1 | (stars & 1) << 1
    found = [0] if state & end else []
    for length, character in enumerate(text, 1):
        if character not in accepted:
            accepted[character] = sum(1 << n for n, token in enumerate(steps) if not token.star and token.accepts(character))
        state = (state & accepted[character]) << 1 | state & stars
        state |= (state & stars) << 1
        if state & end:
            found.append(length)
        if not state:
            break
    return found
