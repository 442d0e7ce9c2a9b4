/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts and version of the simulated NCCL. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lab/sim/nccl_sim.h"

static char last_error[1024];
static pthread_mutex_t last_error_lock = PTHREAD_MUTEX_INITIALIZER;

static bool wants_warnings(void)
{
	const char *debug = getenv("NCCL_DEBUG");

	return debug && (strcasecmp(debug, "WARN") == 0 || strcasecmp(debug, "INFO") == 0);
}

ncclResult_t sim_fail(ncclResult_t result, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&last_error_lock);
	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	if (wants_warnings())
		fprintf(stderr, "pid %d NCCL WARN %s: %s\n", getpid(), ncclGetErrorString(result),
			last_error);
	pthread_mutex_unlock(&last_error_lock);
	return result;
}

NCCL_API(const char *, GetErrorString, ncclResult_t result)
{
	switch (result) {
	case ncclSuccess:
		return "no error";
	case ncclUnhandledCudaError:
		return "unhandled cuda error";
	case ncclSystemError:
		return "unhandled system error";
	case ncclInternalError:
		return "internal error";
	case ncclInvalidArgument:
		return "invalid argument";
	case ncclInvalidUsage:
		return "invalid usage";
	case ncclRemoteError:
		return "remote process exited or there was a network error";
	case ncclInProgress:
		return "operation in progress";
	default:
		return "unknown result code";
	}
}

NCCL_API(const char *, GetLastError, ncclComm_t comm)
{
	return last_error;
}

NCCL_API(ncclResult_t, GetVersion, int *version)
{
	if (!version)
		return sim_fail(ncclInvalidArgument, "GetVersion: version is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

NCCL_API(void, ResetDebugInit, void)
{
}
