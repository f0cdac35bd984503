// Kernels as courses write them; their Python twins are in test_twins.py.
#include <cuda_runtime.h>
#include <math.h>

#define TILE 8
#define RADIUS 2
#define BINS 16
#define IDX(row, col, width) ((row) * (width) + (col))
#define CLAMP(x, low, high) \
    ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

typedef struct {
    int width;
    int height;
    float *elements;
} Matrix;

const int PAD = TILE + 1;
__constant__ float weights[2 * RADIUS + 1];

// 1: a grid-stride loop
__global__ void saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        y[i] = a * x[i] + y[i];
}

// 2: the product of matrices in shared memory, two dimensions, ragged edges
__global__ void tiled(Matrix A, Matrix B, Matrix C)
{
    __shared__ float As[TILE][TILE], Bs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty;
    int col = blockIdx.x * TILE + tx;
    float sum = 0;
    for (int t = 0; t < (A.width + TILE - 1) / TILE; ++t) {
        As[ty][tx] = row < A.height && t * TILE + tx < A.width
            ? A.elements[IDX(row, t * TILE + tx, A.width)] : 0.0f;
        Bs[ty][tx] = t * TILE + ty < B.height && col < B.width
            ? B.elements[IDX(t * TILE + ty, col, B.width)] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    if (row < C.height && col < C.width)
        C.elements[IDX(row, col, C.width)] = sum;
}

// 3: a transposition through padded shared memory
__global__ void transpose(float *out, const float *in, int width, int height)
{
    __shared__ float tile[TILE][PAD];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    if (x < height && y < width)
        out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

// 4: a sum in dynamic shared memory, halving
__global__ void reduce(const float *in, float *out, unsigned int n)
{
    extern __shared__ float partial[];
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x * 2 + tid;
    float mine = i < n ? in[i] : 0.0f;
    if (i + blockDim.x < n)
        mine += in[i + blockDim.x];
    partial[tid] = mine;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s)
            partial[tid] += partial[tid + s];
        __syncthreads();
    }
    if (tid == 0)
        out[blockIdx.x] = partial[0];
}

// 5: a histogram with atomics in shared, then global memory
__global__ void histogram(const int *data, int *counts, int n)
{
    __shared__ int local[BINS];
    if (threadIdx.x < BINS)
        local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&local[data[i] % BINS], 1);
    __syncthreads();
    if (threadIdx.x < BINS)
        atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

// 6: a stencil with a halo and constant weights
__global__ void stencil(const float *in, float *out, int n)
{
    __shared__ float window[32 + 2 * RADIUS];
    int g = blockIdx.x * blockDim.x + threadIdx.x;
    int s = threadIdx.x + RADIUS;
    window[s] = in[CLAMP(g, 0, n - 1)];
    if (threadIdx.x < RADIUS) {
        window[s - RADIUS] = in[CLAMP(g - RADIUS, 0, n - 1)];
        window[s + 32] = in[CLAMP(g + 32, 0, n - 1)];
    }
    __syncthreads();
    float sum = 0.0f;
    for (int o = -RADIUS; o <= RADIUS; o++)
        sum += weights[o + RADIUS] * window[s + o];
    if (g < n)
        out[g] = sum;
}

// 7: a warp's sum by shuffles, in a device function
__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__global__ void dots(const float *a, const float *b, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = warp_sum(a[i] * b[i]);
    if (threadIdx.x % warpSize == 0)
        out[i / 32] = sum;
}

// 8: an inclusive scan with two buffers in one array
__global__ void scan(const int *in, int *out, int n)
{
    __shared__ int buffer[2][64];
    int t = threadIdx.x, from = 0, to = 1;
    buffer[0][t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int step = 1; step < n; step *= 2) {
        if (t >= step)
            buffer[to][t] = buffer[from][t] + buffer[from][t - step];
        else
            buffer[to][t] = buffer[from][t];
        to = from;
        from = 1 - to;
        __syncthreads();
    }
    if (t < n)
        out[t] = buffer[from][t];
}

// 9: a register tile of 2 x 2
__global__ void register_tile(const float *A, const float *B, float *C, int n)
{
    float acc[2][2] = {0.0f}, a[2], b[2];
    const int row = (blockIdx.y * blockDim.y + threadIdx.y) * 2;
    const int col = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    for (int k = 0; k < n; ++k) {
        for (int i = 0; i < 2; ++i)
            a[i] = A[(row + i) * n + k];
        for (int j = 0; j < 2; ++j)
            b[j] = B[k * n + col + j];
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j)
                acc[i][j] += a[i] * b[j];
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            C[(row + i) * n + col + j] = acc[i][j];
}

// 10: a sparse matrix times a vector: bounds that are loaded
__global__ void spmv(int rows, const int *start, const int *column, const float *value,
                     const float *x, float *y)
{
    int row = blockDim.x * blockIdx.x + threadIdx.x;
    if (row >= rows)
        return;
    float dot = 0;
    for (int at = start[row]; at < start[row + 1]; at++)
        dot += value[at] * x[column[at]];
    y[row] = dot;
}

// 11: a loop that data ends
__global__ void mandelbrot(int *out, int width, int height, int most)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x;
    int py = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = 3.0f * px / width - 2.0f, cy = 2.0f * py / height - 1.0f;
    float x = 0.0f, y = 0.0f;
    int turns = 0;
    while (turns < most) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        if (x * x + y * y > 4.0f)
            break;
        turns++;
    }
    out[py * width + px] = turns;
}

// 12: structures in memory, pointers that move
struct Particle {
    float x, y, mass;
};

__global__ void centre(const Particle *p, float *out, int n)
{
    const Particle *q = p + threadIdx.x * n;
    float weight = 0.0f, x = 0.0f, y = 0.0f;
    for (int k = 0; k < n; k++, q++) {
        x += q->mass * q->x;
        y += q->mass * q->y;
        weight += q->mass;
    }
    float *to = out + 2 * threadIdx.x;
    *to++ = x / weight;
    *to = y / weight;
}
