/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of an agent to the `collwatch run` that started its program: the process has called
 * NCCL. The report also says whether a record exists, and if not, why. The agent sends a datagram
 * to an abstract UNIX socket, whose name is in the environment. The agent itself never writes to
 * the program's output.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CW_RUN_VARIABLE "COLLWATCH_RUN"
/* Limit of the length of the socket's name, which is "collwatch-run-" and 16 hexadecimal digits. */
#define CW_RUN_NAME_MAX 48u
#define CW_RUN_MAGIC UINT32_C(0x6e757263)

struct cw_run_report {
	uint32_t magic;
	int32_t error; /* 0 = a record exists; else the errno of the failure to make one */
};

/* Makes the socket's address. Returns its length, or 0 if name is invalid. */
static inline socklen_t cw_run_address(const char *name, struct sockaddr_un *ret)
{
	size_t len = strlen(name);

	if (!len || len > CW_RUN_NAME_MAX)
		return 0;
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* The path of an abstract socket begins with a zero byte. */
	memcpy(ret->sun_path + 1, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}
