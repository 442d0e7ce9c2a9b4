/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small interpreter of any version whose bytes the input changes: the reader ends within its
 * limits of reads, threads and frames, and each text is plain UTF-8. The changes come as a version,
 * then as an address and eight bytes each.
 */
#include "common/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/python/small_interpreter.h"

/* As MAX_READS of the reader, and a few to find the interpreter. */
#define READS_MAX 201000u

static void check_text(const char *text, size_t size)
{
	uint32_t c;

	FUZZ_CHECK(memchr(text, '\0', size));
	for (size_t n; *text; text += n) {
		n = cw_text_decode(text, &c);
		FUZZ_CHECK(n);
	}
}

static void check_thread(const struct cw_python_thread *t, void *user)
{
	unsigned *n_threads = user;

	++*n_threads;
	FUZZ_CHECK(t->n_frames <= CW_PYTHON_READ_FRAMES);
	FUZZ_CHECK(t->state != CW_PYTHON_THREAD_UNREADABLE || !t->n_frames);
	FUZZ_CHECK(!t->holds_lock || !t->wants_lock);
	for (uint32_t i = 0; i < t->n_frames; i++) {
		check_text(t->frames[i].file, sizeof(t->frames[i].file));
		check_text(t->frames[i].function, sizeof(t->frames[i].function));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned minor = size ? 8 + data[0] % 7 : 8, n_threads = 0;
	struct process *p = make(minor);
	const struct cw_python_task tasks[2] = { { .tid = 70, .inner_tid = 70 },
						 { .tid = 71, .inner_tid = 71 } };
	const uint64_t bases[] = { BASE };
	struct cw_python_read_config config = {
		.memory = &p->memory,
		.runtime = &p->runtime,
		.tasks = tasks,
		.n_tasks = 2,
		.fn = check_thread,
		.user = &n_threads,
	};
	struct cw_python_read_summary summary = { 0 };
	struct cw_python_runtime runtime;

	for (size_t at = 1; at + 10 <= size; at += 10) {
		size_t to = (size_t)data[at] | (size_t)data[at + 1] << 8;

		memcpy(p->bytes + to, data + at + 2, 8);
	}
	(void)cw_python_read_threads(&config, &summary);
	FUZZ_CHECK(summary.n_threads == n_threads);
	(void)cw_python_runtime_find(&p->memory, bases, 1, &runtime);
	FUZZ_CHECK(p->n_reads <= READS_MAX);
	free(p);
	return 0;
}
