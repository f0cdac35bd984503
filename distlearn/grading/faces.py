"""How a verdict looks: as text for terminals and feedback files, as HTML for notebooks."""

from __future__ import annotations

import textwrap
from html import escape

from distlearn.grading.answer import first_difference
from distlearn.grading.judge import CaseResult, QuestionResult, short
from distlearn.grading.plain import legible

WIDTH = 96
MAX_LINES = 14


def text(result: QuestionResult, *, graded: bool = True) -> str:
    """The verdict in at most 14 lines of at most 96 characters, without colour.

    Parameters
    ----------
    result : QuestionResult
    graded : bool
        Whether it decides about points, or is a learner's look at the visible cases.
    """
    question = result.question
    head = f"{question.id}: {'PASS' if result.ok else 'FAIL'}"
    if result.cases:
        visible = "" if graded else "visible "
        head += f", {result.passed} of {len(result.cases)} {visible}cases pass"
    elif not result.ok:
        head += f" ({result.status})"
    lines = [f"{head}; {result.points} of {question.points} points" if graded else head]
    if result.ok:
        tail = _wrap("note", " ".join(result.notes), 2)
        return "\n".join(legible(line) for line in [*lines, *tail])
    case = result.shown
    tail = _wrap("call", case.call, 3) if case is not None else []
    if case is not None and case.comparable:
        tail += _wrap("part", case.part, 1) + _values(case) + _costliest(case)
    else:
        if result.reason:
            tail += _wrap("got" if case else "why", result.reason, 3)
        if case is not None:
            tail += _wrap("wanted", short(case.wanted, 2 * WIDTH), 1)
    tail += _wrap("hint", result.hint, 3)
    tail += _wrap("note", " ".join(result.notes), 2)
    overview = [f"  {_mark(c):7} {_cut(c.call, WIDTH - 10)}" for c in result.cases]
    if len(overview) + len(tail) >= MAX_LINES:
        overview = []
    return "\n".join(legible(line) for line in [*lines, *overview, *tail][:MAX_LINES])


def html(result: QuestionResult, *, graded: bool = True) -> str:
    """The verdict as one HTML card that follows the notebook's light or dark theme."""
    question, case = result.question, result.shown
    state = "ok" if result.ok else "no"
    visible = "" if graded else "visible "
    count = [f"{result.passed} of {len(result.cases)} {visible}cases pass"] if result.cases else []
    count += [f"{result.points} of {question.points} points"] if graded else []
    parts = [
        f'<div class="dlc dlc-{state}" role="status"><style>{_STYLE}</style>',
        (f'<p class="dlc-h"><b>{"✔ Passes" if result.ok else "✘ Not yet"}</b> '
         f"<code>{escape(question.id)}</code> <span>{' · '.join(count)}</span></p>"),
    ]
    if result.cases and len(result.cases) <= 8:
        items = "".join(
            f'<li><span class="dlc-{_mark(c).strip()}">{_symbol(c)}</span> '
            f"<code>{escape(_cut(c.call, 200))}</code></li>" for c in result.cases)
        parts.append(f'<ul aria-label="cases">{items}</ul>')
    if not result.ok:
        rows = []
        if case is not None:
            rows.append(("call", f"<code>{escape(case.call)}</code>"))
        if case is not None and case.part:
            rows.append(("part", _prose(case.part)))
        if case is not None and case.comparable:
            rows.append(("got", f"<code>{escape(_window(case, got=True))}</code>"))
            rows.append(("wanted", f"<code>{escape(_window(case, got=False))}</code>"))
        else:
            if result.reason:
                rows.append(("got" if case else "why", _prose(result.reason)))
            if case is not None:
                rows.append(("wanted", f"<code>{escape(short(case.wanted, 200))}</code>"))
        if result.hint:
            rows.append(("hint", _prose(result.hint)))
        body = "".join(f'<tr><th scope="row">{name}</th><td>{cell}</td></tr>'
                       for name, cell in rows)
        parts.append(f"<table>{body}</table>")
        if case is not None and case.comparable and (_rows(case) or _numbers(case)):
            from distlearn.plots.difference import difference_svg  # matplotlib comes along

            parts.append(difference_svg(case.got, case.wanted))
        if case is not None and case.listing:
            parts.append(_listing(case))
    parts += [f'<p class="dlc-n">{_prose(note)}</p>' for note in result.notes]
    return legible("".join([*parts, "</div>"]))


def _mark(case: CaseResult) -> str:
    return "pass" if case.ok else "not run" if case.ok is None else "FAIL"


def _symbol(case: CaseResult) -> str:
    return "✔ pass" if case.ok else "… not run" if case.ok is None else "✘ FAIL"


def _prose(sentence: str) -> str:
    """Escape a sentence; what stands between backquotes becomes code."""
    pieces = escape(sentence, quote=False).split("`")
    if len(pieces) % 2 == 0:
        return escape(sentence, quote=False)
    return "".join(f"<code>{x}</code>" if k % 2 else x for k, x in enumerate(pieces))


def _values(case: CaseResult) -> list[str]:
    """Got over wanted, aligned; for lists a window around the first difference, marked."""
    if not _rows(case):
        return [f"  got     {short(case.got, WIDTH)}", f"  wanted  {short(case.wanted, WIDTH)}"]
    got, wanted = [str(x) for x in case.got], [str(x) for x in case.wanted]
    k = first_difference(got, wanted)
    start = max(0, k - 4)
    near = [x for row in (got, wanted) for x in row[start : start + 9]]
    count = 9 if max(map(len, near), default=0) < 9 else 7  # what fits into a line
    columns = range(start, min(max(len(got), len(wanted)), start + count))
    widths = [max(len(row[c]) if c < len(row) else 1 for row in (got, wanted)) for c in columns]

    def line(row: list[str]) -> str:
        cells = [_cut(row[c], 10) if c < len(row) else "-" for c in columns]
        body = " ".join(cell.ljust(min(w, 10)) for cell, w in zip(cells, widths, strict=True))
        after = " …" if columns and columns[-1] + 1 < len(row) else ""
        return ("… " if start else "") + body.rstrip() + after

    at = 2 * bool(start) + sum(min(w, 10) + 1 for w in widths[: k - start])
    if not columns:
        return ["  got     []", "  wanted  []"]
    return [f"  got     {line(got) if got else '[] (empty)'}",
            f"  wanted  {line(wanted) if wanted else '[] (empty)'}",
            f"  {'':8}{' ' * at}^ first difference, at index {k}"]


def _rows(case: CaseResult) -> bool:
    """Whether got and wanted are both one row of items."""
    return all(isinstance(value, list | tuple)
               and not any(isinstance(x, list | tuple) for x in value)
               for value in (case.got, case.wanted))


def _numbers(case: CaseResult) -> bool:
    return all(isinstance(value, int | float) for value in (case.got, case.wanted))


def _costliest(case: CaseResult, shown: int = 2) -> list[str]:
    """The lines of the source that the count comes from, those with most first."""
    rows = sorted((row for row in case.listing if row[2]), key=lambda row: -row[2])[:shown]
    return [f"  {'lines' if k == 0 else '':8}{count:>6,}  {number:>3}: {_cut(text.strip(), 70)}"
            for k, (number, text, count) in enumerate(rows)]


def _listing(case: CaseResult) -> str:
    """The source, with what each line adds to the count: in numbers, and as a bar behind it."""
    most = max((count for *_, count in case.listing), default=0) or 1
    rows = "".join(
        f'<tr><td class="dlc-c">{f"{count:,}" if count else ""}</td><td class="dlc-c">{number}</td>'
        f'<td class="dlc-s" style="background:linear-gradient(90deg,rgba(213,94,0,.32) '
        f'{100 * count // most}%,transparent 0)!important">{escape(line)}</td></tr>'
        for number, line, count in case.listing)
    return (f'<div class="dlc-w"><table class="dlc-l"><thead><tr><th>count</th><th>line</th>'
            f"<th>source</th></tr></thead><tbody>{rows}</tbody></table></div>")


def _window(case: CaseResult, got: bool) -> str:
    value = case.got if got else case.wanted
    return short(value, 160)


def _wrap(name: str, sentence: str, limit: int) -> list[str]:
    if not sentence:
        return []
    lines = textwrap.wrap(sentence, WIDTH - 10, max_lines=limit, placeholder=" …",
                          break_on_hyphens=False)
    return [f"  {name if k == 0 else '':8}{line}" for k, line in enumerate(lines)]


def _cut(value: str, width: int) -> str:
    return value if len(value) <= width else value[: width - 2] + " …"


_STYLE = (
    ".dlc{border:1px solid var(--jp-border-color1,#bdbdbd);border-left-width:5px;border-radius:4px;"
    "padding:.5em .9em;margin:.3em 0;max-width:56em;font-size:14px;line-height:1.45;"
    "color:var(--jp-content-font-color1,inherit);background:var(--jp-layout-color1,transparent)}"
    ".dlc-ok{border-left-color:#009e73}.dlc-no{border-left-color:#d55e00}"
    ".dlc p{margin:.15em 0}.dlc .dlc-h span{opacity:.8;margin-left:.6em}"
    ".dlc ul{list-style:none;margin:.35em 0!important;padding:0!important}"
    ".dlc li{margin:.1em 0;display:flex;gap:.6em}"
    ".dlc li span{flex:0 0 4.5em;font-weight:600}.dlc .dlc-pass{font-weight:400}"
    ".dlc li code{white-space:nowrap!important;overflow:hidden;text-overflow:ellipsis;min-width:0}"
    ".dlc table{border:0;border-collapse:collapse;margin:.3em 0;width:auto;"
    "font-size:inherit}"
    ".dlc tr,.dlc th,.dlc td{background:none!important;border:0;text-align:left!important;"
    "vertical-align:top;padding:.15em .8em .15em 0;white-space:normal;"
    "color:inherit;font-size:inherit}"
    ".dlc code{background:var(--jp-layout-color2,rgba(127,127,127,.15));color:inherit;"
    "padding:0 .25em;border-radius:3px;overflow-wrap:anywhere}"
    ".dlc .dlc-w{overflow-x:auto}.dlc .dlc-l{font-size:13px}"
    ".dlc .dlc-l td,.dlc .dlc-l th{padding:0 .7em 0 0;white-space:pre}"
    ".dlc .dlc-c{text-align:right!important;opacity:.85}.dlc .dlc-s{font-family:monospace}"
    ".dlc svg{max-width:100%;height:auto;display:block;margin:.4em 0}.dlc .dlc-n{opacity:.85}"
)
