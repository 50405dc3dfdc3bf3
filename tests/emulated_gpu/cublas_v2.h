// Stands in for NVIDIA's header of this name, as cublasLt.h beside it does: the one product that the CUDA back end asks
// of cuBLAS, of any shape and alignment.
#pragma once

#include "cublasLt.h"

using cublasHandle_t = cublasLtHandle_t;
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1 };

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a, cublasOperation_t transpose_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType_t a_type, int a_stride,
                            const void* b, cudaDataType_t b_type, int b_stride, const void* beta, void* c,
                            cudaDataType_t c_type, int c_stride, cublasComputeType_t compute, cublasGemmAlgo_t algo);
