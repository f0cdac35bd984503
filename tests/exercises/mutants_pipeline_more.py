"""Wrong answers to pipeline_2 and pipeline_3, each a mistake that people make.

Most are the right answer with one place changed. Every one must fail on the hidden cases;
`test_mutants.py` runs them. Never handed out.
"""

from __future__ import annotations

from distlearn.grading import find

Changes = dict[str, tuple[str, str]]


def _changed(name: str, source: str, changes: Changes) -> dict[str, str]:
    """The wrong answers: one change each, and what any question meets."""
    question = find(name)
    found = {}
    for mistake, (old, new) in changes.items():
        assert source.count(old) == 1, (name, mistake)
        found[mistake] = source.replace(old, new)
    known = {repr(case.args): case.wanted for case in question.cases}
    wrapped = source.replace(f"def {question.function}(", "def right(")
    head = f"def {question.function}(*args):"
    found["printed"] = f"{wrapped}\n{head} print(right(*args))"
    found["text"] = f"{wrapped}\n{head} return str(right(*args))"
    if "dict" not in type(question.cases[0].wanted).__name__:
        found["only the visible cases"] = f"{head} return {known!r}[repr(args)]"
    found["remembers its first answer"] = (
        f"{wrapped}\nfirst = []\n{head}\n    first.append(right(*args))\n    return first[0]")
    return found


_WARMUP = "def warmup_forwards(p, m, v, r): return min((v - 1) * p + 2 * (p - 1 - r), m * v)"
_INTERLEAVED = '''
def order_interleaved(p, m, v, r):
    forwards, backwards = [], []
    for start in range(0, m, p):
        for chunk in range(v):
            for i in range(start, start + p):
                forwards.append(f"F{chunk * p + r}.{i}")
                backwards.append(f"B{(v - 1 - chunk) * p + r}.{i}")
    warmup = min((v - 1) * p + 2 * (p - 1 - r), m * v)
    actions = forwards[:warmup]
    for k, backward in enumerate(backwards):
        actions += forwards[warmup + k : warmup + k + 1]
        actions.append(backward)
    return actions
'''
_FORWARD = "actions += forwards[warmup + k : warmup + k + 1]"
_BACKWARD = "actions.append(backward)"
_ZB = '''
def order_zb_h1(p, m, r):
    warmup = min(p - 1 - r, m)
    actions = [f"F{r}.{i}" for i in range(warmup)]
    for i in range(m):
        if warmup + i < m:
            actions.append(f"F{r}.{warmup + i}")
        actions.append(f"I{r}.{i}")
        if i >= r:
            actions.append(f"W{r}.{i - r}")
    return actions + [f"W{r}.{i}" for i in range(max(0, m - r), m)]
'''
_IDLE = "def zb_h1_idle(p, m, F, I, W): return (p - 1) * (F + I - W)"
_MEMORY = ("def interleaved_bytes(p, m, v, r, model):\n"
           "    return model / (p * v) * min((v - 1) * p + 2 * (p - 1 - r) + 1, m * v)")
_BPIPE = ("def bpipe_pairs(p):\n"
          "    bound = (p + 3) // 2\n"
          "    return [[x, p - 1 - x, p - x - bound] for x in range(p) if p - x > bound]")
_VERSIONS = ("def weight_versions(p, m, s):\n"
             "    return [max(0, i - (p - 1 - s)) for i in range(m)]")
_STASH = ("def weight_bytes(p, s, weights, scheme):\n"
          "    versions = {'pipedream': p - s, 'vertical_sync': p + 0, '2bw': 2, 'flush': 1}\n"
          "    return weights * versions[scheme]")
_TWO_BW = '''
def train_2bw(w, lr, batches):
    versions = [w]
    for t, examples in enumerate(batches):
        read = versions[max(0, t - 1)]
        gradient = sum(read - x for x in examples) / len(examples)
        versions.append(versions[-1] - lr * gradient)
    return versions[1:]
'''
_CHOOSE = '''
def choose(p, batch, c, limit):
    found = []
    for m in [m for m in range(1, batch + 1) if batch % m == 0]:
        b = batch / m
        options = [((m + p - 1) * (2 * c + 3 * b), "1f1b", min(p, m) * b),
                   ((3 * m + 2 * (p - 1) - min(m, p) + 1) * (c + b), "zb_h1", min(m, p) * b)]
        if m % p == 0:
            options.append(((4 * m + p - 1) * (2 * c + .75 * b), "interleaved_1f1b",
                            min(5 * p - 1, 4 * m) * b / 4))
        found += [(time, name, m) for time, name, kept in options if kept <= limit]
    return min(found)[1:]
'''
_DESIGN = '''
def design(p, m):
    rows = []
    for r in range(p):
        warmup, held = p - 1 - r, r
        row = [f"F{r}.{i}" for i in range(warmup)]
        for i in range(m):
            if warmup + i < m:
                row.append(f"F{r}.{warmup + i}")
            row.append(f"I{r}.{i}")
            if i >= held:
                row.append(f"W{r}.{i - held}")
        rows.append(row + [f"W{r}.{i}" for i in range(m - held, m)])
    return rows
'''

MUTANTS: dict[str, dict[str, str]] = {
    "pipeline/warmup": _changed("pipeline/warmup", _WARMUP, {
        "way counted once": ("2 * (p", "1 * (p"),
        "all chunks": ("(v - 1)", "v"),
        "no chunks": ("(v - 1) * p + ", ""),
        "one too many": ("- 1 - r), m", "- 1 - r) + 1, m"),
        "ranks reversed": ("(p - 1 - r)", "r"),
        "no limit": ("min((v - 1) * p + 2 * (p - 1 - r), m * v)",
                     "(v - 1) * p + 2 * (p - 1 - r)"),
        "limit of one chunk": ("m * v", "m"),
        "p - r hops": ("p - 1 - r", "p - r"),
    }),
    "pipeline/interleaved": _changed("pipeline/interleaved", _INTERLEAVED, {
        "backward through chunks forwards": ("(v - 1 - chunk) * p", "chunk * p"),
        "neighbouring stages": ('f"F{chunk * p + r}', 'f"F{r * v + chunk}'),
        "all microbatches in a group": ("range(0, m, p)", "range(0, m, m)"),
        "plain warm-up": ("(v - 1) * p + 2 * (p - 1 - r), m", "p - 1 - r, m"),
        "one forward more": ("warmup = min(", "warmup = 1 + min("),
        "ranks reversed": ("2 * (p - 1 - r)", "2 * r"),
        "backward before forward": (
            f"        {_FORWARD}\n        {_BACKWARD}\n",
            f"        {_BACKWARD}\n        {_FORWARD}\n"),
        "last forwards lost": ("forwards[warmup + k : warmup + k + 1]",
                               "forwards[warmup + k : warmup + k + 1][: k % 7]"),
    }),
    "pipeline/zb_h1": _changed("pipeline/zb_h1", _ZB, {
        "every W at once": ("i >= r:", "i >= 0:"),
        "one held back more": ("i >= r:", "i > r:"),
        "no W at the end": ('[f"W{r}.{i}" for i in range(max(0, m - r), m)]', "[]"),
        "negative start": ("max(0, m - r)", "m - r - 1"),
        "longer warm-up": ("p - 1 - r, m", "p - r, m"),
        "warm-up not limited": ("min(p - 1 - r, m)", "p - 1 - r"),
        "W of this microbatch": ("W{r}.{i - r}", "W{r}.{i}"),
        "still B": ('"I{r}.{i}"', '"B{r}.{i}"'),
    }),
    "pipeline/zb_bubble": _changed("pipeline/zb_bubble", _IDLE, {
        "1F1B": ("F + I - W", "F + I + W"),
        "W fills nothing": ("F + I - W", "F + I"),
        "H2": ("I - W", "I - 2 * W"),
        "p hops": ("(p - 1)", "p"),
        "a third": ("(F + I - W)", "(F + I + W) / 3"),
        "share": ("(F + I - W)", "(F + I - W) / (m * (F + I + W) + (p - 1) * (F + I - W))"),
        "once per microbatch": ("(p - 1)", "m * (p - 1)"),
    }),
    "pipeline/memory": _changed("pipeline/memory", _MEMORY, {
        "thick stages": ("(p * v)", "p"),
        "without the pair's forward": (" + 1, m", ", m"),
        "no limit": ("min((v - 1) * p + 2 * (p - 1 - r) + 1, m * v)",
                     "((v - 1) * p + 2 * (p - 1 - r) + 1)"),
        "plain 1F1B": ("(v - 1) * p + 2 * (p - 1 - r) + 1", "p - r"),
        "ranks reversed": ("(p - 1 - r)", "r"),
        "a count": ("model / (p * v) * ", ""),
        "limit m": ("m * v)", "m)"),
    }),
    "pipeline/bpipe": _changed("pipeline/bpipe", _BPIPE, {
        "rounded down": ("(p + 3) // 2", "(p + 2) // 2"),
        "no slot to swap": ("(p + 3) // 2", "(p + 1) // 2"),
        "not whole": ("(p + 3) // 2", "(p + 2) / 2"),
        "partner p - x": ("p - 1 - x", "p - x"),
        "half a pipeline away": ("p - 1 - x", "(x + p // 2) % p"),
        "the bound itself too": ("> bound", ">= bound"),
        "what is kept": ("p - x - bound]", "p - x]"),
        "from the end": ("range(p)", "reversed(range(p))"),
    }),
    "pipeline/versions": _changed("pipeline/versions", _VERSIONS, {
        "stages reversed": ("(p - 1 - s)", "s"),
        "off by one": ("(p - 1 - s)", "(p - s)"),
        "negative": ("max(0, i - (p - 1 - s))", "i - (p - 1 - s)"),
        "vertical sync": ("(p - 1 - s)", "(p - 1)"),
        "no pipeline": ("i - (p - 1 - s)", "i"),
        "what is missing": ("max(0, i - (p - 1 - s))", "min(i, p - 1 - s)"),
        "no update yet": ("max(0, i - (p - 1 - s))", "0"),
    }),
    "pipeline/stash": _changed("pipeline/stash", _STASH, {
        "without the newest": ("p - s", "p - 1 - s"),
        "stages reversed": ("p - s", "s + 1"),
        "all stages alike": ("p - s", "p"),
        "sync not counted": ("p + 0", "p - s"),
        "2BW needs one": ("'2bw': 2", "'2bw': 1"),
        "2BW grows": ("'2bw': 2", "'2bw': p - s"),
        "flush keeps two": ("'flush': 1", "'flush': 2"),
    }),
    "pipeline/two_bw": _changed("pipeline/two_bw", _TWO_BW, {
        "no delay": ("max(0, t - 1)", "t"),
        "two late": ("max(0, t - 1)", "max(0, t - 2)"),
        "sum": (" / len(examples)", ""),
        "uphill": ("- lr", "+ lr"),
        "from the old weights": ("versions[-1] - lr", "read - lr"),
        "with the first": ("versions[1:]", "versions"),
        "only the last": ("versions[1:]", "versions[-1]"),
    }),
    "pipeline/choose": _changed("pipeline/choose", _CHOOSE, {
        "no limit": ("if kept <= limit", "if kept"),
        "no overhead": ("b = batch / m", "b, c = batch / m, 0"),
        "least memory": ("(time, name, m)", "(kept, name, m)"),
        "splitting costs nothing": ("(c + b), \"zb", "(2 * c / 3 + b), \"zb"),
        "thin stages of 1/4 in memory only of 1F1B": ("min(5 * p - 1, 4 * m)", "min(4 * p, 4 * m)"),
        "never interleaved": ("m % p == 0", "False"),
        "GPipe's memory": ("\"1f1b\", min(p, m)", "\"1f1b\", m"),
        "last m wins": ("min(found)[1:]", "found[-1][1:]"),
        "turned round": ("min(found)[1:]", "min(found)[:0:-1]"),
    }),
    "pipeline/design": _changed("pipeline/design", _DESIGN, {
        "nothing held back": ("warmup, held = p - 1 - r, r", "warmup, held = p - 1 - r, 0"),
        "all held back": ("warmup, held = p - 1 - r, r", "warmup, held = p - 1 - r, m"),
        "ranks reversed": ("p - 1 - r, r", "p - 1 - r, p - 1 - r"),
        "deeper than memory": ("p - 1 - r, r", "min(m, 2 * (p - 1 - r)), r"),
        "shorter warm-up": ("p - 1 - r, r", "max(0, p - 2 - r), r"),
        "hangs": ("p - 1 - r, r", "r, r"),
        "weights lost": ('row + [f"W{r}.{i}" for i in range(m - held, m)]', "row"),
        "one rank less": ("return rows", "return rows[:-1]"),
        "one row": ("return rows", "return sum(rows, [])"),
        "dots lost": ("return rows", "return [[a.replace('.', ',') for a in x] for x in rows]"),
    }),
}
