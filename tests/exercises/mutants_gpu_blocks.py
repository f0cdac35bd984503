"""Wrong answers to notebook gpu_2: what people write by mistake, in place of what is right.

Every one must fail on the hidden cases; `test_mutants.py` runs them. Never handed out.
"""

from __future__ import annotations

from tests.exercises.changing import changed

_BARRIER = "    cuda.syncthreads()\n"

MUTANTS: dict[str, dict[str, str]] = {
    "gpu/window": changed(
        "window_max",
        {
            "integers": ("(66, float32)", "(66, np.int32)"),
            "three reads": (
                (
                    "        if i > 0:\n            largest = max(largest, part[t - 1])\n"
                    "        if i + 1 < n:\n            largest = max(largest, part[t + 1])"
                ),
                (
                    "        if i > 0:\n            largest = max(largest, a[i - 1])\n"
                    "        if i + 1 < n:\n            largest = max(largest, a[i + 1])"
                ),
            ),
            "no barrier": (_BARRIER, ""),
            "no left halo": ("    if t == 1 and i > 0:\n        part[0] = a[i - 1]\n", ""),
            "no right halo": ("    if t == 64 and i + 1 < n:\n        part[65] = a[i + 1]\n", ""),
            "halo not guarded": ("t == 64 and i + 1 < n", "t == 64"),
            "left not guarded": ("t == 1 and i > 0", "t == 1"),
            "too small": ("array(66", "array(65"),
            "no guard": ("    if i < n:\n        part", "    if True:\n        part"),
            "zero outside": (
                "largest = part[t]",
                ("largest = max(part[t], float32(0)) if i == 0 else part[t]"),
            ),
            "sum": ("max(largest, part[t - 1])", "largest + part[t - 1]"),
            "left only": (
                "        if i + 1 < n:\n            largest = max(largest, part[t + 1])\n",
                "",
            ),
            "all halo by one thread each": (
                "    if t == 1 and i > 0:\n        part[0] = a[i - 1]",
                "    if i > 0 and i < n:\n        part[t - 1] = a[i - 1]",
            ),
            "early return": (
                "    if i < n:\n        part[t] = a[i]",
                "    if i >= n:\n        return\n    part[t] = a[i]",
            ),
        },
    ),
    "gpu/dot": changed(
        "dot",
        {
            "atomic for each": (
                "        cuda.atomic.add(out, 0, sums[0])",
                (
                    "        cuda.atomic.add(out, 0, float32(0))\n"
                    "    cuda.atomic.add(out, 0, sums[0] / 64)"
                ),
            ),
            "no atomic": ("cuda.atomic.add(out, 0, sums[0])", "out[0] = sums[0]"),
            "plain add": ("cuda.atomic.add(out, 0, sums[0])", "out[0] += sums[0]"),
            "no first barrier": ("float32(0)\n    cuda.syncthreads()", "float32(0)"),
            "no barrier in the loop": ("        cuda.syncthreads()\n", ""),
            "barrier in the if": (
                "            sums[t] += sums[t + step]\n        cuda.syncthreads()",
                ("            sums[t] += sums[t + step]\n            cuda.syncthreads()"),
            ),
            "no guard": ("a[i] * b[i] if i < n else float32(0)", "a[i] * b[i]"),
            "sum for product": ("a[i] * b[i]", "a[i] + b[i]"),
            "one round too few": ("step = 32", "step = 16"),
            "everybody adds": ("        if t < step:\n", "        if t + step < 64:\n"),
            "starts too high": ("step = 32", "step = 64"),
            "own element only": ("    if t == 0:\n", "    if i == 0:\n"),
            "two barriers a round": (
                "        step //= 2",
                ("        cuda.syncthreads()\n        step //= 2"),
            ),
            "unset when outside": (
                "    sums[t] = a[i] * b[i] if i < n else float32(0)",
                "    if i < n:\n        sums[t] = a[i] * b[i]",
            ),
        },
    ),
    "gpu/mean_square": changed(
        "mean_square",
        {
            "sum": (" / columns", ""),
            "32": (" / columns", " / 32"),
            "pieces": (
                "range(lane, columns, 32)",
                (
                    "range(lane * ((columns + 31) // 32), "
                    "min(columns, (lane + 1) * ((columns + 31) // 32)))"
                ),
            ),
            "first 32 only": ("range(lane, columns, 32)", "range(lane, min(columns, 32), 32)"),
            "not squared": ("value * value", "value"),
            "one lane does it": (
                "range(lane, columns, 32)",
                "range(0, columns if lane == 0 else 0)",
            ),
            "no shuffle": (
                "        total += cuda.shfl_down_sync(0xffffffff, total, distance)\n",
                "",
            ),
            "one round too few": ("distance = 16", "distance = 8"),
            "one round short of the end": ("distance > 0", "distance > 1"),
            "up for down": ("shfl_down_sync", "shfl_up_sync"),
            "all write": ("    if lane == 0:\n", "    if True:\n"),
            "last lane": ("lane == 0", "lane == 31"),
            "reads past the end": ("range(lane, columns, 32)", "range(lane, columns + 31, 32)"),
            "atomics": [
                (
                    "    if lane == 0:\n        out[row] = total / columns",
                    (
                        "    if lane == 0:\n        out[row] = float32(0)\n    cuda.syncwarp()\n"
                        "    cuda.atomic.add(\n"
                        "        out, row, total / columns if lane == 0 else float32(0))"
                    ),
                ),
            ],
        },
    ),
    "gpu/conv": changed(
        "convolve",
        {
            "integers": ("(8, float32)", "(8, np.int32)"),
            "everything from global memory": (
                "part[t + j] * weights[j]",
                "(a[i + j] if i + j < n else float32(0)) * w[j]",
            ),
            "weights from global memory for all": (
                "    if t < m:\n        weights[t] = w[t]",
                (
                    "    if t < 8:\n        for j in range(m):\n            if t == 0:\n"
                    "                weights[j] = w[j]"
                ),
            ),
            "no barrier": (_BARRIER, ""),
            "reversed": ("weights[j]\n", "weights[m - 1 - j]\n"),
            "no halo": (
                "        part[t + 64] = a[i + 64] if t < m - 1 and i + 64 < n else float32(0)",
                "        part[t + 64] = float32(0)",
            ),
            "halo unset": (
                (
                    "    if t < 8:\n        part[t + 64] = a[i + 64] if t < m - 1 and i + 64 < n"
                    " else float32(0)\n"
                ),
                "",
            ),
            "halo one short": ("t < m - 1 and", "t < m - 2 and"),
            "halo not guarded": ("if t < m - 1 and i + 64 < n", "if t < m - 1"),
            "no guard": ("a[i] if i < n else float32(0)", "a[i]"),
            "one weight short": ("range(m)", "range(m - 1)"),
            "looks back": ("part[t + j]", "part[t - j if t >= j else 71]"),
            "eight weights always": ("    if t < m:\n", "    if t < 8:\n"),
            "writes behind the end": (
                "    if i < n:\n        total",
                "    if True:\n        total",
            ),
        },
    ),
    "gpu/scan": changed(
        "running_sum",
        {
            "no barrier before writing": (
                "            mine += sums[t - distance]\n        cuda.syncthreads()\n",
                "            mine += sums[t - distance]\n",
            ),
            "no barrier after writing": (
                "        sums[t] = mine\n        cuda.syncthreads()\n",
                "        sums[t] = mine\n",
            ),
            "no barrier at first": (
                "    sums[t] = mine\n    cuda.syncthreads()\n    distance",
                "    sums[t] = mine\n    distance",
            ),
            "in place": [
                (
                    (
                        "            mine += sums[t - distance]\n        cuda.syncthreads()\n"
                        "        sums[t] = mine\n"
                    ),
                    ("            sums[t] += sums[t - distance]\n            mine = sums[t]\n"),
                ),
            ],
            "exclusive": ("out[t] = mine", "out[t] = mine - a[t]"),
            "one round too few": ("distance < 64", "distance < 32"),
            "by one": [
                ("distance *= 2", "distance += 1"),
            ],
            "from the right": (
                "if t >= distance:\n            mine += sums[t - distance]",
                "if t + distance < 64:\n            mine += sums[t + distance]",
            ),
            "first left out": ("t >= distance", "t > distance"),
            "no guard": ("a[t] if t < n else float32(0)", "a[t]"),
            "step by step": [
                ("    while distance < 64:\n", "    while distance < 64 and distance < n:\n"),
                (
                    "        if t >= distance:\n            mine += sums[t - distance]\n",
                    "        if t == distance:\n            mine += sums[t - 1]\n",
                ),
                ("distance *= 2", "distance += 1"),
            ],
            "each for itself": [
                (
                    "    if t < n:\n        out[t] = mine",
                    (
                        "    if t < n:\n"
                        "        mine = float32(0)\n        for j in range(t + 1):\n"
                        "            mine += a[j]\n        out[t] = mine"
                    ),
                ),
            ],
            "barrier in the if": (
                "            mine += sums[t - distance]\n        cuda.syncthreads()\n",
                ("            mine += sums[t - distance]\n            cuda.syncthreads()\n"),
            ),
        },
    ),
    "gpu/matmul": changed(
        "tiled_matmul",
        {
            "from global memory": [
                (
                    ("        for k in range(TILE):\n            total += As[y, k] * Bs[k, x]\n"),
                    (
                        "        for k in range(TILE):\n"
                        "            if row < M and col < N and start + k < K:\n"
                        "                total += A[row, start + k] * B[start + k, col]\n"
                    ),
                ),
            ],
            "no barrier after loading": (
                "        cuda.syncthreads()\n        for k",
                "        for k",
            ),
            "no barrier after multiplying": (
                "Bs[k, x]\n        cuda.syncthreads()\n",
                "Bs[k, x]\n",
            ),
            "first step only": ("range(0, K, TILE)", "range(0, min(K, TILE), TILE)"),
            "last step left out": ("range(0, K, TILE)", "range(0, K // TILE * TILE, TILE)"),
            "no guard for A": ("if row < M and start + x < K else float32(0)", ""),
            "no guard for B": ("if start + y < K and col < N else float32(0)", ""),
            "A's columns unguarded": ("row < M and start + x < K", "row < M"),
            "B transposed in the tile": ("Bs[k, x]\n", "Bs[x, k]\n"),
            "A's indices swapped": ("As[y, k]", "As[k, y]"),
            "x along rows": ("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),
            "written without guard": (
                "    if row < M and col < N:\n        C",
                "    if True:\n        C",
            ),
            "sum not kept": (
                "        cuda.syncthreads()\n        for k",
                ("        cuda.syncthreads()\n        total = float32(0)\n        for k"),
            ),
            "leaves early": (
                "    total = float32(0)\n    for start",
                (
                    "    if row >= M or col >= N:\n"
                    "        return\n    total = float32(0)\n    for start"
                ),
            ),
        },
    ),
    "gpu/registers": changed(
        "four_rows",
        {
            "integers": ("(4, float32)", "(4, np.int32)"),
            "B read for each row": ("* b\n", "* B[k, col]\n"),
            "sums not set": ("        sums[r] = float32(0)\n", "        pass\n"),
            "one row": ("    row = 4 * y", "    row = y"),
            "rows far apart": [
                ("A[row + r, k]", "A[(row + r * 3) % M, k]"),
            ],
            "no guard in the loop": [
                ("                if row + r < M:\n", "                if True:\n"),
            ],
            "stored without guard": (
                "            if row + r < M:\n                C",
                "            if True:\n                C",
            ),
            "whole groups only": ("row < M:\n        for k", "row + 3 < M:\n        for k"),
            "no guard for columns": ("col < N and row < M", "row < M"),
            "not accumulated": ("sums[r] += A", "sums[r] = A"),
            "three rows": (
                "        for r in range(4):\n            if row + r < M:\n                C",
                "        for r in range(3):\n            if row + r < M:\n                C",
            ),
            "same row": ("A[row + r, k]", "A[row, k]"),
            "last k left out": ("range(A.shape[1])", "range(A.shape[1] - 1)"),
            "x for rows": ("col, y = cuda.grid(2)", "y, col = cuda.grid(2)"),
            "one result a thread": [
                (
                    (
                        "        for k in range(A.shape[1]):\n            b = B[k, col]\n"
                        "            for r in range(4):\n"
                    ),
                    (
                        "        for r in range(4):\n            for k in "
                        "range(A.shape[1]):\n                b = B[k, col]\n"
                    ),
                ),
            ],
        },
    ),
}
