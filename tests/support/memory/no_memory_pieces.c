/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes each piece of an arena or of a message's memory fail in its turn. Most pieces lie in a
 * block that exists already. If only malloc() failed, the callers that get such pieces would never
 * see a failure.
 */
#include "model/arena.h"
#include "proto/message_memory.h"
#include "tests/support/memory/no_memory.h"

/* With the linker's --wrap, callers in other files call OURS(name), and we call REAL(name). */
#define REAL(name) __real_##name
#define OURS(name) __wrap_##name

void *REAL(cw_arena_array)(struct cw_arena *a, size_t n, size_t size);
void *OURS(cw_arena_array)(struct cw_arena *a, size_t n, size_t size);
void *OURS(cw_arena_array)(struct cw_arena *a, size_t n, size_t size)
{
	return no_memory_fails() ? NULL : REAL(cw_arena_array)(a, n, size);
}

void *REAL(cw_arena_array_raw)(struct cw_arena *a, size_t n, size_t size);
void *OURS(cw_arena_array_raw)(struct cw_arena *a, size_t n, size_t size);
void *OURS(cw_arena_array_raw)(struct cw_arena *a, size_t n, size_t size)
{
	return no_memory_fails() ? NULL : REAL(cw_arena_array_raw)(a, n, size);
}

/* A copy of NULL is NULL and makes no allocation, so it cannot fail. */
char *REAL(cw_arena_strdup)(struct cw_arena *a, const char *text);
char *OURS(cw_arena_strdup)(struct cw_arena *a, const char *text);
char *OURS(cw_arena_strdup)(struct cw_arena *a, const char *text)
{
	return text && no_memory_fails() ? NULL : REAL(cw_arena_strdup)(a, text);
}

void *REAL(cw_arena_memdup)(struct cw_arena *a, const void *from, size_t n, size_t size);
void *OURS(cw_arena_memdup)(struct cw_arena *a, const void *from, size_t n, size_t size);
void *OURS(cw_arena_memdup)(struct cw_arena *a, const void *from, size_t n, size_t size)
{
	return from && no_memory_fails() ? NULL : REAL(cw_arena_memdup)(a, from, n, size);
}

void *REAL(cw_message_memory_alloc)(struct cw_message_memory *memory, size_t bytes);
void *OURS(cw_message_memory_alloc)(struct cw_message_memory *memory, size_t bytes);
void *OURS(cw_message_memory_alloc)(struct cw_message_memory *memory, size_t bytes)
{
	if (!no_memory_fails())
		return REAL(cw_message_memory_alloc)(memory, bytes);
	memory->is_out_of_memory = true;
	return NULL;
}

void *REAL(cw_message_memory_calloc)(struct cw_message_memory *memory, size_t n, size_t bytes);
void *OURS(cw_message_memory_calloc)(struct cw_message_memory *memory, size_t n, size_t bytes);
void *OURS(cw_message_memory_calloc)(struct cw_message_memory *memory, size_t n, size_t bytes)
{
	if (!no_memory_fails())
		return REAL(cw_message_memory_calloc)(memory, n, bytes);
	memory->is_out_of_memory = true;
	return NULL;
}
