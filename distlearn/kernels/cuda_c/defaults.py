"""Default arguments: the one thing of C++ in the error checks that most programs are posted with.

``void check(cudaError_t e, int line, bool stop = true)`` becomes a function of three parameters,
and ``check(e, 7)`` the call ``check(e, 7, true)``.
"""

from __future__ import annotations

from distlearn.kernels.cuda_c.preprocess import Token

Known = dict[str, list[list[Token]]]  # of a function, for each parameter: its default's tokens


def without_defaults(tokens: list[Token], known: Known | None = None) -> list[Token]:
    """The tokens with every default argument written out where its function is called."""
    known = {} if known is None else known
    made: list[Token] = []
    place = depth = 0
    while place < len(tokens):
        token = tokens[place]
        depth += _step(token)
        made.append(token)
        place += 1
        if token.kind != "name" or place == len(tokens) or tokens[place].text != "(":
            continue
        parts, end = _arguments(tokens, place)
        defaults = [_default(part) for part in parts]
        if depth == 0 and any(defaults) and end < len(tokens) and tokens[end].text in ("{", ";"):
            known[token.text] = defaults
            parts = [part[:len(part) - len(default) - 1] if default else part
                     for part, default in zip(parts, defaults, strict=True)]
        elif token.text in known:
            given = [without_defaults(part, known) for part in parts if part]
            parts = given + [default for default in known[token.text][len(given):] if default]
        else:
            continue
        last = tokens[end - 1]
        for part in parts:
            made.append(last._replace(text="," if part is not parts[0] else "(",
                                      line=made[-1].line))
            made += [t._replace(line=min(max(t.line, made[-1].line), last.line)) for t in part]
        made.append(last)
        place = end
    return made


def _step(token: Token) -> int:
    return (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))


def _arguments(tokens: list[Token], place: int) -> tuple[list[list[Token]], int]:
    """What stands between commas after the bracket at ``place``, and where it ends."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for at in range(place, len(tokens)):
        token = tokens[at]
        depth += _step(token)
        if depth == 0:
            return parts, at + 1
        if token.text == "," and depth == 1:
            parts.append([])
        elif at > place:
            parts[-1].append(token)
    return [[]], place  # never closed: another's error


def _default(part: list[Token]) -> list[Token]:
    """What follows the ``=`` of a parameter."""
    texts = [token.text for token in part]
    return part[texts.index("=") + 1:] if "=" in texts else []
