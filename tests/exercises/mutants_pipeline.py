"""Wrong answers to the pipeline exercises, each a mistake that people make.

Every one must fail on the hidden cases; `test_mutants.py` runs them. Never handed out.
"""

from __future__ import annotations

_ORDER = '''
def order_1f1b(p, m, r):
    warmup = {warmup}
    actions = [f"F{stage}.{{i{first}}}" for i in range(warmup)]
    for i in range(m):
        if warmup + i < m:
            actions.append(f"F{stage}.{{warmup + i{first}}}")
        actions.append(f"B{stage}.{{i{first}}}")
    return actions{end}
'''


def _order(warmup: str = "min(p - 1 - r, m)", stage: str = "{r}", first: str = "",
           end: str = "") -> str:
    return _ORDER.format(warmup=warmup, stage=stage, first=first, end=end)


_PEAK = '''
def peak_activations(actions):
    kept = peak = 0
    for action in actions:
        {body}
    return peak
'''


def _peak(*body: str) -> str:
    return _PEAK.format(body="\n        ".join(body))


_STUCK = '''
def stuck_actions(ranks):
    last = len(ranks) - 1
    def needs(action):
        kind, (s, i) = action[0], map(int, action[1:].split("."))
        if kind == "F":
            return {forward}
        return {backward}
    done, position = set(), [0] * len(ranks)
    {loop}
        for r, row in {order}:
            {step} position[r] < len(row) and all(x in done for x in needs(row[position[r]])):
                done.add(row[position[r]])
                position[r] += 1
    return {result}
'''


def _stuck(
    forward: str = '[f"F{s-1}.{i}"] if s else []',
    backward: str = '[f"F{s}.{i}"] + ([f"B{s+1}.{i}"] if s < last else [])',
    loop: str = "for _ in range(400):",
    order: str = "enumerate(ranks)",
    step: str = "while",
    result: str = "[row[k] for row, k in zip(ranks, position) if k < len(row)]",
) -> str:
    return _STUCK.format(forward=forward, backward=backward, loop=loop, order=order, step=step,
                         result=result)


MUTANTS: dict[str, dict[str, str]] = {
    "pipeline/bubble": {
        "over useful time": "def bubble_fraction(p, m): return (p - 1) / m",
        "denominator off by one": "def bubble_fraction(p, m): return (p - 1) / (m + p)",
        "numerator off by one": "def bubble_fraction(p, m): return p / (m + p - 1)",
        "both off by one": "def bubble_fraction(p, m): return p / (m + p)",
        "useful share": "def bubble_fraction(p, m): return m / (m + p - 1)",
        "percent": "def bubble_fraction(p, m): return 100 * (p - 1) / (m + p - 1)",
        "whole division": "def bubble_fraction(p, m): return (p - 1) // (m + p - 1)",
        "rounded": "def bubble_fraction(p, m): return round((p - 1) / (m + p - 1), 2)",
        "p and m swapped": "def bubble_fraction(m, p): return (p - 1) / (m + p - 1)",
        "twice the ramp": "def bubble_fraction(p, m): return 2 * (p - 1) / (m + 2 * (p - 1))",
        "time, not share": "def bubble_fraction(p, m): return 3 * (p - 1)",
        "only the visible cases":
            "def bubble_fraction(p, m): "
            "return {(4, 8): 3 / 11, (2, 2): 1 / 3, (8, 1): 7 / 8, (1, 5): 0.0}[p, m]",
        "text": "def bubble_fraction(p, m): return f'{(p - 1) / (m + p - 1)}'",
        "printed": "def bubble_fraction(p, m): print((p - 1) / (m + p - 1))",
        "counts its calls":
            "calls = []\n"
            "def bubble_fraction(p, m):\n"
            "    calls.append(1)\n"
            "    return (p - 1) / (m + p - 1) if len(calls) < 6 else 0.5",
        "remembers by p alone":
            "memory = {}\n"
            "def bubble_fraction(p, m):\n"
            "    return memory.setdefault(p, (p - 1) / (m + p - 1))",
    },
    "pipeline/order": {
        "one forward too many": _order(warmup="min(p - r, m)"),
        "one forward too few": _order(warmup="max(0, min(p - 2 - r, m))"),
        "ranks the wrong way round": _order(warmup="min(r, m)"),
        "no limit by m": _order(warmup="p - 1 - r"),
        "GPipe": _order(warmup="m"),
        "no warm-up": _order(warmup="0"),
        "warm-up of rank 0 everywhere": _order(warmup="min(p - 1, m)"),
        "no drain": _order(end="[: 2 * m - warmup]"),
        "microbatches from 1": _order(first=" + 1"),
        "stages from 1": _order(stage="{r + 1}"),
        "stage 0 everywhere": _order(stage="0"),
        "interleaved warm-up": _order(warmup="min(2 * (p - 1 - r), m)"),
        "backward in reverse":
            _order(end="[:warmup] + [a for a in actions[warmup:][::-1]]"),
        "B before F in a pair": '''
def order_1f1b(p, m, r):
    warmup = min(p - r, m)
    actions = [f"F{r}.{i}" for i in range(warmup)]
    for i in range(m):
        actions.append(f"B{r}.{i}")
        if warmup + i < m - 1:
            actions.append(f"F{r}.{warmup + i}")
    return actions
''',
        "tuples": _order(end=" and [(a[0], r, int(a.split('.')[1])) for a in actions]"),
        "one text": _order(end=" and ' '.join(actions)"),
        "a generator": _order(end=" and (a for a in actions)"),
    },
    "pipeline/peak": {
        "I frees": _peak('kept += 1 if action[0] == "F" else -1 if action[0] in "BI" else 0',
                         "peak = max(peak, kept)"),
        "W does not free": _peak('kept += 1 if action[0] == "F" else -1 if action[0] == "B" else 0',
                                 "peak = max(peak, kept)"),
        "I and W both free": _peak('kept += 1 if action[0] == "F" else -1',
                                   "peak = max(peak, kept)"),
        "all forwards": "def peak_activations(actions): return sum(a[0] == 'F' for a in actions)",
        "kept at the end": "def peak_activations(actions):\n"
                           "    return sum(a[0] == 'F' for a in actions)"
                           " - sum(a[0] in 'BW' for a in actions)",
        "before the first backward": "def peak_activations(actions):\n"
                                     "    n = 0\n"
                                     "    for a in actions:\n"
                                     "        if a[0] != 'F': break\n"
                                     "        n += 1\n"
                                     "    return n",
        "largest microbatch": "def peak_activations(actions):\n"
                              "    return max((int(a.split('.')[1]) + 1 for a in actions),"
                              " default=0)",
        "before counting": _peak("peak = max(peak, kept)",
                                 'kept += 1 if action[0] == "F" else -1 if action[0] in "BW" '
                                 "else 0").replace("return peak", "return max(peak - 1, 0)"),
        "empty list fails": "def peak_activations(actions):\n"
                            "    kept, seen = 0, []\n"
                            "    for a in actions:\n"
                            "        kept += (a[0] == 'F') - (a[0] in 'BW')\n"
                            "        seen.append(kept)\n"
                            "    return max(seen)",
        "one-digit microbatches": "def peak_activations(actions):\n"
                                  "    kept, peak = set(), 0\n"
                                  "    for a in actions:\n"
                                  "        if a[0] == 'F': kept.add(a[:4][1:])\n"
                                  "        elif a[0] in 'BW': kept.discard(a[:4][1:])\n"
                                  "        peak = max(peak, len(kept))\n"
                                  "    return peak",
        "by microbatch, whatever the stage":
            "def peak_activations(actions):\n"
            "    kept, peak = set(), 0\n"
            "    for a in actions:\n"
            "        if a[0] == 'F': kept.add(a.split('.')[1])\n"
            "        elif a[0] in 'BW': kept.discard(a.split('.')[1])\n"
            "        peak = max(peak, len(kept))\n"
            "    return peak",
        "list, not number": _peak('kept += 1 if action[0] == "F" else -1 if action[0] in "BW" '
                                  "else 0", "peak = max(peak, kept)").replace(
                                      "return peak", "return [peak]"),
    },
    "pipeline/deadlock": {
        "own forward forgotten": _stuck(backward='[f"B{s+1}.{i}"] if s < last else []'),
        "gradient forgotten": _stuck(backward='[f"F{s}.{i}"]'),
        "input forgotten": _stuck(forward="[]"),
        "gradient from before": _stuck(
            backward='[f"F{s}.{i}"] + ([f"B{s-1}.{i}"] if s else [])'),
        "one round": _stuck(loop="for _ in range(1):"),
        "one round, backwards": _stuck(loop="for _ in range(1):",
                                       order="reversed(list(enumerate(ranks)))"),
        "as many rounds as ranks": _stuck(loop="for _ in ranks:", step="if"),
        "only the first": _stuck(
            result="[row[k] for row, k in zip(ranks, position) if k < len(row)][:1]"),
        "the needed action": _stuck(
            result="[next(x for x in needs(row[k]) if x not in done)"
                   " for row, k in zip(ranks, position) if k < len(row)]"),
        "last action done": _stuck(
            result="[row[k - 1] for row, k in zip(ranks, position) if k < len(row)]"),
        "None if it runs": _stuck(
            result="[row[k] for row, k in zip(ranks, position) if k < len(row)] or None"),
        "always fine": "def stuck_actions(ranks): return []",
        "two ranks only": _stuck().replace("last = len(ranks) - 1", "last = 1"),
        "empties its argument": '''
def stuck_actions(ranks):
    done = set()
    for _ in range(50):
        for row in ranks:
            while row:
                kind, (s, i) = row[0][0], map(int, row[0][1:].split("."))
                need = [f"F{s-1}.{i}"] if kind == "F" and s else []
                if kind == "B" and s < len(ranks) - 1:
                    need = [f"B{s+1}.{i}"]
                if not all(x in done for x in need):
                    break
                done.add(row.pop(0))
    return [row[0] for row in ranks if row]
''',
    },
    "pipeline/interleaving": {
        "upside down": "def interleaving_gain(p, m, v): return (m + (p-1)/v) / (m + p - 1)",
        "v times": "def interleaving_gain(p, m, v): return v",
        "work shrinks too": "def interleaving_gain(p, m, v): return (m+p-1) / (m/v + (p-1)/v)",
        "stages not thinner": "def interleaving_gain(p, m, v): return (m+p-1) / (m*v + p - 1)",
        "off by one": "def interleaving_gain(p, m, v): return (m + p - 1) / (m + p/v - 1)",
        "p for p - 1": "def interleaving_gain(p, m, v): return (m + p) / (m + p / v)",
        "bubble fractions": "def interleaving_gain(p, m, v):\n"
                            "    return 1.0 if p == 1 else v*(m + (p-1)/v)/(m + p - 1)",
        "difference": "def interleaving_gain(p, m, v): return (p - 1) * (1 - 1/v)",
        "on top of one": "def interleaving_gain(p, m, v): return (m+p-1)/(m+(p-1)/v) - 1",
        "whole division": "def interleaving_gain(p, m, v): return (m+p-1) / (m + (p-1)//v)",
        "more ranks instead": "def interleaving_gain(p, m, v): return (m+p-1)/(m + p*v - 1)",
        "rounded": "def interleaving_gain(p, m, v): return round((m+p-1)/(m+(p-1)/v), 3)",
        "m instead of p": "def interleaving_gain(p, m, v): return (m+p-1)/(p - 1 + m/v)",
    },
}
