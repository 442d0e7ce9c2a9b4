/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/memory/no_memory.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <execinfo.h>
#include <jansson.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The real allocator. glibc exports these names for programs that have their own malloc(). */
#define REAL(name) __libc_##name
void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t n, size_t bytes);
void *REAL(realloc)(void *p, size_t bytes);
void *REAL(memalign)(size_t alignment, size_t bytes);
void REAL(free)(void *p);

#define MAX_BLOCKS (1u << 18) /* limit on blocks allocated at a time; a power of two */
#define MAX_FRAMES 32

struct block {
	void *p; /* NULL = the entry is free */
	unsigned number;
};

/* State of the current run: */
static __thread bool is_watching; /* we record blocks */
static __thread bool is_armed;    /* we count allocations, and they may fail */

static pid_t walker;
static bool is_walking;

static struct {
	const char *scenario;
	unsigned fail_at; /* number of the allocation that fails; 0 = none */
	bool is_rest;     /* all allocations after it fail, too */
	unsigned armed;   /* allocations counted */
	unsigned number;  /* allocations noted */
	bool has_failed;
	struct block blocks[MAX_BLOCKS];
	unsigned n_blocks;
	void *frames[MAX_FRAMES]; /* stack of the first allocation that failed */
	int n_frames;
	/* for a repeated run: print the stack of this allocation; 0 = none */
	unsigned stack_number;
} run;

static unsigned slot_of(const void *p)
{
	return (unsigned)(((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) &
	       (MAX_BLOCKS - 1);
}

/*
 * Prints the message as a failed check does, because Criterion drops a test's own output. Users can
 * pass the frames to addr2line -fe PROGRAM.
 */
static void fail_with_stack(const char *what, void **frames, int n)
{
	bool was_armed = is_armed, was_watching = is_watching;
	char text[MAX_FRAMES * 96];
	size_t len = 0;
	char **names;

	is_armed = is_watching = false;
	names = backtrace_symbols(frames, n);
	text[0] = '\0';
	for (int i = 0; names && i < n && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\n%s", names[i]);
	REAL(free)(names);
	cr_expect_fail("%s, allocation %u%s: %s%s", run.scenario, run.fail_at,
		       run.is_rest ? " and all after it" : "", what, text);
	is_armed = was_armed;
	is_watching = was_watching;
}

static void fail_with_this_stack(const char *what)
{
	void *frames[MAX_FRAMES];

	fail_with_stack(what, frames, backtrace(frames, MAX_FRAMES));
}

/*
 * libcrypto makes one-time allocations that it never frees, and loses them if only half of them
 * succeed. Its allocations fail like others, but we do not count them as leaks.
 */
static struct {
	uintptr_t begin, end;
} libcrypto;

static int find_libcrypto(struct dl_phdr_info *info, size_t size, void *user)
{
	if (!strstr(info->dlpi_name, "libcrypto.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X)) {
			libcrypto.begin = info->dlpi_addr + ph->p_vaddr;
			libcrypto.end = libcrypto.begin + ph->p_memsz;
		}
	}
	return 1;
}

static void note(void *p, void *caller)
{
	unsigned i = slot_of(p);

	if (!is_watching || p == NULL)
		return;
	if ((uintptr_t)caller >= libcrypto.begin && (uintptr_t)caller < libcrypto.end)
		return;
	run.number++;
	if (run.number == run.stack_number)
		fail_with_this_stack("left behind");
	if (run.n_blocks >= MAX_BLOCKS / 2) {
		is_armed = is_watching = false;
		cr_assert_fail("%s: too many blocks", run.scenario);
	}
	while (run.blocks[i].p != NULL)
		i = (i + 1) & (MAX_BLOCKS - 1);
	run.blocks[i] = (struct block){ .p = p, .number = run.number };
	run.n_blocks++;
}

static void forget(void *p)
{
	unsigned i = slot_of(p), hole;

	if (!is_watching || p == NULL)
		return;
	while (run.blocks[i].p != p) {
		if (run.blocks[i].p == NULL)
			return; /* the block is from before this run */
		i = (i + 1) & (MAX_BLOCKS - 1);
	}
	/* An entry behind the hole that belongs before it moves into the hole. */
	hole = i;
	for (;;) {
		unsigned home;

		i = (i + 1) & (MAX_BLOCKS - 1);
		if (run.blocks[i].p == NULL)
			break;
		home = slot_of(run.blocks[i].p);
		if (((i - home) & (MAX_BLOCKS - 1)) >= ((i - hole) & (MAX_BLOCKS - 1))) {
			run.blocks[hole] = run.blocks[i];
			hole = i;
		}
	}
	run.blocks[hole].p = NULL;
	run.n_blocks--;
}

bool no_memory_fails(void)
{
	if (!is_armed)
		return false;
	run.armed++;
	if (run.fail_at == 0 || run.armed < run.fail_at ||
	    (run.armed > run.fail_at && !run.is_rest))
		return false;
	if (!run.has_failed)
		run.n_frames = backtrace(run.frames, MAX_FRAMES);
	run.has_failed = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	void *p;

	if (no_memory_fails())
		return NULL;
	p = REAL(malloc)(bytes);
	note(p, __builtin_return_address(0));
	return p;
}

void *calloc(size_t n, size_t bytes)
{
	void *p;

	if (no_memory_fails())
		return NULL;
	p = REAL(calloc)(n, bytes);
	note(p, __builtin_return_address(0));
	return p;
}

void *realloc(void *old, size_t bytes)
{
	void *p;

	if (bytes > 0 && no_memory_fails())
		return NULL;
	p = REAL(realloc)(old, bytes);
	if (p != NULL || bytes == 0) {
		forget(old);
		note(p, __builtin_return_address(0));
	}
	return p;
}

void *reallocarray(void *old, size_t n, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(n, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, all);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
	void *p;

	if (no_memory_fails())
		return NULL;
	p = REAL(memalign)(alignment, bytes);
	note(p, __builtin_return_address(0));
	return p;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return memalign(alignment, bytes);
}

int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
	int saved = errno;
	void *p = memalign(alignment, bytes);

	errno = saved;
	if (p == NULL)
		return ENOMEM;
	*ret = p;
	return 0;
}

void free(void *p)
{
	forget(p);
	REAL(free)(p);
}

void no_memory_begin(void)
{
	is_armed = true;
}

void no_memory_end(void)
{
	is_armed = false;
}

bool no_memory_happened(void)
{
	return run.has_failed;
}

static void run_once(void (*scenario)(void *userdata), void *userdata)
{
	memset(run.blocks, 0, run.n_blocks > 0 ? sizeof(run.blocks) : 0);
	run.n_blocks = 0;
	run.armed = 0;
	run.number = 0;
	run.has_failed = false;
	is_watching = true;
	scenario(userdata);
	is_armed = false;
	is_watching = false;
}

static unsigned oldest_left(void)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < MAX_BLOCKS; i++)
		if (run.blocks[i].p != NULL && (oldest == 0 || run.blocks[i].number < oldest))
			oldest = run.blocks[i].number;
	return oldest;
}

/* Prints the scenario and the allocation if a crash or a failed check ended the run. */
static void fail_run(void)
{
	if (!is_walking || getpid() != walker)
		return;
	is_walking = false;
	is_armed = is_watching = false;
	if (run.has_failed)
		fail_with_stack("it failed", run.frames, run.n_frames);
}

/* A failed check ends the test by calling this function. */
void __real_criterion_abort_test(void) __attribute__((noreturn));
void __wrap_criterion_abort_test(void) __attribute__((noreturn));
void __wrap_criterion_abort_test(void)
{
	fail_run();
	__real_criterion_abort_test();
}

static void on_crash(int sig)
{
	signal(sig, SIG_DFL);
	fail_with_this_stack("crashed");
	fail_run();
	raise(sig);
}

static void walk_one_way(bool is_rest, void (*scenario)(void *userdata), void *userdata)
{
	run.is_rest = is_rest;
	run.fail_at = 0;
	do {
		run.fail_at++;
		run_once(scenario, userdata);
		if (run.n_blocks > 0) {
			unsigned left = run.n_blocks;

			run.stack_number = oldest_left();
			run_once(scenario, userdata);
			cr_assert_fail("%s: %u left behind", run.scenario, left);
		}
	} while (run.has_failed);
}

unsigned no_memory_walk(const char *scenario, void (*scenario_run)(void *userdata), void *userdata)
{
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE };
	unsigned n;
	void *frame;

	run.scenario = scenario;
	walker = getpid();
	is_walking = true;
	(void)backtrace(&frame, 1); /* the first call loads a library */
	json_object_seed(1);
	(void)dl_iterate_phdr(find_libcrypto, NULL);
	for (unsigned i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		signal(crashes[i], on_crash);
	/* After two runs without failures, libraries have made their one-time allocations. */
	for (unsigned i = 0; i < 2; i++) {
		run.fail_at = 0;
		run_once(scenario_run, userdata);
	}
	n = run.armed;
	cr_assert_eq(run.n_blocks, 0, "%s: %u left behind without a failure", scenario,
		     run.n_blocks);
	cr_assert_gt(n, 0, "%s: nothing is allocated in it", scenario);
	walk_one_way(false, scenario_run, userdata);
	walk_one_way(true, scenario_run, userdata);
	run.fail_at = 0;
	is_walking = false;
	return n;
}
