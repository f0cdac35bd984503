"""The note's listing, host programs, and every error with its file, line and reason."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlearn.kernels import KernelError, cuda_c
from distlearn.kernels.cuda_c import HostError, SourceError

HERE = Path(__file__).parent

# Note 1's listing as it stands; "..." is the note's own.
NOTE = """\
// Host层面的矩阵乘，假定矩阵的维度是BLOCK_SIZE的整数倍
void MatMul(const Matrix A, const Matrix B, Matrix C) {
  // 从显存中加载A和B两个矩阵的数据
  cudaMalloc(..., size);
  cudaMemcpy(..., ..., size, cudaMemcpyHostToDevice);
  // 从设备显存中申请储存乘法运算结果的矩阵C
  cudaMalloc(&d_C.elements, size);
  // 调用内核
  MatMulKernel<<<dimGrid, dimBlock>>>(d_A, d_B, d_C); // <<<dimGrid, dimBlock>>>
  // 从显存中获取计算结果C
  cudaMemcpy(..., ..., size, cudaMemcpyDeviceToHost);
  // 释放显存
  cudaFree(...);
}
// 调用MatMul()以实现Kernel层的矩阵乘
__global__ void MatMulKernel(Matrix A, Matrix B, Matrix C) { // __global__
  // 每个Thread计算矩阵C中的一个元素，并将结果累加到CValue中
  float Cvalue = 0;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  for (int e = 0; e < A.width; ++e)
    Cvalue += A.elements[row * A.width + e] * B.elements[e * B.width + col];
  C.elements[row * C.width + col] = Cvalue;
}
"""


def matrix(array):
    return {"width": array.shape[1], "height": array.shape[0], "elements": array}


@pytest.fixture
def operands():
    rng = np.random.default_rng(0)
    return (rng.random((8, 12), dtype=np.float32), rng.random((12, 4), dtype=np.float32),
            np.zeros((8, 4), np.float32))


def test_the_notes_kernel_runs_as_it_stands(operands):
    A, B, C = operands
    program = cuda_c.load(NOTE)
    report = program["MatMulKernel"][(1, 2), (4, 4)](*map(matrix, operands))
    np.testing.assert_allclose(C, A.astype(float) @ B, rtol=1e-6)
    assert report.counters["flops"] == 2 * 8 * 12 * 4
    # by hand: a warp has no more than 16 threads here, so half of one: 2 blocks x 12 steps x 2
    assert report.counters["global_load_requests"] == 2 * 12 * 2
    with pytest.raises(HostError, match=r"^<cuda>:4: '...' stands for what the listing leaves out"):
        program.call("MatMul", *map(matrix, operands))


@pytest.mark.parametrize("executor", ["simt", "oracle"])
def test_the_notes_host_code_with_its_dots_written_out(operands, executor):
    A, B, C = operands
    run = cuda_c.load(HERE / "listing.cu").call("MatMul", *map(matrix, operands),
                                                executor=executor)
    np.testing.assert_allclose(C, A.astype(float) @ B, rtol=1e-6)
    (report,) = run.launches
    assert (report.kernel, report.grid, report.block) == ("MatMulKernel", (1, 2, 1), (4, 4, 1))


MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#define CHECK(call) do { cudaError_t e = (call); \
    if (e != cudaSuccess) { printf("%s:%d %s\n", __FILE__, __LINE__, #call); exit(2); } } while (0)
#define N 100
struct Counts { int even, odd; };
static int calls = 0;
__device__ int total;
__host__ __device__ int half_of(int x) { return x / 2; }
__global__ void count(const int *x, Counts *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(x[i] % 2 ? &c->odd : &c->even, half_of(2));
    atomicAdd(&total, x[i]);
}
int turn(void) { static int n = 4; return ++n; }
int fill(int *x, int n) {
    turn();
    int sum = 0;
    for (int i = 0; i < n; ++i) { x[i] = (i * 7) % 13; sum += x[i]; }
    calls++;
    return sum;
}
int main(int argc, char **argv) {
    int *h = (int *)malloc(N * sizeof(int)), *d = NULL;
    int want = fill(h, N), got = 0;
    Counts counts = {0, 0}, *d_counts;
    CHECK(cudaMalloc((void **)&d, N * sizeof *h));
    CHECK(cudaMalloc(&d_counts, sizeof(Counts)));
    CHECK(cudaMemcpy(d, h, N * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_counts, &counts, sizeof counts, cudaMemcpyHostToDevice));
    cudaMemcpyToSymbol(total, &got, sizeof(int));
    count<<<(N + 31) / 32, 32>>>(d, d_counts, N);
    CHECK(cudaDeviceSynchronize());
    cudaMemcpy(&counts, d_counts, sizeof(Counts), cudaMemcpyDeviceToHost);
    cudaMemcpyFromSymbol(&got, total, sizeof(int));
    printf("%d %d|%5.2f|%-4s|%03u|%x\n", counts.even, counts.odd, got / 3.0, "ab", 7u, 255);
    switch (argc) { case 1: puts("alone"); break; default: puts(argv[1]); }
    cudaFree(d); cudaFree(d_counts); free(h);
    return want == got && counts.even + counts.odd == N && calls == 1 && turn() == 6 ? 0 : 1;
}
"""


def test_a_whole_program():
    x = np.arange(100) * 7 % 13
    run = cuda_c.load(MAIN).run("word")
    assert run.value == 0
    assert run.output == (f"{(x % 2 == 0).sum()} {(x % 2).sum()}|{x.sum() / 3:5.2f}|ab  |007|ff\n"
                          "word\n")
    assert len(run.launches) == 1


IDIOMS = r"""
#include <stdio.h>
#include <cuda_runtime.h>
#ifndef N
#define N 8
#endif
typedef struct Node { int v; struct Node *next; } Node;
struct Params { int n; float alpha; };
static inline __host__ __device__ int divUp(int a, int b) { return (a + b - 1) / b; }
__device__ __forceinline__ float sq(float x) { return x * x; }
extern "C" {
__global__ void k(float (*A)[N], const float B[N][N], struct Params p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < p.n && j < p.n) A[j][i] = p.alpha * sq(B[i][j]);
}
}
float gA[N][N];
void fill(float *a, int n) { for (; n-- > 0; ) *a++ = n; }
int main() {
  float B[N][N], (*dA)[N], *dB;
  Node a = {1, NULL}, b = {2, &a};
  for (Node *p = &b; p; p = p->next) printf("%d ", p->v);
  cudaError_t err = cudaSuccess;
  err = cudaMalloc((void **)&dA, N * N * sizeof(float));
  if (err != cudaSuccess) {
    fprintf(stderr, "Failed (error code %s)!\n", cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
  cudaMalloc(&dB, sizeof(B));
  fill(&B[0][0], N * N);
  cudaMemcpy(dB, B, sizeof B, cudaMemcpyDefault);
  struct Params p = {N, 0.5f};
  const dim3 block(4, 4);
  dim3 grid = dim3(divUp(N, block.x), divUp(N, block.y));
  k <<< grid,
        block >>> (dA, (const float (*)[N])dB, p);
  cudaMemcpy(gA, dA, sizeof(gA), cudaMemcpyDeviceToHost);
  int bad = 0;
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++)
    if (fabs(gA[i][j] - 0.5f * B[j][i] * B[j][i]) > 1e-5) bad++;
  char name[] = "abc", *q = name;
  while (*q) { *q += 1; ++q; }
  printf("bad %d %s %ld %c %e\n", bad, name, (long)(q - name), 'x', 12345.678);
  float x = 1 / 3, y = 1.0 / 3; unsigned long long big = 1ULL << 40;
  printf("%f %f %llu %.3g %5d|%-5d|%05.1f %i\n", x, y, big, 1e-7, 42, 42, 3.14159, -3);
  return bad;
}
"""


def test_idioms_of_host_code():
    run = cuda_c.load(IDIOMS).run()
    assert run.value == 0
    assert run.output == ("2 1 bad 0 bcd 3 x 1.234568e+04\n"
                          "0.000000 0.333333 1099511627776 1e-07    42|42   |003.1 -3\n")
    assert run.launches[0].grid == (2, 2, 1)


# gcc 12 prints the same for the lines without a launch; dim3's constructor gives 1 for what is
# left out (CUDA C++ Programming Guide, "dim3").
LENGTHS = """
__global__ void k(int *d, int n) { d[threadIdx.y * n + threadIdx.x] = blockDim.y; }
int main(int argc, char **argv) {
  const int n = 4;
  const size_t rows = n / 2;
  int a[rows * n], b[n][2] = {1, 2, 3};
  dim3 grid, block;
  block.x = n; block.y = rows;
  int *d;
  cudaMalloc(&d, sizeof(a));
  k<<<grid, block>>>(d, n);
  cudaMemcpy(a, d, sizeof a, cudaMemcpyDeviceToHost);
  printf("%zu %zu %d %u %u %d\\n", sizeof(a), sizeof(b), a[7], grid.z, block.z, b[1][0]);
  const char x[] = {1, 2, 3}; unsigned char y[] = {1, 2, 200};
  printf("%d %d %d\\n", memcmp(x, y, 2) == 0, memcmp(x, y, 3) < 0, memcmp(y, x, 3) > 0);
  printf("%d %d %g %g %d\\n", atoi("  -12abc"), atoi("x"), atof(" -2.5e2x"), atof(".5"),
         argc > 1 ? atoi(argv[1]) : 0);
  return 0;
}
"""


def test_lengths_of_arrays_blocks_and_texts():
    run = cuda_c.load(LENGTHS).run("37")
    assert run.output == "32 32 2 1 1 3\n1 1 1\n-12 0 -250 0.5 37\n"
    assert (run.launches[0].grid, run.launches[0].block) == ((1, 1, 1), (4, 2, 1))


DEFAULTS = """
#include <iostream>
using namespace std;
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort=true)
{
  printf("%d %d;", line, abort);
  if (code != cudaSuccess && abort) exit(code);
}
__device__ float f(float x, float y = 2, int z = (1 + 3) * 2);
__device__ float f(float x, float y, int z) { return 100 * x + 10 * y + z; }
__global__ void k(float *y) {
  int t = threadIdx.x;
  y[t] = f(t) + f(f(t, 1),
      t, 3);
}
int main() {
  float *y, h[2];
  gpuErrchk(cudaMalloc(&y, 8));
  k<<<1, 2>>>(y);
  gpuErrchk(cudaMemcpy(h, y, 8, cudaMemcpyDeviceToHost))
  gpuAssert(cudaSuccess, __FILE__, __LINE__, false);
  printf("%g %g", h[0], h[1]);
  return 0;
}
"""


def test_default_arguments():
    # f(0) = 28, f(0, 1) = 18, f(18, 0, 3) = 1803; f(1) = 128, f(1, 1) = 118, f(118, 1, 3) = 11813
    assert cuda_c.load(DEFAULTS).run().output == "19 1;21 1;22 0;1831 11941"


ABSENT = """
typedef struct { int n; float *bias; } Layer;
__device__ float plus(const float *b, int i) { return b ? b[i] : 100; }
__global__ void k(float *y, float *sums, Layer l) {
  int t = threadIdx.x;
  const float *b = l.bias;
  y[t] += b == NULL ? 1 : b[t];
  if (t == l.n - 1 && sums != NULL) sums[blockIdx.x] = y[t];
  if (!sums) y[t] += plus(l.bias, t);
}
void run(float *y, float *bias) {
  float *dy, *sum, *db = NULL;
  cudaMalloc(&dy, 16); cudaMalloc(&sum, 4);
  cudaMemcpy(dy, y, 16, cudaMemcpyHostToDevice);
  if (bias != nullptr) { cudaMalloc(&db, 16); cudaMemcpy(db, bias, 16, cudaMemcpyHostToDevice); }
  Layer l = {4, db};
  k<<<1, 4>>>(dy, nullptr, l);
  k<<<1, 4>>>(dy, sum, l);
  cudaMemcpy(y, dy, 16, cudaMemcpyDeviceToHost);
  cudaMemcpy(y, sum, 4, cudaMemcpyDeviceToHost);
}
"""


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize(("bias", "wanted"), [
    (np.arange(4, dtype=np.float32), [9, 3, 6, 9]), (0, [102, 102, 102, 102])])
def test_a_pointer_that_is_null_is_known_in_kernels(executor, bias, wanted):
    y = np.zeros(4, np.float32)
    cuda_c.load(ABSENT).call("run", y, bias, executor=executor)
    assert y.tolist() == wanted  # y[0] is the sum


BAD = {
    "void f() {\n  int x = 3\n  x = 4;\n}": (3, "no C before 'x'; is a ; missing after '3'"),
    "void f() {\n  int x = (3;\n}": (3, "this } closes nothing; the . of line 2 is open"),
    "void f() {\n": (1, "this { is not closed"),
    "void f() }\n": (1, "this } closes nothing"),
    "void f() {\n  foo y;\n}": (2, "is 'foo' a type"),
    "int x;\n__global__ void k(int n, flaot *y) {}": (2, "is 'flaot' a type"),
    "int x;\n/* no end": (2, "comment does not end"),
    "#if 1\nint x;\n": (1, "#if has no #endif"),
    "#define F(x) x\nint y = F(1, 2);\n": (2, "macro F takes 1 arguments, 2 given"),
    "#include <thrust/sort.h>\n": (1, "header 'thrust/sort.h' is not known"),
    "\ntemplate <int N>\n__global__ void k(float *x) { x[0] = N; }": (2, "templates are C"),
    "__global__ void k() {}\nvoid f() {\n k<3><<<1, 1>>>();\n}": (3, "templates are C"),
    "void f(int &x) { x = 1; }": (1, "references are C"),
    "void f() {\n auto x = 1;\n}": (2, "'auto' is C"),
    "void f() {\n std::cout << 1;\n}": (2, "'::' is C"),
    "void f() {\n a: goto a;\n}": (2, "goto is not modelled"),
    "void f() {\n nvcuda::wmma::fragment<float> a;\n}": (2, "wmma is C"),
    "void f() {\n cg::grid_group g;\n}": (2, "cooperative groups are C"),
    "__global__ void k(\n  uchar4 *p) {}": (2, "uchar4 is not modelled: vectors are of float"),
    "void f() {\n int cg = 3, wmma = cg, half2 = 1;\n half2 h;\n}": (3, "pairs of halves"),
    "__global__ int k() { return 1; }": (1, "must return void"),
    "void f() { k<<<1, 2>>; }": (1, "has no >>>"),
    "float a[0];": (1, "length of an array"),
    "int x = 09;": (1, "octal"),
    "void f(a, b) {}": (1, "parameter a has no type"),
    "void f() {\n  int x;\n  x = ;\n}\n\n": (3, "malformed C: Invalid expression"),
    "void f() {\n  k<<<1, 2>>>(1,);\n}\n": (2, "malformed C: Invalid expression"),
    "void f() {\n  int 3x;\n}\n": (2, "Invalid"),
    "typedef struct {\n int a };\n": (2, "no C before '}'; |no C before '}'"),
    "int f() {\n return 'ab';\n}": (2, "character literal"),
    "#frob\n": (1, "#frob is no directive"),
    "#if 1\n#else\n#else\n#endif\n": (3, "#else after #else"),
    "#if 0\n#else\n": (1, "#if has no #endif"),
    "void f() {\n int i = 0;\n float i;\n}": (3, "i is declared twice"),
    "__global__ void k(const float *x) {\n x[0] += 1;\n}": (2, "x is declared const: its memory"),
    "void f(const float x[4][4]) {\n x[0][1]++;\n}": (2, "x is declared const: its memory"),
    "void f() {\n const int n = 4;\n n = 5;\n}": (3, "n is declared const: it cannot"),
    "struct S { int a; };\nvoid f(const struct S *s) {\n s->a = 1;\n}": (3, "s is declared const"),
}


@pytest.mark.parametrize("text", BAD)
def test_malformed_or_beyond_the_subset(text):
    line, reason = BAD[text]
    with pytest.raises(SourceError, match=reason) as caught:
        cuda_c.load(text)
    assert (caught.value.filename, caught.value.lineno) == ("<cuda>", line)
    assert str(caught.value).startswith(f"<cuda>:{line}: ")


def test_const_and_names_as_c_allows_them():
    # gcc -Wall has nothing to say about the first function
    run = cuda_c.load("""struct S { int *data; int n; };
int f(const struct S *s, const int *p, int *const q, int i) {
  const int *const *r = &p;
  s->data[1] = 5; p = *r + 1; q[0] = *p;
  for (int i = 0; i < 2; i++) { int p = i; p++; q[1] = p; }
  { const int n = 1; q[2] = n; }
  { int n = i; n++; q[2] += n; }
  return s[0].data[1] + p[0];
}
int main() {
  int a[] = {1, 2, 3, 4}, b[3];
  struct S s = {a, 4};
  int c = f(&s, a, b, 7);
  printf("%d %d %d %d %d\\n", c, a[1], b[0], b[1], b[2]);
}
""").run()
    assert run.output == "10 5 5 2 9\n"


@settings(max_examples=30)
@given(st.integers(0, 10**9), st.integers(0, 10**9), st.booleans())
def test_a_token_lost_or_changed_is_refused_or_still_c(place, other, lost):
    text = (HERE / "teaching.cu").read_text()
    tokens = list(re.finditer(r"\w+|[^\w\s]", text))
    token = tokens[place % len(tokens)]
    new = "" if lost else tokens[other % len(tokens)].group()
    try:
        cuda_c.load(text[:token.start()] + new + text[token.end():])
    except SourceError as error:
        assert 1 <= error.lineno <= text.count("\n") + 1


KERNELS = {
    "y[0] = printf(\"x\");": "printf has no place",
    "y[0] = z;": "'z' is not declared",
    "y[0] = frob(1);": r"frob\(\) is not known",
    "y = &n;": "used as a",
    "y[0] = 1.5 % 2;": "% of double and int",
    "float4 v = ((float4 *)y)[0]; y[0] = v.q;": "no field 'q'",
    "y[1.5f] = 0;": "an index must be an integer",
    "y->x = 1;": "has no field",
    "extern __shared__ float s[]; s[0] = 1;": "0 bytes of dynamic shared memory",
    "__shared__ float s = 1;": "cannot be initialised",
    "switch (n) { case 1: y[0] = 1; case 2: y[0] = 2; }": "falls through",
    "int *q = (int *)y; q[0] = 1;": "memory read as another type",
    "y[0] = __shfl_sync(~0u, n, 0, n);": "width of __shfl_sync must be 1, 2, 4",
    "return 1;": "returns nothing",
    "break;": "outside of a loop",
    "rec(1);": "calls itself",
    "y[0] = forgets(1);": r"forgets\(\) returns no int",
    "h(1);": "no __device__ function",
    "y[0] = sinf(1, 2);": "takes 1 arguments, 2 given",
    "y[0] = hostonly;": "variable of the host",
}


@pytest.mark.parametrize("body", KERNELS)
def test_kernels_beyond_the_subset(body):
    text = ("__device__ int rec(int x) { return rec(x); } __device__ int forgets(int x) { x++; }\n"
            "int hostonly;\nvoid h(int x) {}\n"
            f"__global__ void k(float *y, int n) {{\n  {body}\n}}\n")
    program = cuda_c.load(text)
    with pytest.raises(SourceError, match=KERNELS[body]) as caught:
        program["k"][1, 32](np.zeros(64, np.float32), 3)
    assert caught.value.lineno == (
        1 if "itself" in KERNELS[body] or "forgets" in body else 5)


WRONG = {  # kinds of errors that both executors name, on line 3
    "y[n] = 0;": "out_of_bounds",
    "y[threadIdx.x - 1] = 0;": "out_of_bounds",  # threadIdx is unsigned: 0 - 1 is 4294967295
    "y[threadIdx.x / 2] = threadIdx.x;": "global_race",
    "if (threadIdx.x < 5) __syncthreads();": "barrier_divergence",
    "__shared__ float s[2][2]; y[threadIdx.x] = s[1][1];": "uninitialised_shared_read",
    "__shared__ int s[9][8]; s[threadIdx.x / 8][9] = 1;": "out_of_bounds",
    "int big = n * n * 1024; y[0] = big;": "int32_overflow",
    "y[threadIdx.x] = n / (n - 64);": "division_by_zero",
    "float v; if (threadIdx.x == 3) v = 1; y[threadIdx.x] = v;": "unbound_variable",
    "while (y[0] == 0);": "spin_wait",
}


@pytest.mark.parametrize("executor", ["simt", "oracle"])
@pytest.mark.parametrize("body", WRONG)
def test_errors_of_kernels_have_lines_of_the_c_source(body, executor):
    text = f"__global__ void k(float *y, int n)\n{{\n  {body}\n}}\n"
    if "n * n" in body:
        text = text.replace("1024", "1024 * 1024")
    with pytest.raises(KernelError) as caught:
        cuda_c.load(text)["k"].launch(1, 32, np.zeros(64, np.float32), 64, executor=executor)
    assert caught.value.kind == WRONG[body]
    if (WRONG[body], executor) != ("unbound_variable", "oracle"):  # Python names no line there
        assert caught.value.line == 3


HOSTS = {
    "float *h = (float *)malloc(40); k<<<1, 32>>>(h);":
        "gets for y a pointer to the memory of line 3, which is host memory",
    "float *d; cudaMalloc(&d, 40); d[0] = 1;": "is device memory, and is used as host memory",
    "float h[4]; float *d; cudaMalloc(&d, 40); cudaMemcpy(d, h, 40, cudaMemcpyHostToDevice);":
        "40 bytes at byte 0 of h, which has 16",
    "float h[4], *d; cudaMalloc(&d, 16); cudaMemcpy(d, h, 16, cudaMemcpyDeviceToHost);":
        "is device memory, and is used as host memory|is host memory",
    "float *d; cudaMalloc(&d, 40); cudaFree(d); k<<<1, 1>>>(d);": "has been freed",
    "int *p = NULL; *p = 3;": "the pointer is NULL",
    "int a[3]; a[3] = 1;": "4 bytes at byte 12 of a, which has 12",
    "int x; int y = x;": "x is read before it has a value",
    "int x = 1 / 0;": "divided by zero",
    "int x = 2147483647; x = x + 1;": "cannot hold",
    "k(NULL);": "launch it with k<<<grid, block>>>",
    "frob();": r"frob\(\) is not known",
    "k<<<1>>>(NULL);": "takes a grid, a block",
    "cudaEvent_t e; cudaEventCreate(&e);": "time is not measured",
    "assert(1 == 2);": "assertion",
    "printf(\"%d\", 1.5);": "printf's %d is given a double",
    "f();": "nested too deep",
}


@pytest.mark.parametrize("body", HOSTS)
def test_errors_of_hosts(body):
    text = f"__global__ void k(float *y) {{ }}\nvoid f() {{\n  {body}\n}}\n"
    with pytest.raises(HostError, match=HOSTS[body]) as caught:
        cuda_c.load(text).call("f")
    assert (caught.value.filename, caught.value.line) == ("<cuda>", 3)


def test_arguments_that_do_not_fit():
    program = cuda_c.load("__global__ void k(float *y, int n) { y[0] = n; }")
    y = np.zeros(4, np.float32)
    for arguments, reason in (((y,), "takes 2 arguments"), ((y, 1 << 40), "int cannot hold"),
                              ((y, 1.5), "int cannot hold"), ((y.astype(int), 1), "float32"),
                              ((y[::2], 1), "C-contiguous"), ((y, y), "is a int, not ndarray")):
        with pytest.raises(KernelError, match=reason) as caught:
            program["k"][1, 1](*arguments)
        assert caught.value.kind == "bad_launch"
    with pytest.raises(KeyError, match="no kernel 'q'; it has k"):
        program["q"]


def test_pointers_into_the_middle_of_device_memory():
    text = """
    __global__ void shift(float *y, int n) { y[(int)threadIdx.x - 1] = n; }
    void f(float *out) {
        float *d;
        cudaMalloc(&d, 8 * sizeof(float));
        cudaMemset(d, 0, 8 * sizeof(float));
        shift<<<1, 2>>>(d + 3, 5);
        cudaMemcpy(out, d, 8 * sizeof(float), cudaMemcpyDeviceToHost);
    }"""
    out = np.ones(8, np.float32)
    cuda_c.load(text).call("f", out)
    assert out.tolist() == [0, 0, 5, 5, 0, 0, 0, 0]


def test_structures_in_registers_and_in_shared_memory():
    """Sub-matrices as the programming guide takes them: structures by value, pointers inside."""
    text = """
    #define B 4
    typedef struct { int width, height, stride; float *elements; } Part;
    __device__ float get(const Part A, int r, int c) { return A.elements[r * A.stride + c]; }
    __device__ void set(Part A, int r, int c, float v) { A.elements[r * A.stride + c] = v; }
    __device__ Part part(Part A, int row, int col)
    {
        Part sub;
        sub.width = sub.height = B;
        sub.stride = A.stride;
        sub.elements = &A.elements[A.stride * B * row + B * col];
        return sub;
    }
    __global__ void multiply(Part A, Part B_, Part C)
    {
        Part Csub = part(C, blockIdx.y, blockIdx.x);
        float value = 0;
        int row = threadIdx.y, col = threadIdx.x;
        for (int m = 0; m < A.width / B; ++m) {
            Part Asub = part(A, blockIdx.y, m), Bsub = part(B_, m, blockIdx.x);
            __shared__ float As[B][B];
            __shared__ float Bs[B][B];
            As[row][col] = get(Asub, row, col);
            Bs[row][col] = get(Bsub, row, col);
            __syncthreads();
            for (int e = 0; e < B; ++e) value += As[row][e] * Bs[e][col];
            __syncthreads();
        }
        set(Csub, row, col, value);
    }"""
    rng = np.random.default_rng(1)
    A, B = rng.random((8, 12), dtype=np.float32), rng.random((12, 4), dtype=np.float32)
    counts = []
    for executor in ("simt", "oracle"):
        C = np.zeros((8, 4), np.float32)
        parts = [matrix(a) | {"stride": a.shape[1]} for a in (A, B, C)]
        counts.append(cuda_c.load(text)["multiply"].launch((1, 2), (4, 4), *parts,
                                                           executor=executor).counters)
        np.testing.assert_allclose(C, A.astype(float) @ B, rtol=1e-6)
    assert counts[0] == counts[1]
    assert counts[0]["flops"] == 2 * 8 * 12 * 4


def test_memory_that_two_pointers_share_is_seen_as_one():
    """A pointer that is seated again must not hide that an array is written."""
    text = """
    __global__ void k(float *a, float *b, int swap) {
        float *to = a, *from = b;
        if (swap) { to = b; from = a; }
        to[threadIdx.x] = from[(threadIdx.x + 1) % 32] + 1;
    }"""
    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    program = cuda_c.load(text)
    program["k"][1, 32](a, b, 1)
    assert b.tolist() == [*range(2, 33), 1]
    for executor in ("simt", "oracle"):
        with pytest.raises(KernelError) as caught:
            program["k"].launch(1, 32, a, a, 0, executor=executor)
        assert caught.value.kind == "global_race"
