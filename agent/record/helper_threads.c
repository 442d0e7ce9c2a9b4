/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/record/helper_threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"
#include "agent/record/modules.h"
#include "agent/record/own_memory.h"
#include "agent/record/record.h"

/* A longer list of threads is corrupt. Ranks have up to a few hundred threads. */
#define MAX_WALK 4096u
/*
 * Limit of the addresses whose kind we remember. A training process has a few dozen distinct start
 * routines.
 */
#define MAX_KNOWN 128u
/* Limit of new addresses per step. Each of them costs a pass over the memory map. */
#define MAX_LOOKUPS 8u
/* The kernel's PID_MAX_LIMIT. A larger number is not a thread id. */
#define MAX_TID 4194304u
/* A larger offset into glibc's thread descriptor is false. The descriptor has some 2,300 bytes. */
#define MAX_OFFSET 65536u

/* Beginnings of file names. A thread that belongs to such a file is a helper thread. */
static const char *const libraries[] = {
	"libnccl",     /* NCCL and its network, tuner and profiler plugins */
	"libcuda.so",  /* the CUDA driver: device events, per-context workers */
	"libcudart",   /* the runtime */
	"libcupti",    /* profiling */
	"libnvidia-",  /* parts of the driver */
	"libnvperf",   /* profiling */
	"libcollwatch" /* our own threads */
};

static struct {
	/* Offsets in glibc's thread descriptor. The argument follows the start routine. */
	size_t list, tid, start;
	bool is_known;
} layout;

enum kind { KIND_OTHER, KIND_HELPER, KIND_STD_THREAD };

static struct {
	uint64_t address;
	enum kind kind;
} known[MAX_KNOWN];
static unsigned n_known;   /* number of addresses ever noted; a new address replaces the oldest */
static unsigned n_lookups; /* number of look-ups in this step */
static uint32_t tids[CW_REC_HELPERS];
static uint32_t n_tids, n_over_limit;

static bool ask_offset(cw_dlsym_fn next, const char *name, size_t *ret)
{
	/*
	 * glibc describes a field by three numbers: bits of an element, number of elements, offset.
	 */
	const uint32_t *field = next(RTLD_DEFAULT, name);

	if (!field || field[2] > MAX_OFFSET)
		return false;
	*ret = field[2];
	return true;
}

void cw_helper_threads_start(void)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	int saved_errno = errno;

	layout.is_known = next && ask_offset(next, "_thread_db_pthread_list", &layout.list) &&
			  ask_offset(next, "_thread_db_pthread_tid", &layout.tid) &&
			  ask_offset(next, "_thread_db_pthread_start_routine", &layout.start);
	(void)dlerror();
	errno = saved_errno;
}

/* ---- the library of a thread ---- */

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum kind kind_of_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (starts_with(name, libraries[i]))
			return KIND_HELPER;
	return starts_with(name, "libstdc++.so") ? KIND_STD_THREAD : KIND_OTHER;
}

/*
 * Finds the kind of the code at an address. Returns false if the address is new, and this step may
 * make no further look-up.
 */
static bool kind_of_address(uint64_t address, enum kind *ret)
{
	char path[256];

	for (unsigned i = 0; i < n_known && i < MAX_KNOWN; i++) {
		if (known[i].address == address) {
			*ret = known[i].kind;
			return true;
		}
	}
	if (n_lookups++ >= MAX_LOOKUPS)
		return false;
	*ret = cw_module_path((uintptr_t)address, path, sizeof(path)) ? kind_of_file(path)
								      : KIND_OTHER;
	known[n_known % MAX_KNOWN].address = address;
	known[n_known++ % MAX_KNOWN].kind = *ret;
	return true;
}

/*
 * Returns whether a library started the thread. `routine` holds the start routine and its argument.
 */
static bool is_helper(const uint64_t routine[2])
{
	uint64_t table;
	enum kind kind;

	if (!kind_of_address(routine[0], &kind))
		return false;
	/* A std::thread runs an object, whose first word points to its virtual table. */
	if (kind == KIND_STD_THREAD &&
	    (!cw_own_read(routine[1], &table, sizeof(table)) || !kind_of_address(table, &kind)))
		return false;
	return kind == KIND_HELPER;
}

/* ---- the threads ---- */

static void note(uint32_t tid)
{
	if (n_tids < CW_REC_HELPERS)
		tids[n_tids++] = tid;
	else
		n_over_limit++;
}

/*
 * Walks the ring of threads whose stacks glibc allocated. The helper thread is in the ring, so we
 * start from ourselves. The ring's head is not a thread, and the bytes at its tid offset are not a
 * thread id. Threads start and end during the walk. If the links lead us out of the ring, we give
 * up and return false.
 */
static bool walk(void)
{
	uint64_t self = (uint64_t)(uintptr_t)pthread_self() + layout.list, at = self;

	for (unsigned i = 0; i < MAX_WALK; i++) {
		uint64_t from[] = { at, at - layout.list + layout.tid,
				    at - layout.list + layout.start };
		uint64_t words[3][2]; /* next and previous; tid; start routine and argument */
		uint32_t tid = 0;

		if (cw_own_read_many(from, 3, words, sizeof(words[0])))
			memcpy(&tid, words[1], sizeof(tid)); /* 0 = ended, but not joined */
		else if (!cw_own_read(at, words[0], sizeof(words[0])))
			return false;
		if (at == self && tid != cw_tid())
			return false; /* the symbols belong to another glibc */
		if (tid > 0 && tid <= MAX_TID && is_helper(words[2]))
			note(tid);
		at = words[0][0];
		if (at == self)
			return true;
	}
	return false;
}

/*
 * Stores the list in the record. A reader may see half of the new list, and then misjudges a thread
 * only once.
 */
static void publish(void)
{
	struct cw_rec_header *h = cw_record.header;

	for (uint32_t i = 0; i < CW_REC_HELPERS; i++) {
		uint32_t tid = i < n_tids ? tids[i] : 0;

		if (CW_LOAD(h->helper_tids[i]) != tid)
			CW_STORE(h->helper_tids[i], tid);
	}
	CW_STORE(h->helpers_over_limit, n_over_limit);
}

void cw_helper_threads_step(void)
{
	if (!layout.is_known)
		return;
	n_tids = n_over_limit = n_lookups = 0;
	if (!walk())
		n_tids = n_over_limit = 0; /* an empty list is better than a torn one */
	publish();
}

bool cw_helper_threads_has(uint32_t tid)
{
	for (uint32_t i = 0; i < n_tids; i++)
		if (tids[i] == tid)
			return true;
	return false;
}
