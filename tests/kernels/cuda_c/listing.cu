// Host层面的矩阵乘，假定矩阵的维度是BLOCK_SIZE的整数倍
#define BLOCK_SIZE 4
__global__ void MatMulKernel(Matrix A, Matrix B, Matrix C);
void MatMul(const Matrix A, const Matrix B, Matrix C) {
  // 从显存中加载A和B两个矩阵的数据
  Matrix d_A = {A.width, A.height}, d_B = {B.width, B.height}, d_C = {C.width, C.height};
  size_t size = A.width * A.height * sizeof(float);
  cudaMalloc(&d_A.elements, size);
  cudaMemcpy(d_A.elements, A.elements, size, cudaMemcpyHostToDevice);
  size = B.width * B.height * sizeof(float);
  cudaMalloc(&d_B.elements, size);
  cudaMemcpy(d_B.elements, B.elements, size, cudaMemcpyHostToDevice);
  // 从设备显存中申请储存乘法运算结果的矩阵C
  size = C.width * C.height * sizeof(float);
  cudaMalloc(&d_C.elements, size);
  // 调用内核
  dim3 dimBlock(BLOCK_SIZE, BLOCK_SIZE);
  dim3 dimGrid(B.width / dimBlock.x, A.height / dimBlock.y);
  MatMulKernel<<<dimGrid, dimBlock>>>(d_A, d_B, d_C); // <<<dimGrid, dimBlock>>>
  // 从显存中获取计算结果C
  cudaMemcpy(C.elements, d_C.elements, size, cudaMemcpyDeviceToHost);
  // 释放显存
  cudaFree(d_A.elements);
  cudaFree(d_B.elements);
  cudaFree(d_C.elements);
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
