"""Constructs of C in kernels, each against what C says it gives, on both executors."""

import numpy as np
import pytest

from distlearn.kernels import KernelError, cuda_c

ROW = "__shared__ float s[4][4]; s[t / 4][t % 4] = t; __syncthreads();"
COMPLEX = """typedef struct { float re, im; } cplx;
__device__ cplx mul(cplx a, cplx b) {
    cplx c = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return c;
}
"""
SIGNS = """__device__ int g(int a) { if (a > 3) return a; return -a; }
__device__ int f(int a) { return g(a) + g(a + 1); }
"""

# functions before, body of a kernel of 16 threads that sets y[t], and y[t] as C defines it
CONSTRUCTS = {
    "pointer into an array of rows": ("", ROW + "float *p = &s[0][0]; y[t] = p[15 - t];",
                                      lambda t: 15 - t),
    "a row": ("", ROW + "float *row = s[t / 4]; y[t] = row[1] + *(*(s + 1) + 2);",
              lambda t: t // 4 * 4 + 1 + 6),
    "rows as a parameter": ("__device__ float f(float m[][4], int r) { return m[r][1]; }\n",
                            ROW + "y[t] = f(s, t / 4);", lambda t: t // 4 * 4 + 1),
    "result by a pointer": ("__device__ void f(int *a, int b) { *a += b; }\n",
                            "int x = 3; f(&x, t); y[t] = x;", lambda t: t + 3),
    "structures by a pointer": (
        ("struct Sum { float x, y; }; __device__ void add(struct Sum *s, float3 v) {"
         "s->x += v.x; s->y += v.z; }\n__device__ void one(float3 *v) { v->z = 1; }\n"),
        ("Sum s = {1, 2}; float3 v = make_float3(t, 5, 7); one(&v); for (int i = 0; i < 3; i++)"
         "add(&s, v); Sum *p = &s; y[t] = p->x + 100 * s.y;"), lambda t: 1 + 3 * t + 500),
    "lengths of a function's own": ("const int N = 99;\n", (
        "const int N = 4, M = N * N; constexpr int W = N + 1; __shared__ float s[N][W]; int a[M];"
        "for (int i = 0; i < M; i++) a[i] = i; s[t / N][t % N] = a[t]; __syncthreads();"
        "y[t] = s[t % N][t / N] + 100 * N;"), lambda t: t % 4 * 4 + t // 4 + 400),
    "pointer difference": ("", "float *a = y + 3, *b = y + t; y[t] = b - a + (b > a);",
                           lambda t: t - 3 + (t > 3)),
    "structures": (COMPLEX, "cplx z = {1, t}; z = mul(z, z); y[t] = mul(z, z).im;",
                   lambda t: ((1 + 1j * t) ** 4).imag),
    "structures in shared memory": (
        COMPLEX, ("__shared__ cplx s[16]; cplx z = {t, 2}; s[t] = z; __syncthreads();"
        "z = s[15 - t]; y[t] = z.re * z.im;"), lambda t: 2 * (15 - t)),
    "vectors in registers": ("", "float4 v = make_float4(1, 2, 3, 4); v.x += t; y[t] = v.x + v.w;",
                             lambda t: t + 5),
    "two steps": ("", "y[t] = 0; for (int i = 0, j = t; i < j; i++, j--) y[t] += i * j;",
                  lambda t: sum(i * (t - i) for i in range(t) if i < t - i)),
    "bits": ("", "y[t] = __clz(t) + __brev(t) / 65536.0 + __ffs(t) + __clzll((long long)t);",
             lambda t: 96 - 2 * t.bit_length() + int(f"{t:032b}"[::-1], 2) / 65536
             + (t & -t).bit_length()),
    "the last lane's vote": ("", ("unsigned v = __ballot_sync(0xffffffffu, t < 16) << 16;"
                             "y[t] = v > 0 ? __popc(v) + !!isfinite(erff(t)) : 0;"), lambda t: 17),
    "votes": ("", "y[t] = __ballot_sync(0xffffffffu, t % 3 == 0) & 0xff;", lambda t: 0b01001001),
    "constants": ("__constant__ float w[4] = {1, 2, 3};\n",
                  "const int order[3] = {2, 0, 1}; y[t] = w[order[t % 3]];",
                  lambda t: [3, 1, 2][t % 3]),
    "functions": (SIGNS, "y[t] = t > 2 && f(t) > 5 ? f(3) : 0;", lambda t: 1 if t > 3 else 0),
    "truth values": ("", "bool odd = t & 1, big = t > 7; y[t] = (odd == big) + 10 * (odd && !big);",
                     lambda t: (t % 2 == (t > 7)) + 10 * (t % 2 and t <= 7)),
    "early return": ("", ("int i = t; if (i >= 8) { y[i] = -1; return; }"
                     "while (1) { if (i > 20) break; i += 5; } y[t] = i;"),
                     lambda t: -1 if t >= 8 else next(i for i in range(t, 99, 5) if i > 20)),
    "math": ("", ("y[t] = fmaxf(t, 3) + powf(2.f, 3.f) + rsqrtf(4.0f) + fminf(INFINITY, 3) + "
             "abs(t - 8) + sqrtf(t * t) + floorf(-0.5f) + (1.0f / 0 > FLT_MAX);"),
             lambda t: max(t, 3) + 8 + 0.5 + 3 + abs(t - 8) + t - 1 + 1),
    "casts": ("", "y[t] = static_cast<int>(t / 2.0f) + int(2.9) + (unsigned char)(t + 250);",
              lambda t: t // 2 + 2 + (t + 250) % 256),
    "hashes": ("", ("unsigned h = t; h *= 2654435761u; h ^= h >> 16; h = h << 3 | h >> 29;"
               "y[t] = h % 1000;"), lambda t: _hash(t)),
    "Python's names": ("__device__ int range(int len) { return len + 1; }\n",
                       "int float32 = t, None = 2, cuda = range(float32); y[t] = cuda * None;",
                       lambda t: 2 * (t + 1)),
    "bounds of quotients": ("", ("y[t] = int(7u / (t % 7u + 1u)) + "
                                 "100 * (7 / (t - 20) + t % (t - 30));"),
                            lambda t: 7 // (t % 7 + 1) + 100 * (t % (30 - t) - 7 // (20 - t))),
    "counts at barriers": ("", ("y[t] = __syncthreads_count(t < 3) + 10 * __syncthreads_or(t > 99)"
                           " + 100 * __syncthreads_and(t < 16);"), lambda t: 103),
    "rounding": ("", ("y[t] = roundf(t - 7.5f) + 100 * rintf(t - 7.5f) + 10000 * "
                 "__float2int_rd(t - 7.5f) + __float2int_rn(2.5f) + __float2int_ru(0.5f);"),
                 lambda t: (t - 7 if t > 7 else t - 8) + 100 * round(t - 7.5) + 10000 * (t - 8)
                 + 3),
    "sine and cosine": ("", ("float s, c; sincosf(t, &s, &c); y[t] = rintf(1000 * (s * s + c * c))"
                        " + __saturatef(t) + cbrtf(8);"), lambda t: 1002 + (t > 0)),
    "parts of a warp": ("", ("y[t] = __shfl_down_sync(~0u, t, 3, 8) + 100 * "
                        "__shfl_up_sync(~0u, t, 2, 4) + 10000 * __shfl_sync(~0u, t, t + 5, 4) + "
                        "1000000 * __shfl_xor_sync(~0u, t, 4, 4);"),
                        lambda t: (t + 3 if t % 8 < 5 else t) + 100 * (
                            t - 2 if t % 4 > 1 else t) + 10000 * (t // 4 * 4 + (t + 1) % 4)
                        + 1000000 * (t if t % 8 < 4 else t - 4)),
    "whole coordinates": ("", ("uint3 at = threadIdx; dim3 d(2, 3), b = blockDim;"
                          "y[t] = at.x + b.x + 10 * (d.x + d.y + d.z + make_int2(4, 5).y);"),
                          lambda t: t + 16 + 10 * 11),
    "bits of floats": ("", ("y[t] = (__float_as_int((float)t) >> 23) + "
                       "__int_as_float(__float_as_int(t * 0.5f) & 0x7fffffff) + "
                       "__uint_as_float(__float_as_uint(2.0f));"),
                       lambda t: (126 + t.bit_length() if t else 0) + t / 2 + 2),
    "an enumeration": ("enum Colour { RED, GREEN = 4 };\n", (
        "enum Colour a = GREEN; Colour b = RED; y[t] = a + b;"), lambda t: 4),
    "places in dynamic memory": ("", ("extern __shared__ char m[]; double *d = (double *)m;"
                                 "float *f = (float *)(d + 8); if (t < 8) { d[t] = t; f[t] = 2; }"
                                 "__syncthreads(); y[t] = d[t % 8] + f[t / 2] + "
                                 "((float *)(m + 16 * sizeof(float)))[0];"), lambda t: t % 8 + 4),
    "atomics": ("", ("__shared__ int s[2]; if (t < 2) s[t] = 0; __syncthreads();"
                "atomicMax(&s[0], t); atomicAdd(s + 1, t); __syncthreads(); y[t] = s[0] + s[1];"),
                lambda t: 15 + 120),
}


def _hash(t):
    h = t * 2654435761 % 2**32
    h ^= h >> 16
    return (h << 3 | h >> 29) % 2**32 % 1000


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_constructs(name):
    before, body, expected = CONSTRUCTS[name]
    program = cuda_c.load(
        before + f"__global__ void k(float *y) {{ int t = threadIdx.x; {body} }}\n")
    counters = []
    for executor in ("simt", "oracle"):
        y = np.zeros(16, np.float32)
        counters.append(program["k"].launch(1, 16, y, executor=executor, shared=96).counters)
        assert y.tolist() == [expected(t) for t in range(16)]
    assert counters[0] == counters[1]


VECTORS = """
#define FLOAT4(x) (reinterpret_cast<float4 *>(&(x))[0])
__global__ void k(float *in, float *out, int shift) {
    int i = 4 * threadIdx.x + shift;
    float4 v = FLOAT4(in[i]);
    v.x += 1;
    FLOAT4(out[i]) = v;
}
__global__ void typed(const float2 *in, float2 *out) {
    float2 v = in[threadIdx.x];
    v.y += 1;
    out[threadIdx.x] = v;
}
"""


def test_vectors_move_by_one_instruction():
    program, a = cuda_c.load(VECTORS), np.arange(128, dtype=np.float32)
    for executor in ("simt", "oracle"):
        out = np.zeros_like(a)
        report = program["k"].launch(1, 32, a, out, 0, executor=executor)
        assert out.tolist() == [x + (x % 4 == 0) for x in a]
        # 32 lanes x 16 bytes = 16 sectors of 32 bytes, by one request each way
        for way in ("load", "store"):
            assert report.counters[f"global_{way}_requests"] == 1
            assert report.counters[f"global_{way}_sectors"] == 16
        report = program["typed"].launch(1, 32, a[:64], out, executor=executor)
        assert out[:64].tolist() == [x + (x % 2 == 1) for x in a[:64]]
        assert report.counters["global_load_sectors"] == 8
        with pytest.raises(KernelError) as caught:
            program["k"].launch(1, 16, a, out, 1, executor=executor)
        assert (caught.value.kind, caught.value.line) == ("misaligned_address", 5)
