/* SPDX-License-Identifier: Apache-2.0 */
/* A small interpreter in an array: each version's layout, and memory that is hostile. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/python/small_interpreter.h"

struct seen {
	unsigned n;
	struct cw_python_thread threads[CW_PYTHON_READ_THREADS];
	struct cw_python_frame frames[4][CW_PYTHON_READ_FRAMES]; /* of the first threads */
};

static void on_thread(const struct cw_python_thread *t, void *user)
{
	struct seen *seen = user;

	cr_assert_lt(seen->n, CW_PYTHON_READ_THREADS * 16);
	if (seen->n < 4) {
		seen->threads[seen->n] = *t;
		memcpy(seen->frames[seen->n], t->frames, t->n_frames * sizeof(t->frames[0]));
	}
	seen->n++;
}

static struct cw_python_read_summary summary;

static enum cw_python_result take(struct process *p, struct seen *seen)
{
	static struct cw_python_task tasks[2];
	struct cw_python_read_config config = {
		.memory = &p->memory,
		.runtime = &p->runtime,
		.tasks = tasks,
		.n_tasks = 2,
		.fn = on_thread,
		.user = seen,
	};

	tasks[0] = (struct cw_python_task){ .tid = 700, .inner_tid = 70, .name = "worker" };
	tasks[0].futex = BASE + lock_at(p) + p->l->lock_condition + 40;
	tasks[1] = (struct cw_python_task){ .tid = 701, .inner_tid = 71, .name = "main" };
	*seen = (struct seen){ 0 };
	return cw_python_read_threads(&config, &summary);
}

#define READ_ALL(p, seen)                                                                          \
	do {                                                                                       \
		enum cw_python_result result_ = take(p, seen);                                     \
		cr_assert_eq(result_, CW_PYTHON_READ, "3.%u: %s", (p)->runtime.minor,              \
			     cw_python_result_text(result_));                                      \
	} while (0)

Test(python_reader, reads_each_version)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		READ_ALL(p, &seen);
		cr_assert_eq(seen.n, 2, "3.%u", minor);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_READ);
		cr_expect_eq(seen.threads[0].id, 0x1000);
		cr_assert_eq(seen.threads[0].n_frames, 2, "3.%u", minor);
		cr_expect_str_eq(seen.frames[0][0].function, "f0");
		cr_expect_str_eq(seen.frames[0][0].file, "/src/m0.py");
		cr_expect_eq(seen.frames[0][0].line, 12, "3.%u: line %u", minor,
			     seen.frames[0][0].line);
		cr_expect_str_eq(seen.frames[0][1].function, "f1");
		cr_assert_eq(seen.threads[1].n_frames, 1);
		cr_expect_str_eq(seen.frames[1][0].function, "f1");
		put_instruction(p, 0, 0, 1);
		READ_ALL(p, &seen);
		cr_expect_eq(seen.frames[0][0].line, 10, "3.%u: line %u", minor,
			     seen.frames[0][0].line);
		free(p);
	}
}

Test(python_reader, names_the_line_of_a_function_that_begins)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		put_instruction(p, 0, 0, 0);
		if (p->l->has_frame_objects)
			put_int(p, frame_at(0) + p->l->instr, -1);
		else
			put(p, frame_at(0) + p->l->instr,
			    BASE + code_at(0) + p->l->instructions - 2);
		READ_ALL(p, &seen);
		cr_expect_eq(seen.frames[0][0].line, 10, "3.%u: line %u", minor,
			     seen.frames[0][0].line);
		free(p);
	}
}

Test(python_reader, knows_threads_and_the_interpreter_lock)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		READ_ALL(p, &seen);
		cr_expect(seen.threads[1].holds_lock && !seen.threads[1].wants_lock, "3.%u", minor);
		cr_expect_not(seen.threads[0].holds_lock, "3.%u", minor);
		if (p->l->thread_native_id) {
			cr_expect(seen.threads[0].wants_lock, "3.%u", minor);
			cr_assert(seen.threads[0].task && seen.threads[1].task);
			cr_expect_eq(seen.threads[0].task->tid, 700);
			cr_expect_str_eq(seen.threads[1].task->name, "main");
		} else {
			cr_expect_null(seen.threads[0].task, "no thread of the C library is there");
		}
		free(p);
	}
}

Test(python_reader, skips_frames_without_python_code)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		if (p->l->has_frame_objects) {
			free(p);
			continue;
		}
		p->bytes[frame_at(0) + p->l->owner] = CW_PYTHON_OWNER_C;
		READ_ALL(p, &seen);
		cr_assert_eq(seen.threads[0].n_frames, 1, "3.%u", minor);
		cr_expect_str_eq(seen.frames[0][0].function, "f1");
		free(p);
	}
}

Test(python_reader, knows_which_frames_c_code_called)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		READ_ALL(p, &seen);
		cr_assert_eq(seen.threads[0].n_frames, 2, "3.%u", minor);
		cr_expect_eq(seen.frames[0][0].is_entry, p->l->has_frame_objects, "3.%u", minor);
		cr_expect(seen.frames[0][1].is_entry, "3.%u", minor);
		if (p->l->is_entry) {
			p->bytes[frame_at(0) + p->l->is_entry] = 1;
		} else if (!p->l->has_frame_objects) {
			put(p, frame_at(0) + p->l->previous, BASE + frame_at(2));
			put(p, frame_at(2) + p->l->previous, BASE + frame_at(1));
			p->bytes[frame_at(2) + p->l->owner] = CW_PYTHON_OWNER_C;
		}
		READ_ALL(p, &seen);
		cr_assert_eq(seen.threads[0].n_frames, 2, "3.%u", minor);
		cr_expect(seen.frames[0][0].is_entry, "3.%u", minor);
		free(p);
	}
}

Test(python_reader, writes_names_as_utf8)
{
	static const uint16_t wide[] = { 'f', 0x4e2d, 0xd800 };
	struct process *p = make(12);
	static struct seen seen;
	uint64_t file = code_at(0) + 0x200, name = code_at(0) + 0x300;

	put(p, file + CW_PYTHON_LENGTH, 8);
	put_int(p, file + CW_PYTHON_TEXT_STATE, CW_PYTHON_TEXT_IS_COMPACT | 1 << 2);
	memcpy(p->bytes + file + p->l->wide_text_data, "/j\xfcrg.py", 8);
	put(p, name + CW_PYTHON_LENGTH, 3);
	put_int(p, name + CW_PYTHON_TEXT_STATE, CW_PYTHON_TEXT_IS_COMPACT | 2 << 2);
	memcpy(p->bytes + name + p->l->wide_text_data, wide, sizeof(wide));
	READ_ALL(p, &seen);
	cr_expect_str_eq(seen.frames[0][0].file, "/j\xc3\xbcrg.py");
	cr_expect_str_eq(seen.frames[0][0].function, "f\xe4\xb8\xad?");
	free(p);
}

Test(python_reader, keeps_the_end_of_a_path_and_the_beginning_of_a_name)
{
	struct process *p = make(12);
	static struct seen seen;
	char path[400] = "";

	for (unsigned i = 0; i < 39; i++)
		strcat(path, "/directory");
	put(p, code_at(0) + p->l->file, BASE + code_at(8));
	put_text(p, code_at(8), path);
	put(p, code_at(0) + p->l->name, BASE + code_at(8));
	READ_ALL(p, &seen);
	cr_expect_eq(strlen(seen.frames[0][0].file), 250);
	cr_expect_eq(seen.frames[0][0].file[0], '/');
	cr_expect_str_eq(seen.frames[0][0].file + 240, "/directory");
	cr_expect_eq(strlen(seen.frames[0][0].function), sizeof(seen.frames[0][0].function) - 1);
	cr_expect_eq(strncmp(seen.frames[0][0].function, path, 100), 0);
	free(p);
}

/* ---- a process that runs ---- */

static unsigned walks;

/* The thread calls or returns after each look at its state. */
static void call_or_return(struct process *p, uint64_t from)
{
	if (from == thread_at(0))
		put_innermost(p, 0, BASE + (walks++ % 2 ? frame_at(0) : frame_at(1)));
}

/* The thread is now in one function, now in another. */
static void call_another(struct process *p, uint64_t from)
{
	if (from == thread_at(0))
		put_innermost(p, 0, BASE + (walks++ % 2 ? frame_at(0) : frame_at(2)));
}

static void call_at_first(struct process *p, uint64_t from)
{
	if (walks < 6)
		call_or_return(p, from);
}

/* The thread runs inside one function. */
static void step(struct process *p, uint64_t from)
{
	put_instruction(p, 0, 0, p->n_reads % 4);
}

/* The thread ends before its stack is read, and another object takes its place. */
static void end_thread(struct process *p, uint64_t from)
{
	if (from == thread_at(0) && walks++)
		put(p, thread_at(0) + p->l->thread_interpreter, 1);
}

/* The thread took the lock last, so it may run. */
static void give_lock(struct process *p, unsigned thread)
{
	put(p, lock_at(p) + p->l->lock_holder, BASE + thread_at(thread));
}

Test(python_reader, says_that_a_stack_changed_while_read)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		give_lock(p, 0);
		p->on_read = call_or_return;
		READ_ALL(p, &seen);
		cr_assert_eq(seen.n, 2);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_CHANGED, "3.%u", minor);
		cr_assert_eq(seen.threads[0].n_frames, 1, "f1 was there in each read");
		cr_expect_str_eq(seen.frames[0][0].function, "f1");
		cr_expect_eq(summary.n_changed, 1);
		cr_expect_eq(seen.threads[1].state, CW_PYTHON_THREAD_READ);
		p->on_read = call_another;
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_CHANGED, "3.%u", minor);
		cr_expect_eq(seen.threads[0].n_frames, 0, "no frame was there in each read");
		free(p);
	}
}

/* The lock goes to thread 0 and back while we read: it counts both. */
static void switch_lock(struct process *p, uint64_t from)
{
	if (from == thread_at(0)) {
		put(p, lock_at(p) + p->l->lock_switches, 2 * (uint64_t)p->n_reads);
		call_or_return(p, from);
	}
}

Test(python_reader, trusts_one_read_only_of_a_thread_without_the_lock)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;
		unsigned without_lock;

		put(p, lock_at(p) + p->l->lock_holder, 0);
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_READ);
		without_lock = p->n_reads;
		give_lock(p, 1);
		p->n_reads = 0;
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_READ);
		cr_expect_lt(p->n_reads, without_lock - 10, "3.%u", minor);

		p->on_read = switch_lock;
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_CHANGED, "3.%u", minor);
		p->on_read = call_or_return;
		put(p, lock_at(p) + p->l->lock_holder, BASE + FRAMES);
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_CHANGED,
			     "3.%u: a lock without a thread", minor);
		free(p);
	}
}

Test(python_reader, leaves_out_a_thread_that_ended_meanwhile)
{
	struct process *p = make(12);
	static struct seen seen;

	p->on_read = end_thread;
	READ_ALL(p, &seen);
	cr_assert_eq(seen.n, 1);
	cr_expect_eq(seen.threads[0].id, 0x1001);
	free(p);
}

Test(python_reader, reads_a_stack_once_it_holds_still)
{
	struct process *p = make(12);
	static struct seen seen;

	give_lock(p, 0);
	p->on_read = call_at_first;
	READ_ALL(p, &seen);
	cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_READ);
	free(p);
}

Test(python_reader, reads_a_thread_that_moves_inside_its_innermost_function)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		give_lock(p, 0);
		p->on_read = step;
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_READ, "3.%u", minor);
		cr_expect_eq(seen.threads[0].n_frames, 2);
		free(p);
	}
}

/* ---- memory that is hostile ---- */

Test(python_reader, ends_where_lists_lead_in_a_circle)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		static struct seen seen;
		struct process *p = make(minor);
		const struct cw_python_layout *l = p->l;

		put(p, frame_at(1) + l->previous, BASE + frame_at(0));
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_CUT, "3.%u", minor);
		cr_expect_eq(seen.threads[0].n_frames, CW_PYTHON_READ_FRAMES);

		put(p, INTERPRETER + l->interpreter_next, BASE + INTERPRETER);
		READ_ALL(p, &seen);
		cr_expect(summary.has_more, "3.%u: interpreters", minor);
		cr_expect_leq(seen.n, 2 * 16);

		put(p, thread_at(1) + l->thread_next, BASE + thread_at(0));
		cr_expect_eq(take(p, &seen), CW_PYTHON_ODD, "3.%u: threads", minor);
		put(p, thread_at(1) + l->thread_next, BASE + thread_at(1));
		cr_expect_eq(take(p, &seen), CW_PYTHON_ODD, "3.%u: threads", minor);
		free(p);
	}
}

Test(python_reader, gives_no_frames_of_objects_that_are_no_code)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		put(p, code_at(0) + CW_PYTHON_TYPE, BASE + CODE_TYPE + 8);
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_UNREADABLE, "3.%u", minor);
		cr_expect_eq(seen.threads[0].n_frames, 0);
		cr_expect_eq(seen.threads[1].state, CW_PYTHON_THREAD_READ);
		put(p, frame_at(0) + p->l->previous, 8);
		READ_ALL(p, &seen);
		cr_expect_eq(seen.threads[0].state, CW_PYTHON_THREAD_UNREADABLE, "3.%u", minor);
		free(p);
	}
}

Test(python_reader, reads_no_endless_text)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		static const uint64_t lengths[] = { 1u << 30, UINT64_MAX, 4096, INT64_MAX };

		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct process *p = make(minor);
			static struct seen seen;

			put(p, code_at(0) + 0x200 + CW_PYTHON_LENGTH, lengths[i]);
			put(p, code_at(0) + 0x180 + CW_PYTHON_LENGTH, lengths[i]);
			READ_ALL(p, &seen);
			cr_assert_eq(seen.threads[0].n_frames, 2);
			if (lengths[i] > CW_PYTHON_TEXT_CHARACTERS)
				cr_expect_str_eq(seen.frames[0][0].file, "???");
			cr_expect_leq(p->n_reads, 200);
			free(p);
		}
	}
}

Test(python_reader, says_why_there_is_no_thread)
{
	struct process *p = make(12);
	static struct seen seen;

	put(p, RUNTIME + p->l->runtime_interpreters, 0);
	cr_expect_eq(take(p, &seen), CW_PYTHON_IDLE);
	put(p, RUNTIME + p->l->runtime_interpreters, 0x1000);
	cr_expect_neq(take(p, &seen), CW_PYTHON_READ);
	p->runtime.address = 0;
	cr_expect_eq(take(p, &seen), CW_PYTHON_ODD);
	free(p);
}

static uint64_t random_state;

/* Every address can be read, and holds other bytes each time. */
static bool read_noise(void *user, uint64_t from, void *to, size_t len)
{
	struct process *p = user;

	p->n_reads++;
	for (size_t i = 0; i < len; i++) {
		random_state = random_state * 6364136223846793005u + 1442695040888963407u;
		((uint8_t *)to)[i] = (uint8_t)(random_state >> 56);
	}
	return true;
}

/* Every address can be read, and holds the same pointer to it, aligned. */
static bool read_mirror(void *user, uint64_t from, void *to, size_t len)
{
	struct process *p = user;

	p->n_reads++;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)((BASE & ~UINT64_C(7)) >> (from + i) % 8 * 8);
	return true;
}

Test(python_reader, ends_in_any_memory)
{
	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		struct process *p = make(minor);
		static struct seen seen;

		p->memory.read = read_noise;
		for (random_state = 1; random_state < 200; random_state++) {
			uint64_t seed = random_state;

			p->n_reads = 0;
			cr_expect_neq(take(p, &seen), CW_PYTHON_READ);
			cr_assert_leq(p->n_reads, 200000);
			cr_expect_eq(seen.n, 0);
			random_state = seed;
		}
		p->memory.read = read_mirror;
		p->n_reads = 0;
		(void)take(p, &seen);
		cr_assert_leq(p->n_reads, 200000);
		for (unsigned i = 0; i < seen.n && i < 4; i++)
			cr_expect_eq(seen.threads[i].n_frames, 0);
		free(p);
	}
}

/* Any word of the small interpreter may be false: the reader ends and keeps within its limits. */
Test(python_reader, survives_each_false_word)
{
	static const uint64_t values[] = { 0, 8, UINT64_MAX, BASE, BASE + THREADS, BASE + FRAMES };

	for (unsigned minor = CW_PYTHON_MINOR_MIN; minor <= CW_PYTHON_MINOR_MAX; minor++) {
		for (uint64_t at = 0; at < code_at(2); at += 8) {
			for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
				static struct process *p;
				static struct seen seen;
				uint64_t word;

				if (!p || p->runtime.minor != minor) {
					free(p);
					p = make(minor);
				}
				memcpy(&word, p->bytes + at, sizeof(word));
				if (!word && i)
					continue; /* nothing reads a field that is 0 here */
				put(p, at, values[i]);
				p->n_reads = 0;
				(void)take(p, &seen);
				cr_assert_leq(p->n_reads, 20000, "3.%u: word %lx", minor,
					      (unsigned long)at);
				put(p, at, word);
			}
		}
	}
}
