/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one runtime API type NCCL's interface needs. There is no CUDA runtime in the simulator; a
 * runtime stream and a driver stream are the same pointer.
 */
#pragma once

typedef struct CUstream_st *cudaStream_t;
