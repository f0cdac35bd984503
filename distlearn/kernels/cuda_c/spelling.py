"""CUDA's spellings as plain C that a C parser reads; what only C++ has is refused by name.

``__global__`` and its like become ``_Alignas(mark)``, which a parser keeps with the declaration;
``f<<<g, b>>>(x)`` becomes ``__launch(f, g, b)(x)``.
"""

from __future__ import annotations

from typing import NoReturn

from distlearn.kernels.cuda_c.errors import SourceError
from distlearn.kernels.cuda_c.preprocess import Token

MARKS = {"__global__": 1, "__device__": 2, "__shared__": 4, "__constant__": 8, "__host__": 16}
DROPPED = frozenset([
    "__forceinline__", "__inline__", "__inline", "inline", "__noinline__", "register",
    "volatile", "__volatile__", "__cdecl",
])
DROPPED_WITH_ARGUMENTS = frozenset(["__launch_bounds__", "__align__", "alignas", "__attribute__"])
RENAMED = {"__restrict__": "restrict", "__restrict": "restrict", "constexpr": "const"}
CASTS = frozenset(["static_cast", "reinterpret_cast", "const_cast"])
TYPE_WORDS = frozenset([
    "float", "double", "int", "unsigned", "long", "short", "char", "bool", "size_t", "half",
])
REFUSED = {
    "template": "templates are C++: write the kernel for one type and size, or use a macro",
    "typename": "templates are C++: write the kernel for one type and size, or use a macro",
    "class": "classes are C++: use a struct and functions",
    "namespace": "namespaces are C++", "using": "'using' is C++: use typedef",
    "auto": "'auto' is C++: name the type", "decltype": "decltype is C++: name the type",
    "new": "'new' is C++: use malloc", "delete": "'delete' is C++: use free",
    "operator": "operators of one's own are C++: write a function",
    "throw": "exceptions are C++", "try": "exceptions are C++",
    "asm": "inline PTX is not modelled", "__asm__": "inline PTX is not modelled",
    "__managed__": "managed memory is not modelled: use cudaMalloc and cudaMemcpy",
    "union": "unions are not modelled", "goto": "goto is not modelled: threads must come together "
    "again at the end of a statement",
}
NAMESPACES = {
    **dict.fromkeys(("nvcuda", "wmma"), "wmma is C++; the Python kernels of distlearn.kernels "
                    "have it"),
    **dict.fromkeys(("cooperative_groups", "cg"), "cooperative groups are C++: use "
                    "__syncthreads() and the warp's functions"),
}
REFUSED_TYPES = {  # where a declaration or a cast names them
    **dict.fromkeys(("half2", "__half2"), "pairs of halves are not modelled: use half"),
    **dict.fromkeys(("__nv_bfloat16", "nv_bfloat16", "__nv_bfloat162"),
                    "bfloat16 is not modelled in C: use half"),
    **{f"{word}{n}": f"{word}{n} is not modelled: vectors are of float, double, int and uint"
       for word in ("char", "uchar", "short", "ushort", "longlong", "ulonglong")
       for n in (1, 2, 3, 4)},
    "cudaTextureObject_t": "textures are not modelled: read arrays",
}


class Speller:
    """Rewrites one list of tokens."""

    def __init__(self, filename: str, tokens: list[Token]) -> None:
        self.filename, self.tokens = filename, tokens

    def refuse(self, reason: str, token: Token) -> NoReturn:
        """The error for a token."""
        raise SourceError(reason, self.filename, token.line)

    def text(self, place: int) -> str:
        """The token at a place, "" past the ends."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def closing(self, place: int) -> int:
        """The place of the bracket that closes the one at ``place``."""
        depth = 0
        for at in range(place, len(self.tokens)):
            token = self.tokens[at]
            if token.kind == "mark":
                depth += (token.text in "([{") - (token.text in ")]}")
                if depth == 0:
                    return at
        return self.refuse(f"this {self.text(place)} is not closed", self.tokens[place])

    def run(self) -> list[Token]:
        """The tokens in plain C."""
        self._brackets()
        while (place := next((i for i, t in enumerate(self.tokens) if t.text in CASTS), -1)) >= 0:
            self._cast(place)
        made: list[Token] = []
        place = depth = 0
        while place < len(self.tokens):
            token = self.tokens[place]
            depth += (token.text == "{") - (token.text == "}")
            place = self._step(place, token, made, depth)
        return made

    def _brackets(self) -> None:
        """Refuse brackets that do not pair, by the line of the one that is alone."""
        pairs = {")": "(", "]": "[", "}": "{"}
        waiting: list[Token] = []
        for token in self.tokens:
            if token.kind != "mark":
                continue
            if token.text in "([{":
                waiting.append(token)
            elif token.text in pairs:
                if not waiting or waiting[-1].text != pairs[token.text]:
                    opened = f"; the {waiting[-1].text} of line {waiting[-1].line} is open" \
                        if waiting else ""
                    self.refuse(f"this {token.text} closes nothing{opened}", token)
                waiting.pop()
        if waiting:
            self.refuse(f"this {waiting[-1].text} is not closed", waiting[-1])

    def _step(self, place: int, token: Token, made: list[Token], depth: int) -> int:
        """Rewrite what begins at ``place``; gives where to go on."""
        text = token.text
        if token.kind == "name":
            if text == "using" and self.text(place + 1) == "namespace":
                return place + 4
            if text in REFUSED:
                self.refuse(REFUSED[text], token)
            if text in NAMESPACES and self.text(place + 1) == "::":
                self.refuse(NAMESPACES[text], token)
            if text in REFUSED_TYPES and (self.text(place + 1) in ("*", ")", "&", ">") or (
                    self.text(place + 1).isidentifier())):
                self.refuse(REFUSED_TYPES[text], token)
            if text == "extern" and self.text(place + 1) == '"C"':
                if self.text(place + 2) == "{":
                    del self.tokens[self.closing(place + 2)]
                    return place + 3
                return place + 2
            if text in DROPPED:
                return place + 1
            if text in DROPPED_WITH_ARGUMENTS:
                return self.closing(place + 1) + 1
            if text in MARKS:
                self._add(made, token, "_Alignas", "(", str(MARKS[text]), ")")
                return place + 1
            if text in ("struct", "enum") and self.text(place + 2) == "{" and (
                    not made or made[-1].text in (";", "}", "{")):
                name = self.text(place + 1)
                self._add(made, token, "typedef", text, name, name, ";", text)
                return place + 1
            if text == "dim3" or (text in TYPE_WORDS and self.text(place + 1) == "("):
                return self._construct(place, token, made)
            if self.text(place + 1) == "<" and self._is_template_call(place):
                self.refuse(REFUSED["template"], token)
            if self.text(place + 1) == "<<" and self.text(place + 2) == "<":
                return self._launch(place, made)
            made.append(token._replace(text=RENAMED.get(text, text)))
            return place + 1
        if text == "..." and depth and self.text(place - 1) in ("(", ","):
            made.append(token._replace(kind="name", text="__elided"))
            return place + 1
        if text == "::":
            self.refuse("'::' is C++", token)
        if text == "&" and depth == 0 and self.text(place + 2) in (",", ")"):
            self.refuse("references are C++: pass a pointer", token)
        if text == "[" and self.text(place + 1) in ("=", "&", "]") and self.text(
                place - 1) in ("=", "(", ","):
            self.refuse("lambdas are C++: write a function", token)
        made.append(token)
        return place + 1

    def _add(self, made: list[Token], at: Token, *texts: str) -> None:
        made += [Token("name", text, at.line, True) for text in texts]

    def _is_template_call(self, place: int) -> bool:
        """``f<int>(x)`` or ``f<16><<<g, b>>>(x)``: types or numbers in angle brackets."""
        end = place + 2
        while end < len(self.tokens) and (self.tokens[end].kind in ("name", "number")
                                          or self.text(end) in (",", "*")):
            end += 1
        kinds = {t.text for t in self.tokens[place + 2:end]}
        return (self.text(end) == ">" and self.text(end + 1) == "<<" and self.text(
            end + 2) == "<") or (self.text(end) == ">" and bool(kinds & TYPE_WORDS))

    def _cast(self, place: int) -> None:
        """``static_cast<T>(x)`` as ``((T)(x))``."""
        token = self.tokens[place]
        end = next((i for i in range(place + 1, len(self.tokens)) if self.text(i) == ">"), -1)
        if self.text(place + 1) != "<" or end < 0 or self.text(end + 1) != "(":
            self.refuse(f"{token.text} is written {token.text}<type>(value)", token)
        last = self.closing(end + 1)
        mark = token._replace(kind="mark", text="(")
        self.tokens[place:last + 1] = [
            mark, mark, *self.tokens[place + 2:end], mark._replace(text=")"),
            *self.tokens[end + 1:last + 1], mark._replace(text=")")]

    def _construct(self, place: int, token: Token, made: list[Token]) -> int:
        """``dim3 g(4, 4)``, ``dim3(4, 4)`` and ``float(x)``."""
        if token.text != "dim3":
            before = self.text(place - 1)
            if self.text(place + 2) in ("*", ")") or before in TYPE_WORDS or before == "const":
                made.append(token)
                return place + 1
            end = self.closing(place + 1)
            inner = Speller(self.filename, self.tokens[place + 2:end]).run()
            self._add(made, token, "(", "(", token.text, ")", "(")
            made += inner
            self._add(made, token, ")", ")")
            return end + 1
        if self.text(place + 1) == "(":
            made.append(token._replace(text="__dim3"))
            return place + 1
        made.append(token)
        place += 1
        while self.tokens[place].kind == "name":
            made.append(self.tokens[place])
            place += 1
            if self.text(place) == "(":
                end = self.closing(place)
                self._add(made, token, "=", "__dim3")
                made += Speller(self.filename, self.tokens[place:end + 1]).run()
                place = end + 1
            if self.text(place) != "," or self.text(place + 2) not in ("(", ",", ";"):
                break
            made.append(self.tokens[place])
            place += 1
        return place

    def _launch(self, place: int, made: list[Token]) -> int:
        token = self.tokens[place]
        depth, end = 0, place + 3
        while end < len(self.tokens):
            text = self.text(end)
            if depth == 0 and text == ">>" and self.text(end + 1) == ">":
                break
            if text in (";", "{", "}"):
                end = len(self.tokens)
                break
            depth += (text in "([") - (text in ")]") if self.tokens[end].kind == "mark" else 0
            end += 1
        if end >= len(self.tokens):
            self.refuse(f"{token.text}<<< ... has no >>>", token)
        if self.text(end + 2) != "(":
            self.refuse(f"{token.text}<<<...>>> needs its arguments in (...)", token)
        self._add(made, token, "__launch", "(", token.text, ",")
        made += Speller(self.filename, self.tokens[place + 3:end]).run()
        self._add(made, token, ")")
        return end + 2


def render(tokens: list[Token]) -> str:
    """Tokens as text, each on its line, or on that of the one before it if that is further on."""
    lines: dict[int, list[str]] = {}
    last = 0
    for token in tokens:
        last = max(last, token.line)
        lines.setdefault(last, []).append(token.text)
    return "\n".join(" ".join(lines.get(n, ())) for n in range(1, last + 1)) + "\n"
