"""The C preprocessor that teaching sources need: comments, ``#define``, ``#if``, ``#include``.

Tokens keep the line of the source they stand on; what a macro makes stands where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from distlearn.kernels.cuda_c.errors import SourceError

TOKEN = re.compile(
    r"(?P<space>[ \t\r\f\v]+)|(?P<newline>\n)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\")|(?P<char>'(?:\\.|[^'\\\n])+')"
    r"|(?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)|(?P<name>[A-Za-z_$]\w*)"
    r"|(?P<mark>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|::"
    r"|[][(){}.,;:?~!%^&*+=|<>/\#-])|(?P<bad>.)")
COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'",
                     re.DOTALL)
HEADERS = frozenset(
    [
    "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_fp16.h",
    "device_launch_parameters.h", "device_functions.h", "stdio.h", "stdlib.h", "string.h",
    "math.h", "assert.h", "stdint.h", "stddef.h", "stdbool.h", "float.h", "limits.h",
    "time.h", "cstdio", "cstdlib", "cstring", "cmath", "cassert", "cstdint", "cfloat",
    "climits", "ctime", "cstddef", "iostream",
])
PREDEFINED = {
    "__CUDACC__": "1", "NULL": "((void*)0)", "nullptr": "((void*)0)", "true": "1", "false": "0",
    "INT_MAX": "2147483647", "INT_MIN": "(-2147483647-1)", "UINT_MAX": "4294967295u",
    "FLT_MAX": "3.40282347e+38f", "FLT_MIN": "1.17549435e-38f", "FLT_EPSILON": "1.1920929e-07f",
    "DBL_MAX": "1.7976931348623157e+308", "M_PI": "3.14159265358979323846",
    "EXIT_SUCCESS": "0", "EXIT_FAILURE": "1", "RAND_MAX": "2147483647",
    "INFINITY": "__infinity()", "NAN": "__nan()",
}


class Token(NamedTuple):
    """A piece of source text; ``hide`` are the macros that must not expand it again."""

    kind: str
    text: str
    line: int
    spaced: bool = False
    hide: frozenset[str] = frozenset()


class Macro(NamedTuple):
    """``#define``; ``parameters`` is None for an object-like one."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


def tokens_of(text: str, line: int = 1) -> Iterator[Token]:
    """Pieces of a text without comments."""
    spaced = False
    for match in TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "space":
            spaced = True
            continue
        yield Token(kind, match.group(), line, spaced)
        spaced = False
        line += kind == "newline"


def without_comments(text: str, filename: str) -> str:
    """The text with every comment a blank, lines kept.

    Raises
    ------
    SourceError
        A comment that does not end.
    """
    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found[0] in "\"'" else " " + "\n" * found.count("\n")

    text = COMMENT.sub(blank, text)
    strings = re.sub(r"\"(?:\\.|[^\"\\\n])*\"", "", text)
    if "/*" in strings:
        raise SourceError("this comment does not end", filename,
                          text[:text.index("/*")].count("\n") + 1)
    return text


class Preprocessor:
    """Expands one source; ``evaluate`` computes the integer of an ``#if``."""

    def __init__(self, filename: str, evaluate: Callable[[str, int], int]) -> None:
        self.filename, self.evaluate = filename, evaluate
        self.macros: dict[str, Macro] = {
            name: Macro(None, tuple(tokens_of(body))) for name, body in PREDEFINED.items()}

    def error(self, reason: str, line: int) -> SourceError:
        """A `SourceError` of this file."""
        return SourceError(reason, self.filename, line)

    def run(self, text: str) -> list[Token]:
        """All tokens of the text, macros expanded, directives obeyed.

        Raises
        ------
        SourceError
            A directive or macro call that is malformed; a header that is not known.
        """
        text = without_comments(text.replace("\r\n", "\n"), self.filename)
        made: list[Token] = []
        held: list[Token] = []
        conditions: list[tuple[bool, bool, int]] = []  # taking, taken before, line
        for line in self._lines(text):
            if not (line and line[0].text == "#" and line[0].kind == "mark"):
                if all(taking for taking, _, _ in conditions):
                    held += line
                continue
            made += self.expand(held)
            held = []
            if len(line) > 1:
                self._directive(line[1:], conditions)
        if conditions:
            raise self.error("this #if has no #endif", abs(conditions[-1][2]))
        return made + self.expand(held)

    def _lines(self, text: str) -> Iterator[list[Token]]:
        """Logical lines: a backslash at the end joins the next one."""
        number = 1
        for joined in re.findall(r"(?:\\[ \t]*\n|[^\n])*\n|(?:\\[ \t]*\n|[^\n])+$", text):
            whole = re.sub(r"\\[ \t]*\n", " ", joined)
            is_directive = whole.lstrip().startswith("#")
            tokens = []
            source = whole.rstrip("\n") if is_directive else re.sub(r"\\[ \t]*\n", "\n", joined)
            for token in tokens_of(source, number):
                if token.kind == "bad":
                    raise self.error(f"the character {token.text!r} has no place in C",
                                     token.line)
                if token.kind != "newline":
                    tokens.append(token)
            number += joined.count("\n")
            yield tokens

    # ---- directives

    def _directive(self, line: list[Token], conditions: list[tuple[bool, bool, int]]) -> None:
        name, rest, number = line[0].text, line[1:], line[0].line
        above = all(taking for taking, _, _ in conditions)
        if name in ("if", "ifdef", "ifndef"):
            taking = above and self._condition(name, rest, number)
            conditions.append((taking, taking or not above, number))
            return
        if name in ("elif", "else", "endif"):
            if not conditions:
                raise self.error(f"#{name} without #if", number)
            _, before, start = conditions.pop()
            if name != "endif":
                if start < 0:  # the line of an #if whose #else has been
                    raise self.error(f"#{name} after #else", number)
                taking = not before and (name == "else" or self._condition("if", rest, number))
                conditions.append((taking, before or taking, start if name == "elif" else -start))
            return
        if not above:
            return
        if name == "define":
            self._define(rest, number)
        elif name == "undef" and rest:
            self.macros.pop(rest[0].text, None)
        elif name == "include":
            header = "".join(t.text for t in rest).strip("<>\"")
            if header not in HEADERS:
                raise self.error(f"the header {header!r} is not known here; a source is one file, "
                                 "with the CUDA runtime's and C's own headers", number)
        elif name == "error":
            raise self.error("#error " + " ".join(t.text for t in rest), number)
        elif name != "pragma":
            raise self.error(f"#{name} is no directive that is understood here", number)

    def _condition(self, name: str, rest: list[Token], line: int) -> bool:
        if name != "if":
            if not rest:
                raise self.error(f"#{name} needs a name", line)
            return (rest[0].text in self.macros) == (name == "ifdef")
        made, place = [], 0
        while place < len(rest):
            token = rest[place]
            if token.text == "defined":
                names = [t for t in rest[place + 1:place + 4] if t.kind == "name"][:1]
                if not names:
                    raise self.error("defined needs a name", line)
                place += 4 if rest[place + 1].text == "(" else 2
                made.append(Token("number", str(int(names[0].text in self.macros)), line, True))
                continue
            made.append(token)
            place += 1
        text = " ".join("0" if t.kind == "name" else t.text for t in self.expand(made))
        return self.evaluate(text, line) != 0

    def _define(self, rest: list[Token], line: int) -> None:
        if not rest or rest[0].kind != "name":
            raise self.error("#define needs a name", line)
        name, body = rest[0].text, rest[1:]
        parameters: tuple[str, ...] | None = None
        if body and body[0].text == "(" and not body[0].spaced:
            end = next((i for i, t in enumerate(body) if t.text == ")"), None)
            if end is None:
                raise self.error(f"the parameters of macro {name} do not end with )", line)
            parameters = tuple(t.text for t in body[1:end] if t.text != ",")
            body = body[end + 1:]
        self.macros[name] = Macro(parameters, tuple(body))

    # ---- macros

    def expand(self, tokens: list[Token]) -> list[Token]:
        """The tokens with every macro call replaced, again and again."""
        made: list[Token] = []
        work = tokens[::-1]
        while work:
            token = work.pop()
            if token.text == "__LINE__":
                token = token._replace(kind="number", text=str(token.line))
            elif token.text == "__FILE__":
                token = token._replace(kind="string", text=f'"{self.filename}"')
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if macro is None or token.text in token.hide:
                made.append(token)
                continue
            values: dict[str, list[Token]] = {}
            if macro.parameters is not None:
                if not (work and work[-1].text == "("):
                    made.append(token)
                    continue
                values = self._arguments(token, macro.parameters, work)
            body = self._substitute(macro, values, token)
            hide = token.hide | {token.text}
            work += [t._replace(line=token.line, hide=t.hide | hide) for t in reversed(body)]
        return made

    def _arguments(self, token: Token, parameters: tuple[str, ...], work: list[Token]
                   ) -> dict[str, list[Token]]:
        parts: list[list[Token]] = [[]]
        work.pop()  # the opening parenthesis
        depth = 1
        while True:
            if not work:
                raise self.error(f"the arguments of macro {token.text} do not end with )",
                                 token.line)
            part = work.pop()
            if part.kind == "mark":
                depth += (part.text in "([{") - (part.text in ")]}")
            if depth == 0:
                break
            if depth == 1 and part.text == "," and (
                    "..." not in parameters or len(parts) < len(parameters)):
                parts.append([])
            else:
                parts[-1].append(part)
        if parts == [[]] and not parameters:
            parts = []
        names = tuple("__VA_ARGS__" if name == "..." else name for name in parameters)
        if names[-1:] == ("__VA_ARGS__",) and len(parts) == len(names) - 1:
            parts.append([])
        if len(parts) != len(names):
            raise self.error(f"macro {token.text} takes {len(names)} arguments, {len(parts)} "
                             "given", token.line)
        return dict(zip(names, parts, strict=True))

    def _substitute(self, macro: Macro, values: dict[str, list[Token]], call: Token
                    ) -> list[Token]:
        made: list[Token] = []
        body = macro.body
        place = 0
        while place < len(body):
            token = body[place]
            after = body[place + 1].text if place + 1 < len(body) else ""
            if token.text == "#" and after in values:
                text = " ".join(t.text for t in values[after]).replace("\\", "\\\\")
                made.append(Token("string", '"' + text.replace('"', '\\"') + '"', call.line, True))
                place += 2
                continue
            if token.text == "##" and made and place + 1 < len(body):
                right = values.get(after, [body[place + 1]])
                left = made.pop()
                glued = left.text + (right[0].text if right else "")
                made += [t._replace(spaced=left.spaced) for t in tokens_of(glued, call.line)]
                made += right[1:]
                place += 2
                continue
            if token.text in values and token.kind == "name":
                raw = values[token.text]
                made += raw if after == "##" else self.expand(raw)
            else:
                made.append(token)
            place += 1
        return made
