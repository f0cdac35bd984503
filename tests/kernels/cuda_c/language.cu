// Kernels that use what teaching.cu does not: warps, atomics, vectors, halves, dynamic memory.
// Lines that count something end in a letter; the twins in test_language.py have the same letters.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <limits.h>
#include <stdio.h>

#define FULL_MASK 0xffffffffu
#define WARPS(threads) (((threads) + warpSize - 1) / warpSize)
#define TILE_DIM 16
#define BLOCK_ROWS 4
#define SWAP(a, b) do { int held = a; a = b; b = held; } while (0)
#define AS_INT4(p) (*reinterpret_cast<const int4 *>(&(p)))

// 1: a block's sum: warps by butterfly, their sums by the first warp
__inline__ __device__ float warp_all_sum(float value)
{
#pragma unroll
    for (int mask = warpSize / 2; mask > 0; mask >>= 1)  // z
        value += __shfl_xor_sync(FULL_MASK, value, mask);  // a
    return value;
}

__global__ void block_sums(const float *__restrict__ in, float *out, unsigned n)
{
    static __shared__ float sums[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float mine = 0.0f;
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    for (; i < n; i += gridDim.x * blockDim.x)  // y
        mine += __ldg(&in[i]);  // b
    mine = warp_all_sum(mine);
    if (lane == 0)  // c
        sums[warp] = mine;  // d
    __syncthreads();  // e
    if (warp == 0) {  // f
        mine = lane < WARPS(blockDim.x) ? sums[lane] : 0.0f;  // g
        mine = warp_all_sum(mine);
        if (!lane)  // h
            out[blockIdx.x] = mine;  // i
    }
}

// 2: stream compaction: one atomic a warp
__global__ void compact(const int *in, int *out, unsigned int *count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % warpSize;
    bool keep = i < n && in[i] > 0;  // a
    unsigned votes = __ballot_sync(FULL_MASK, keep);
    if (votes == 0)  // b
        return;
    int leader = __ffs(votes) - 1;
    unsigned at = 0;
    if (lane == leader)  // c
        at = atomicAdd(count, __popc(votes));  // d
    at = __shfl_sync(FULL_MASK, at, leader);
    at += __popc(votes & ((1u << lane) - 1));
    if (keep)  // e
        out[at] = in[i];  // f
}

// 3: a histogram in which equal values of a warp are counted first
__global__ void match_histogram(const int *data, int *bins, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;  // a
    unsigned active = __activemask();
    unsigned peers = __match_any_sync(active, data[i]);  // b
    int alike;
    unsigned all = __match_all_sync(active, data[i], &alike);  // c
    if (__ffs(peers) - 1 == threadIdx.x % 32)  // d
        atomicAdd(bins + data[i], alike ? __popc(all) : __popc(peers));  // e
}

// 4: an atomic of one's own by compare and swap, and those that CUDA has
__device__ int atomic_product(int *address, int factor, int modulus)
{
    int old = atomicAdd(address, 0), assumed;  // a
    do {
        assumed = old;
        old = atomicCAS(address, assumed, assumed * factor % modulus);  // b
    } while (assumed != old);  // c
    return old;
}

__global__ void atomics(const int *in, int *out, unsigned *wrapped, int modulus)
{
    int i = threadIdx.x;
    atomic_product(&out[0], in[i], modulus);  // m
    atomicMax(&out[1], in[i]);  // d
    atomicMin(out + 2, in[i]);  // e
    atomicExch(&out[3 + i], in[i]);  // f
    atomicOr(&out[35], 1 << in[i] % 31);  // g
    atomicAnd(&out[36], ~(1 << in[i] % 31));  // h
    atomicXor(&out[37], in[i]);  // i
    atomicSub(&out[38], in[i]);  // j
    atomicInc(&wrapped[0], 5);  // k
    atomicDec(&wrapped[1], 6);  // l
}

// 5: a transposition of tiles by fewer threads than elements
__global__ void transpose_rows(float *odata, const float *idata)
{
    __shared__ float tile[TILE_DIM][TILE_DIM + 1];
    int x = blockIdx.x * TILE_DIM + threadIdx.x;
    int y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];  // a
    __syncthreads();  // b
    x = blockIdx.y * TILE_DIM + threadIdx.x;
    y = blockIdx.x * TILE_DIM + threadIdx.y;
    width = gridDim.y * TILE_DIM;
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        odata[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];  // c
}

// 6: two arrays of different types in dynamic shared memory: the least value and its place
__global__ void argmin(const float *in, float *least, int *place, int n)
{
    extern __shared__ unsigned char memory[];
    float *values = reinterpret_cast<float *>(memory);
    int *places = (int *)&values[blockDim.x];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    values[t] = i < n ? in[i] : INFINITY;  // a
    places[t] = i;  // b
    for (int s = blockDim.x / 2; s; s >>= 1) {  // z
        __syncthreads();  // c
        if (t < s && values[t + s] < values[t]) {  // d
            values[t] = values[t + s];  // e
            places[t] = places[t + s];  // f
        }
    }
    if (t == 0) {  // g
        least[blockIdx.x] = values[0];  // h
        place[blockIdx.x] = places[0];  // i
    }
}

// 7: vectors of four: a + b and a gather through int4
__global__ void vectors(const float4 *a, const float4 *b, const int *from, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * i >= n) return;  // a
    float4 u = a[i];  // b
    const float4 v = b[i];  // c
    u.x += v.x; u.y += v.y; u.z -= v.z; u.w *= v.w;  // d
    int4 where = AS_INT4(from[4 * i]);  // e
    out[where.x] = u.x;  // f
    out[where.y] = u.y;  // g
    out[where.z] = u.z;  // h
    out[where.w] = u.w;  // i
}

// 8: halves: a * x + y in half, the sum of squares in float
__global__ void halves(__half a, const __half *x, __half *y, float *norm)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __half made = __hadd(__hmul(a, x[i]), y[i]);  // a
    if (__hgt(made, __float2half(2.0f)))  // b
        made = made - a;  // c
    y[i] = made;  // d
    float wide = __half2float(made);
    atomicAdd(norm, wide * wide);  // e
}

// 9: a row a warp, read through the read-only cache
__global__ void gemv(const float *__restrict__ A, const float *__restrict__ x, float *y,
                     int rows, int columns)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    int lane = threadIdx.x & (warpSize - 1);
    if (row >= rows) return;  // a
    float sum = 0;
    #pragma unroll 4
    for (int c = lane; c < columns; c += warpSize)
        sum = fmaf(__ldg(A + row * columns + c), __ldg(x + c), sum);  // b
    for (int offset = 16; offset; offset >>= 1)  // z
        sum += __shfl_down_sync(0xffffffff, sum, offset);  // c
    if (lane == 0) y[row] = sum;  // d
}

// 10: the game of life: neighbours that exist
__device__ __forceinline__ int alive(const unsigned char *cells, int x, int y, int w, int h)
{
    return x >= 0 && x < w && y >= 0 && y < h && cells[y * w + x] ? 1 : 0;  // a
}

__global__ void life(const unsigned char *before, unsigned char *after, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)  // b
        return;
    int around = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy)  // c
                around += alive(before, x + dx, y + dy, w, h);
    after[y * w + x] = around == 3 || (around == 2 && before[y * w + x]);  // d
}

// 11: a machine of one register: do, switch, break and continue
enum { ADD, HALVE, TRIPLE, STOP = 9 };

__global__ void machine(const int *program, const int *start, int *result, int length, int most)
{
    int t = threadIdx.x, at = 0, turns = 0;
    long long value = start[t];  // a
    do {
        int op = program[at];  // b
        at = (at + 1) % length;
        switch (op) {  // c
        case ADD:
            value += t;
            break;
        case HALVE: {
            if (value & 1)  // d
                continue;
            value /= 2;
            break;
        }
        case TRIPLE:
        case TRIPLE + 1:
            value = 3 * value + 1;
            break;
        default:
            result[t] = (int)(value % 1000);  // e
            return;
        }
        if (value > 100000)  // f
            break;
    } while (++turns < most);  // g
    result[t] = -turns;  // h
}

// 12: a bitonic sort in shared memory
__device__ void order(int *a, int *b, bool up)
{
    if ((*a > *b) == up) {  // a
        int held = *a;  // b
        *a = *b;  // c
        *b = held;  // d
    }
}

__global__ void bitonic(int *keys)
{
    extern __shared__ int s[];
    const unsigned t = threadIdx.x;
    s[t] = keys[t];  // e
    __syncthreads();  // f
    for (unsigned k = 2; k <= blockDim.x; k <<= 1) {  // g
        for (unsigned j = k >> 1; j > 0; j >>= 1) {  // h
            unsigned other = t ^ j;
            if (other > t)  // i
                order(&s[t], s + other, (t & k) == 0);
            __syncthreads();  // j
        }
    }
    keys[t] = s[t];  // k
}

// 13: a polynomial whose coefficients lie in constant memory
#define DEGREE 5
__constant__ float coefficients[DEGREE + 1];

__global__ void horner(const float *x, float *y, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) {  // a
        float value = coefficients[DEGREE];  // b
#pragma unroll
        for (int k = DEGREE - 1; k >= 0; k--)
            value = value * x[i] + coefficients[k];  // c
        y[i] = value;  // d
    }
}

// 14: bodies that attract: float4 in shared memory, a structure as the argument
typedef struct {
    int count;
    struct { float softening, step; } constants;
    float4 *bodies;
} System;

__device__ float3 pull(float4 a, float4 b, float3 sum, float softening)
{
    float3 r = make_float3(b.x - a.x, b.y - a.y, b.z - a.z);  // a
    float inverse = rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + softening);  // b
    float force = b.w * inverse * inverse * inverse;  // c
    sum.x += r.x * force;  // d
    sum.y += r.y * force;  // e
    sum.z += r.z * force;  // f
    return sum;
}

__global__ void bodies(System system, float *velocity)
{
    __shared__ float4 tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 mine = system.bodies[i];  // g
    float3 sum = {0.0f, 0.0f, 0.0f};
    for (int first = 0; first < system.count; first += blockDim.x) {
        tile[threadIdx.x] = system.bodies[first + threadIdx.x];  // h
        __syncthreads();  // i
        for (int j = 0; j < blockDim.x; j++)
            sum = pull(mine, tile[j], sum, system.constants.softening);  // j
        __syncthreads();  // k
    }
    velocity[3 * i] += sum.x * system.constants.step;  // l
    velocity[3 * i + 1] += sum.y * system.constants.step;  // m
    velocity[3 * i + 2] += sum.z * system.constants.step;  // n
}
