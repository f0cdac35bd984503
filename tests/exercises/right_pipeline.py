"""Other right answers than the reference solutions, and designs that are worth a part."""

from __future__ import annotations

_DESIGN = '''
def design(p, m):
    rows = []
    for r in range(p):
        f = i = w = 0
        row = []
        while w < m:
            if i - w > {held} or (i == m and f == m):
                row.append(f"W{{r}}.{{w}}"); w += 1
            elif f < m and f - i < p - r:
                row.append(f"F{{r}}.{{f}}"); f += 1
            else:
                row.append(f"I{{r}}.{{i}}"); i += 1
        rows.append(row)
    return {end}
'''

_GREEDY = '''
def design(p, m):
    done = {kind: [0] * p for kind in "FIW"}
    rows = [[] for _ in range(p)]
    while min(done["W"]) < m:
        before = {kind: list(count) for kind, count in done.items()}
        for r in range(p):
            f, i, w = (before[kind][r] for kind in "FIW")
            if i < min(f, f if r == p - 1 else before["I"][r + 1]):
                kind = "I"
            elif f < min(m, m if r == 0 else before["F"][r - 1]) and f - w < p:
                kind = "F"
            elif w < i:
                kind = "W"
            else:
                continue
            rows[r].append(f"{kind}{r}.{done[kind][r]}")
            done[kind][r] += 1
    return rows
'''

_PLAIN = '''
def design(p, m):
    rows = []
    for r in range(p):
        k = min(p - 1 - r, m)
        row = [f"F{{r}}.{{i}}" for i in range(k)]
        for i in range(m):
            row += [f"F{{r}}.{{k + i}}"] * (k + i < m)
            row += [f"I{{r}}.{{i}}", f"W{{r}}.{{i}}"] if {split} else [f"B{{r}}.{{i}}"]
        rows.append(row)
    return rows
'''

RIGHT: dict[str, dict[str, str]] = {
    "pipeline/warmup": {
        "step by step": "def warmup_forwards(p, m, v, r):\n"
                        "    n = 0\n"
                        "    for chunk in range(v - 1): n += p\n"
                        "    for hop in range(r, p - 1): n += 2\n"
                        "    return n if n < m * v else m * v",
        "as a float": "def warmup_forwards(p, m, v, r):\n"
                      "    return float(min(p * (v + 1) - 2 * r - 2, m * v))",
    },
    "pipeline/zb_bubble": {
        "step less work": "def zb_h1_idle(p, m, F, I, W):\n"
                          "    step = (p - 1) * F + m * (F + I + W) + (p - 1) * I - (p - 1) * W\n"
                          "    return step - m * (F + I + W)",
    },
    "pipeline/bpipe": {
        "tuples": "def bpipe_pairs(p):\n"
                  "    cap = -(-(p + 2) // 2)\n"
                  "    return tuple((x, p - 1 - x, p - x - cap) for x in range(p - cap))",
        "numpy": "import numpy as np\n"
                 "def bpipe_pairs(p):\n"
                 "    x = np.arange(max(0, p - int(np.ceil((p + 2) / 2))))\n"
                 "    rows = np.stack([x, p - 1 - x, p - x - int(np.ceil((p + 2) / 2))], axis=1)\n"
                 "    return rows if len(x) else []",
    },
    "pipeline/versions": {
        "walks along 1F1B": "def weight_versions(p, m, s):\n"
                            "    used, done, flying = [], 0, 0\n"
                            "    while len(used) < m:\n"
                            "        if flying == p - s:\n"
                            "            done, flying = done + 1, flying - 1\n"
                            "        used.append(done); flying += 1\n"
                            "    return used",
    },
    "pipeline/two_bw": {
        "two buffers": "def train_2bw(w, lr, batches):\n"
                       "    old, out = w, []\n"
                       "    for xs in batches:\n"
                       "        old, w = w, w - lr * (old - sum(xs) / len(xs))\n"
                       "        out.append(w)\n"
                       "    return out",
    },
    "pipeline/choose": {
        "closed formulas": '''
def choose(p, batch, c, limit):
    best = None
    for m in [m for m in range(1, batch + 1) if batch % m == 0]:
        b = batch / m
        options = [((m + p - 1) * (2 * c + 3 * b), "1f1b", min(p, m) * b),
                   ((3 * m + 2 * (p - 1) - min(m, p) + 1) * (c + b), "zb_h1", min(p, m) * b)]
        if m % p == 0:
            options.append(((4 * m + p - 1) * (2 * c + .75 * b), "interleaved_1f1b",
                            min(5 * p - 1, 4 * m) * b / 4))
        for time, name, kept in options:
            if kept <= limit and (best is None or time < best[0]):
                best = time, name, m
    return list(best[1:])
''',
    },
    "pipeline/design": {
        "another rule": _DESIGN.format(held="r", end="rows"),
        "tuples": _DESIGN.format(held="r", end="tuple(map(tuple, rows))"),
    },
}

PARTLY: dict[int, dict[str, str]] = {
    0: {"1F1B": _PLAIN.format(split="False")},
    2: {"split on the last rank": _PLAIN.format(split="r == p - 1")},
    4: {"greedy": _GREEDY, "split everywhere": _PLAIN.format(split="True")},
}
