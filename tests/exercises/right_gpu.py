"""Other right answers to the gpu exercises: they have to pass, counters and all."""

from __future__ import annotations

_IMPORTS = ("import numpy as np\nfrom distlearn.kernels import cuda, float32\n"
            "from distlearn.kernels.ascend import CubeCore\n")


def _kernel(head: str, *lines: str) -> str:
    return "\n".join([_IMPORTS, "@cuda.jit", f"def {head}:", *(f"    {line}" for line in lines)])


RIGHT: dict[str, dict[str, str]] = {
    "gpu/map": {
        "early return": _kernel(
            "scale_and_shift(out, a, n)",
            "i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x",
            "if i >= n:", "    return", "out[i] = a[i] * 3 + 1"),
        "a device function": "\n".join([
            _IMPORTS, "@cuda.jit(device=True)", "def line(x):", "    return 3 * x + 1",
            "@cuda.jit", "def scale_and_shift(out, a, n):", "    i = cuda.grid(1)",
            "    if i < n:", "        out[i] = line(a[i])"]),
    },
    "gpu/stride": {
        "while": _kernel(
            "relu(out, a, n)", "i = cuda.grid(1)", "while i < n:", "    x = a[i]",
            "    out[i] = x if x > 0 else float32(0)", "    i += cuda.gridsize(1)"),
    },
    "gpu/rotate": {
        "a thread a pair": _kernel(
            "rotate_pairs(out, a, n, c, s)", "k = 2 * cuda.grid(1)", "if k < n:",
            "    x = a[k]", "    y = a[k + 1]", "    out[k] = c * x - s * y",
            "    out[k + 1] = s * x + c * y"),
        "shuffle": _kernel(
            "rotate_pairs(out, a, n, c, s)", "i = cuda.grid(1)",
            "mine = a[i] if i < n else float32(0)",
            "other = cuda.shfl_xor_sync(0xffffffff, mine, 1)", "if i < n:",
            "    out[i] = c * mine + (s if i % 2 else -s) * other"),
    },
    "gpu/transpose": {
        "swizzled": _kernel(
            "transpose(out, a)", "tile = cuda.shared.array((32, 32), float32)",
            "x = cuda.threadIdx.x", "y = cuda.threadIdx.y", "j, i = cuda.grid(2)",
            "if i < a.shape[0] and j < a.shape[1]:", "    tile[y, x ^ y] = a[i, j]",
            "cuda.syncthreads()", "i = cuda.blockIdx.y * 32 + x",
            "j = cuda.blockIdx.x * 32 + y",
            "if i < a.shape[0] and j < a.shape[1]:", "    out[j, i] = tile[x, y ^ x]"),
    },
    "gpu/window": {
        "one thread for both ends": _kernel(
            "window_max(out, a, n)", "s = cuda.shared.array(66, float32)",
            "t = cuda.threadIdx.x", "i = cuda.grid(1)", "low = float32(-3e38)",
            "s[t + 1] = a[i] if i < n else low", "if t == 0:",
            "    s[0] = a[i - 1] if i > 0 else low",
            "    s[65] = a[i + 64] if i + 64 < n else low", "cuda.syncthreads()", "if i < n:",
            "    out[i] = max(max(s[t], s[t + 1]), s[t + 2])"),
        "shifted by the halo": _kernel(
            "window_max(out, a, n)", "s = cuda.shared.array(shape=66, dtype=float32)",
            "t = cuda.threadIdx.x", "i = cuda.grid(1)", "for k in range(t, 66, 64):",
            "    j = cuda.blockIdx.x * 64 + k - 1",
            "    s[k] = a[j] if 0 <= j < n else float32(-np.inf)", "cuda.syncthreads()",
            "if i < n:", "    out[i] = max(s[t], s[t + 1], s[t + 2])"),
    },
    "gpu/dot": {
        "shuffles": _kernel(
            "dot(out, a, b, n)", "s = cuda.shared.array(2, float32)", "i = cuda.grid(1)",
            "t = cuda.threadIdx.x", "v = a[i] * b[i] if i < n else float32(0)", "d = 16",
            "while d > 0:", "    v += cuda.shfl_xor_sync(0xffffffff, v, d)", "    d //= 2",
            "if t % 32 == 0:", "    s[t // 32] = v", "cuda.syncthreads()", "if t == 0:",
            "    cuda.atomic.add(out, 0, s[0] + s[1])"),
    },
    "gpu/mean_square": {
        "butterfly": _kernel(
            "mean_square(out, x)", "r = cuda.blockIdx.x", "v = float32(0)",
            "for j in range(cuda.threadIdx.x, x.shape[1], 32):", "    v += x[r, j] ** 2",
            "for k in range(5):", "    v += cuda.shfl_xor_sync(0xffffffff, v, 1 << k)",
            "if cuda.threadIdx.x == 0:", "    out[r] = v / x.shape[1]"),
    },
    "gpu/scan": {
        "two arrays": _kernel(
            "running_sum(out, a, n)", "s = cuda.shared.array((2, 64), float32)",
            "t = cuda.threadIdx.x", "s[0, t] = a[t] if t < n else float32(0)",
            "cuda.syncthreads()", "d = 1", "now = 0", "while d < 64:",
            "    s[1 - now, t] = s[now, t] + s[now, t - d] if t >= d else s[now, t]",
            "    now = 1 - now", "    cuda.syncthreads()", "    d *= 2", "if t < n:",
            "    out[t] = s[now, t]"),
    },
    "gpu/matmul": {
        "padded": _kernel(
            "tiled_matmul(C, A, B)", "As = cuda.shared.array((16, 17), float32)",
            "Bs = cuda.shared.array((16, 17), float32)", "x = cuda.threadIdx.x",
            "y = cuda.threadIdx.y", "j, i = cuda.grid(2)", "v = float32(0)",
            "for q in range((A.shape[1] + 15) // 16):", "    As[y, x] = 0", "    Bs[y, x] = 0",
            "    if i < A.shape[0] and 16 * q + x < A.shape[1]:",
            "        As[y, x] = A[i, 16 * q + x]",
            "    if 16 * q + y < B.shape[0] and j < B.shape[1]:",
            "        Bs[y, x] = B[16 * q + y, j]", "    cuda.syncthreads()",
            "    for k in range(min(16, A.shape[1] - 16 * q)):", "        v += As[y, k] * Bs[k, x]",
            "    cuda.syncthreads()", "if i < C.shape[0] and j < C.shape[1]:", "    C[i, j] = v"),
    },
    "gpu/cuda_c": {
        "a macro and fmaxf": "def bias_relu_source():\n    return '''\n"
                             "#define AT(i, j) ((i) * columns + (j))\n"
                             "__device__ float relu(float v) { return fmaxf(v, 0.0f); }\n"
                             "extern \"C\" __global__ void bias_relu(float *out, const float *x, "
                             "const float *bias, int rows, int columns) {\n"
                             "  int j = blockIdx.x * 32 + threadIdx.x;\n"
                             "  int i = blockIdx.y * 4 + threadIdx.y;\n"
                             "  if (i >= rows || j >= columns) return;\n"
                             "  out[AT(i, j)] = relu(x[AT(i, j)] + bias[j]);\n}\n'''",
    },
    "gpu/flags": {
        "queues": _IMPORTS + """
def multiply(core, A, B, C):
    (m, k), n = A.shape, B.shape[1]
    a1, a2 = core.queue("A1", 2, m * 128), core.queue("A2", 2, m * 128)
    b1, b2 = core.queue("B1", 2, n * 128), core.queue("B2", 2, n * 128)
    out = core.queue("CO1", 1, 4 * m * n)
    c = out.allocate((m, n), "float32")
    for i in range(0, k, 64):
        for near, far, part in ((a1, a2, A[:, i:i + 64]), (b1, b2, B[i:i + 64])):
            t = near.allocate(part.shape, "float16")
            core.data_copy(t, part)
            near.enqueue(t)
        for near, far, shape in ((a1, a2, (m, 64)), (b1, b2, (64, n))):
            t, u = near.dequeue(), far.allocate(shape, "float16")
            core.load_data(u, t)
            far.enqueue(u)
            near.free(t)
        a, b = a2.dequeue(), b2.dequeue()
        core.mmad(c, a, b, accumulate=i > 0)
        a2.free(a)
        b2.free(b)
    out.enqueue(c)
    core.fixpipe(C, out.dequeue())
    out.free(c)
""",
    },
}
