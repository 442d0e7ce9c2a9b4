/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a process with an interpreter: this process, another process, or a test's array. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_python_memory {
	/* Reads len bytes. Returns false if fewer bytes are readable. Any address may be bad. */
	bool (*read)(void *user, uint64_t from, void *to, size_t len);
	void *user;
};

static inline bool cw_python_read(const struct cw_python_memory *memory, uint64_t from, void *to,
				  size_t len)
{
	return memory->read(memory->user, from, to, len);
}
