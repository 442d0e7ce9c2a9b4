/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena and a message's memory hand out pieces, and most pieces lie in a block that was there
 * before. If malloc() alone failed, the callers for the other pieces would never see a failure.
 * Here each piece is an allocation of its own, and fails in its turn.
 */
#include "model/arena.h"
#include "proto/message_memory.h"
#include "tests/support/memory/no_memory.h"

/* The linker gives callers in other files ours (--wrap), and us theirs. */
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

/* NULL has no copy: then we made no allocation. */
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
