/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nccl_result.h"

#include <stdio.h>

const char *cw_nccl_result_name(int64_t result, char *buf, size_t len)
{
	static const char *const names[] = {
		[1] = "ncclUnhandledCudaError", [2] = "ncclSystemError",  [3] = "ncclInternalError",
		[4] = "ncclInvalidArgument",    [5] = "ncclInvalidUsage", [6] = "ncclRemoteError",
	};

	if (result > 0 && (size_t)result < sizeof(names) / sizeof(names[0]))
		/* cppcheck-suppress arrayIndexOutOfBoundsCond ; the condition says so */
		return names[result];
	snprintf(buf, len, "ncclResult_t %lld", (long long)result);
	return buf;
}
