/* SPDX-License-Identifier: Apache-2.0 */
/* The results of NCCL functions, by number and by name (ncclResult_t; nccl.h.in, 2.18 to 2.29). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_nccl_result {
	CW_NCCL_SUCCESS = 0,
	CW_NCCL_UNHANDLED_CUDA_ERROR = 1,
	CW_NCCL_SYSTEM_ERROR = 2, /* a system call failed, for example because a socket was reset */
	CW_NCCL_INTERNAL_ERROR = 3,
	CW_NCCL_INVALID_ARGUMENT = 4,
	CW_NCCL_INVALID_USAGE = 5,
	CW_NCCL_REMOTE_ERROR = 6,
	CW_NCCL_IN_PROGRESS = 7, /* no error: NCCL is still working on the call */
};

/*
 * True for results that NCCL returns to a rank whose connection to another rank broke
 * (src/misc/socket.cc).
 */
static inline bool cw_result_is_lost_peer(int result)
{
	return result == CW_NCCL_SYSTEM_ERROR || result == CW_NCCL_REMOTE_ERROR;
}

/* The size of a buffer for the name of a result. */
#define CW_NCCL_RESULT_NAME_MAX 40u

/*
 * Returns a name like "ncclSystemError", or "ncclResult_t N" for a number without a name. The
 * returned text is a constant or lies in buf.
 */
const char *cw_nccl_result_name(int64_t result, char *buf, size_t len);
