"""Wrong answers to the ranks exercises, each a mistake that people make.

Every one must fail on the hidden cases; `test_mutants.py` runs them. Never handed out.
"""

from __future__ import annotations

_RING = '''
import numpy as np
{kind} ring_all_reduce(comm, x):
    p, r = comm.size, comm.rank
    right, left = {right}, {left}
    chunks = {cut}
    for k in range({steps}):
        {send}(chunks[(r - 1 - k) % p], right)
        got = {got}
        chunks[got] {add} await comm.recv(left)
        {wait}
    for k in range({again}):
        sending = comm.isend(chunks[({second} - k) % p], right)
        chunks[(r - 1 - k) % p] {put} await comm.recv(left)
        await sending
    return {result}
'''


def _ring(**changed: str) -> str:
    parts = {
        "kind": "async def", "right": "(r + 1) % p", "left": "(r - 1) % p",
        "cut": "np.array_split(x.copy(), p)", "steps": "p - 1", "send": "sending = comm.isend",
        "got": "(r - 2 - k) % p", "add": "+=", "wait": "await sending", "again": "p - 1",
        "second": "r", "put": "=", "result": "np.concatenate(chunks)",
    }
    return _RING.format(**{**parts, **changed})


_HALVES = '''
import numpy as np
async def all_reduce_in_halves(comm, x):
    {body}
'''


def _halves(*body: str) -> str:
    return _HALVES.format(body="\n    ".join(body))


_BYTES = '''
def bytes_sent(algorithm, p, n, itemsize):
    if algorithm == "ring":
        chunks = {chunks}
        return [{ring} * itemsize for r in range(p)]
    arrays = [0] * p
    if algorithm == "star":
        arrays = {star}
    else:
        d = 1
        while d < {top}:
            for r in range(d, p, 2 * d):
                {up}
                {down}
            d *= 2
    return [count * n * itemsize for count in arrays]
'''


def _bytes(**changed: str) -> str:
    parts = {
        "chunks": "[n // p + (c < n % p) for c in range(p)]",
        "ring": "(2 * n - chunks[r] - chunks[(r + 1) % p])", "star": "[p - 1] + [1] * (p - 1)",
        "top": "p", "up": "arrays[r] += 1", "down": "arrays[r - d] += 1",
    }
    return _BYTES.format(**{**parts, **changed})


_CROSS = '''
import math
def crossover_bytes(p, alpha, beta):
    levels = {levels}
    return {result}
'''


def _cross(result: str = "alpha * (p - 1 - levels) / (beta * (levels - (p - 1) / p))",
           levels: str = "math.ceil(math.log2(p))") -> str:
    return _CROSS.format(levels=levels, result=result)


_GROUPS = '''
import numpy as np
async def two_level_all_reduce(comm, x, per_node):
    node = await comm.split({node})
    across = await comm.split({across})
    {body}
'''


def _groups(*body: str, node: str = "comm.rank // per_node", across: str = "comm.rank % per_node",
            ) -> str:
    usual = ("part = await node.reduce_scatter(x)", "part = await across.all_reduce(part)",
             "return await node.all_gather(part)")
    return _GROUPS.format(node=node, across=across, body="\n    ".join(body or usual))


_STEP = '''
import numpy as np
async def training_step(comm, w, x, y, lr):
    {body}
'''


def _step(*body: str) -> str:
    return _STEP.format(body="\n    ".join(body))


def _factors(factor: str, more: str = "") -> str:
    return ("def loss_factors(tokens):\n"
            "    d, total = len(tokens), sum(map(sum, tokens))\n"
            f"    return [[{factor} for n in row] for row in tokens]{more}")


_SCALES = '''
import math
def loss_scales(largest, scale, window):
    used, good = [], 0
    for value in largest:
        {before}
        if {fits}:
            {count}
            if {grows}:
                {grow}
        else:
            {shrink}
        {after}
    return used
'''


def _scales(**changed: str) -> str:
    parts = {
        "before": "used.append(scale)", "fits": "value * scale <= 65504", "count": "good += 1",
        "grows": "good == window", "grow": "scale, good = 2 * scale, 0",
        "shrink": "scale, good = scale / 2, 0", "after": "pass",
    }
    return _SCALES.format(**{**parts, **changed})


MUTANTS: dict[str, dict[str, str]] = {
    "ranks/ring": {
        "all_reduce of the library":
            "async def ring_all_reduce(comm, x):\n    return await comm.all_reduce(x)",
        "all send first": _ring(send="await comm.send", wait="pass"),
        "the wrong chunk is added to": _ring(got="(r - 1 - k) % p"),
        "first phase too short": _ring(steps="p - 2"),
        "first phase too long": _ring(steps="p"),
        "second phase missing": _ring(again="0"),
        "second phase too short": _ring(again="p - 2"),
        "second phase adds": _ring(put="+="),
        "second phase begins elsewhere": _ring(second="r + 1"),
        "first phase does not add": _ring(add="="),
        "send never awaited": _ring(send="sending = comm.send", wait="pass"),
        "chunks cut by whole division":
            _ring(cut="[x[c * (len(x) // p):(c + 1) * (len(x) // p)] for c in range(p)]"),
        "chunks returned as they are": _ring(result="chunks"),
        "mean": _ring(result="np.concatenate(chunks) / p"),
        "receives from the right": _ring(left="(r + 1) % p"),
        "no wrap at the end": _ring(right="r + 1", left="r - 1"),
        "round the other way":
            _ring(right="(r - 1) % p", left="(r + 1) % p").replace("- k", "+ k").replace(
                "r - 1 +", "r + 1 +").replace("r - 2 +", "r + 2 +"),
        "whole arrays go round": '''
async def ring_all_reduce(comm, x):
    total, moving = x.copy(), x
    for _ in range(comm.size - 1):
        sending = comm.isend(moving, (comm.rank + 1) % comm.size)
        moving = await comm.recv((comm.rank - 1) % comm.size)
        await sending
        total = total + moving
    return total
''',
        "star": '''
async def ring_all_reduce(comm, x):
    if comm.rank:
        await comm.send(x, 0)
        return await comm.recv(0)
    for r in range(1, comm.size):
        x = x + await comm.recv(r)
    for r in range(1, comm.size):
        await comm.send(x, r)
    return x
''',
        "shared memory instead of messages": '''
import numpy as np
everything = {}
async def ring_all_reduce(comm, x):
    everything[comm.rank] = x
    for _ in range(2 * (comm.size - 1)):
        sending = comm.isend(x[:1], (comm.rank + 1) % comm.size)
        await comm.recv((comm.rank - 1) % comm.size)
        await sending
    return sum(everything[r] for r in range(comm.size))
''',
        "four ranks only": _ring(steps="3", again="3"),
    },
    "ranks/halves": {
        "comes out flat": _halves("return await comm.all_gather("
                                  "await comm.reduce_scatter(x.ravel()))"),
        "by rows": _halves("part = await comm.reduce_scatter(np.atleast_1d(x))",
                           "return (await comm.all_gather(part)).reshape(x.shape)"),
        "no single numbers": _halves("return await comm.all_gather(await comm.reduce_scatter(x))"),
        "only the part": _halves("return await comm.reduce_scatter(x.ravel())"),
        "only gathered": _halves("return await comm.all_gather(x.ravel())"),
        "gathers all and adds":
            _halves("return np.sum(await comm.all_gather(x, axis=None), axis=0)"),
        "all_reduce": _halves("return await comm.all_reduce(x)"),
        "mean": _halves("part = await comm.reduce_scatter(x.ravel(), 'mean')",
                        "return (await comm.all_gather(part)).reshape(x.shape)"),
        "largest": _halves("part = await comm.reduce_scatter(x.ravel(), 'max')",
                           "return (await comm.all_gather(part)).reshape(x.shape)"),
        "adds its own again": _halves("part = await comm.reduce_scatter(x.ravel())",
                                      "return (await comm.all_gather(part)).reshape(x.shape) + x"),
        "await forgotten": _halves("part = comm.reduce_scatter(x.ravel())",
                                   "return (await comm.all_gather(part)).reshape(x.shape)"),
        "two axes only": _halves("part = await comm.reduce_scatter(x.ravel())",
                                 "full = await comm.all_gather(part)",
                                 "return full.reshape(len(x), -1)"),
        "drops what does not divide":
            _halves("n = x.size // comm.size * comm.size",
                    "part = await comm.reduce_scatter(x.ravel()[:n])",
                    "out = x.copy().ravel()",
                    "out[:n] = await comm.all_gather(part)", "return out.reshape(x.shape)"),
        "padding stays":
            _halves("flat = np.append(x.ravel(), np.zeros(-x.size % comm.size))",
                    "return await comm.all_gather(await comm.reduce_scatter(flat))"),
    },
    "ranks/bytes": {
        "even chunks": _bytes(ring="2 * (p - 1) / p * n"),
        "all chunks rounded up": _bytes(ring="2 * (p - 1) * -(-n // p)"),
        "all chunks rounded down": _bytes(ring="2 * (p - 1) * (n // p)"),
        "last chunk takes the rest":
            _bytes(chunks="[n // p + (n % p if c == p - 1 else 0) for c in range(p)]"),
        "one phase": _bytes(ring="(n - chunks[r])"),
        "the same chunk kept twice": _bytes(ring="(2 * n - 2 * chunks[r])"),
        "the other neighbour's chunk": _bytes(ring="(2 * n - chunks[r] - chunks[r - 1])"),
        "nothing kept": _bytes(ring="2 * n"),
        "star: root sends to itself": _bytes(star="[p] + [1] * (p - 1)"),
        "star: root sends once": _bytes(star="[1] * p"),
        "star: others get it too": _bytes(star="[p - 1] + [2] * (p - 1)"),
        "tree: only up": _bytes(down="pass"),
        "tree: only down": _bytes(up="pass"),
        "tree: last rank left out": _bytes(top="p - 1"),
        "tree: powers of two only": _bytes(top="2 ** (p.bit_length() - 1)"),
        "received instead of sent": _bytes(ring="(2 * n - chunks[r - 1] - chunks[(r - 2) % p])",
                                           star="[p - 1] + [1] * (p - 1)"),
        "elements": _bytes().replace(" * itemsize", ""),
        "one number": _bytes().replace("return [count", "return max([count").replace(
            "arrays]", "arrays])"),
        "bits": _bytes().replace("* itemsize", "* 8 * itemsize"),
    },
    "ranks/crossover": {
        "levels not rounded": _cross(levels="math.log2(p)"),
        "levels rounded down": _cross(levels="int(math.log2(p))"),
        "natural logarithm": _cross(levels="math.ceil(math.log(p))"),
        "tree once": _cross("alpha * (2 * (p - 1) - levels) / (beta * (levels - 2 * (p - 1) / p))"),
        "ring once": _cross("alpha * (p - 1 - 2 * levels) / (beta * (2 * levels - (p - 1) / p))"),
        "ring with whole arrays": _cross("alpha * (p - 1 - levels) / (beta * (levels - (p - 1)))"
                                         " if p - 1 > levels else 0.0"),
        "p steps": _cross("alpha * (p - levels) / (beta * (levels - 1))"
                          " if p > 2 else 0.0"),
        "bandwidth": _cross("alpha * beta * (p - 1 - levels) / (levels - (p - 1) / p)"),
        "swapped": _cross("beta * (p - 1 - levels) / (alpha * (levels - (p - 1) / p))"),
        "size of a chunk": _cross("alpha * (p - 1 - levels) / (beta * (levels - (p - 1) / p)) / p"),
        "numbers of four bytes":
            _cross("alpha * (p - 1 - levels) / (beta * (levels - (p - 1) / p)) / 4"),
        "without the ring's bytes": _cross("alpha * (p - 1 - levels) / (beta * levels)"),
        "whole bytes": _cross("round(alpha * (p - 1 - levels) / (beta * (levels - (p - 1) / p)))"),
        "time": _cross("2 * levels * (alpha + alpha * (p - 1 - levels) / (levels - (p - 1) / p))"),
    },
    "ranks/groups": {
        "roles swapped": _groups(node="comm.rank % per_node", across="comm.rank // per_node"),
        "ranks dealt out": _groups(node="comm.rank % (comm.size // per_node)",
                                   across="comm.rank // (comm.size // per_node)"),
        "only the node": _groups("return await node.all_reduce(x)"),
        "only across": _groups("return await across.all_reduce(x)"),
        "flat": _groups("return await comm.all_reduce(x)"),
        "whole arrays across": _groups("return await across.all_reduce(await node.all_reduce(x))"),
        "whole arrays across, first": _groups(
            "total = await across.all_reduce(x)",
            "return await node.all_gather(await node.reduce_scatter(total))"),
        "part only": _groups("return await across.all_reduce(await node.reduce_scatter(x))"),
        "gathered across": _groups("part = await node.reduce_scatter(x)",
                                   "part = await across.all_reduce(part)",
                                   "return await across.all_gather(part)"),
        "over all after the node": _groups(
            "return await comm.all_reduce(await node.all_reduce(x))"),
        "mean across": _groups("part = await node.reduce_scatter(x)",
                               "part = await across.all_reduce(part, 'mean')",
                               "return await node.all_gather(part)"),
        "mean in the node": _groups("part = await node.reduce_scatter(x, 'mean')",
                                    "part = await across.all_reduce(part)",
                                    "return await node.all_gather(part)"),
        "two ranks a node": _groups(node="comm.rank // 2", across="comm.rank % 2"),
        "only the first of each node goes across": _groups(
            "total = await node.all_reduce(x)",
            "if node.rank == 0:", "    total = await across.all_reduce(total)",
            "return total"),
        "first of each node, then told by barrier": _groups(
            "part = await node.reduce_scatter(x)", "await comm.barrier()",
            "return await node.all_gather(await across.all_reduce(part))"),
        "await forgotten": _groups().replace("await comm.split(comm.rank %",
                                             "comm.split(comm.rank %"),
    },
    "ranks/step": {
        "alone": _step("return w - lr * x.T @ (x @ w - y) / len(y)"),
        "mean of means": _step("g = await comm.all_reduce(x.T @ (x @ w - y) / len(y), 'mean')",
                               "return w - lr * g"),
        "sum of means": _step("g = await comm.all_reduce(x.T @ (x @ w - y) / len(y))",
                              "return w - lr * g"),
        "sum of all": _step("return w - lr * await comm.all_reduce(x.T @ (x @ w - y))"),
        "mean of sums": _step("return w - lr * await comm.all_reduce(x.T @ (x @ w - y), 'mean')"),
        "own number": _step("return w - lr * await comm.all_reduce(x.T @ (x @ w - y)) / len(y)"),
        "weights averaged": _step("new = w - lr * x.T @ (x @ w - y) / len(y)",
                                  "return await comm.all_reduce(new, 'mean')"),
        "uphill": _step("t = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
                        "return w + lr * t[:-1] / t[-1]"),
        "twice the gradient": _step(
            "t = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
            "return w - 2 * lr * t[:-1] / t[-1]"),
        "gradient": _step("t = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
                          "return t[:-1] / t[-1]"),
        "error the wrong way round": _step(
            "t = await comm.all_reduce(np.append(x.T @ (y - x @ w), len(y)))",
            "return w - lr * t[:-1] / t[-1]"),
        "input forgotten": _step(
            "t = await comm.all_reduce(np.append((x @ w - y).sum(), len(y)))",
            "return w - lr * t[:-1] / t[-1]"),
        "lr forgotten": _step("t = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
                              "return w - t[:-1] / t[-1]"),
        "rank 0 decides": _step("g = x.T @ (x @ w - y) / len(y)",
                                "g = await comm.all_reduce(g if comm.rank == 0 else 0 * g)",
                                "return w - lr * g"),
        "gathers the examples": _step(
            "x, y = await comm.all_gather(x), await comm.all_gather(y)",
            "return w - lr * x.T @ (x @ w - y) / len(y)"),
        "only rank 0 asks for the number": _step(
            "g = await comm.all_reduce(x.T @ (x @ w - y))",
            "n = len(y)",
            "if comm.rank == 0:", "    n = await comm.all_reduce(len(y))",
            "return w - lr * g / n"),
        "divides by parameters": _step(
            "t = await comm.all_reduce(np.append(x.T @ (x @ w - y), len(y)))",
            "return w - lr * t[:-1] / t[-1] / len(w)"),
    },
    "ranks/accumulation": {
        "1/m": _factors("1 / len(row)"),
        "1/(m d)": _factors("1 / len(row) / d"),
        "ranks forgotten": _factors("n / total"),
        "divided by the ranks": _factors("n / total / d"),
        "within the rank": _factors("n / sum(row)"),
        "within the rank, per rank": _factors("n / sum(row) / d"),
        "microbatches forgotten to add": _factors("n * d * len(row) / total"),
        "not times n": _factors("d / total"),
        "upside down": _factors("total / (n * d) if n else 0"),
        "all one": _factors("1.0"),
        "longest is one": _factors("n / max(map(max, tokens))"),
        "same on all ranks": _factors("n * d / total").replace(
            "for row in tokens", "for row in [tokens[0]] * d"),
        "flat": _factors("n * d / total").replace(
            "[[n * d / total for n in row] for row in tokens]",
            "[n * d / total for row in tokens for n in row]"),
        "whole division": _factors("n * d // total"),
        "rounded": _factors("round(n * d / total, 3)"),
        "empty ones left out": _factors("n * d / total").replace("for n in row]",
                                                                 "for n in row if n]"),
        "empty ones divide by zero": _factors("1 / (total / (n * d))"),
    },
    "ranks/scaling": {
        "count not reset by overflow": _scales(shrink="scale = scale / 2"),
        "count not reset by growth": _scales(grow="scale = 2 * scale"),
        "grows at every multiple since ever": _scales(
            grows="good % window == 0", grow="scale = 2 * scale", shrink="scale = scale / 2"),
        "one step late": _scales(grows="good > window"),
        "one step early": _scales(grows="good >= window - 1"),
        "never grows": _scales(grow="good = 0"),
        "never falls": _scales(shrink="good = 0"),
        "falls to a quarter": _scales(shrink="scale, good = scale / 4, 0"),
        "after the step": _scales(before="pass", after="used.append(scale)"),
        "not finite only": _scales(fits="math.isfinite(value * scale)"),
        "scale forgotten": _scales(fits="value <= 65504"),
        "divides by the scale": _scales(fits="value / scale <= 65504"),
        "nan passes": _scales(fits="not value * scale > 65504"),
        "65504 overflows": _scales(fits="value * scale < 65504"),
        "65536 is the limit": _scales(fits="value * scale <= 65536"),
        "never below one": _scales(shrink="scale, good = max(1.0, scale / 2), 0"),
        "never above 65536": _scales(grow="scale, good = min(65536.0, 2 * scale), 0"),
        "skipped steps left out": _scales(before="pass", count="good += 1; used.append(scale)",
                                          grows="good == window"),
        "grows at once on a good step": _scales(grows="True"),
    },
}
