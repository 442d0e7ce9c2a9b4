/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the stacks of all Python threads of a process from its memory, while the process runs. The
 * reader stops nothing and changes nothing.
 *
 * Only the thread with the interpreter lock changes its frames. The lock counts its switches, so we
 * know whether all other threads held still during a read. We read the chain of frames of the
 * thread with the lock repeatedly, until several reads in a row agree. They may differ in the place
 * inside the innermost frame. If the reads never agree, we report only the outer frames that all
 * reads have in common, and mark the thread as changed. The innermost of these frames then has its
 * place as of the last read.
 *
 * The memory is hostile. Each list has a limit. Each object's links must agree with its neighbours.
 * Each code object must have the interpreter's type of code objects. All reads of a process
 * together have a limit, too.
 *
 * Any thread; reads through the given memory only; no allocation. Uses some 200 KiB of stack.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_memory.h"
#include "python/reader/python_runtime.h"

/*
 * We read at most this many threads. A rank with data loaders and frameworks has a few hundred at
 * most.
 */
#define CW_PYTHON_READ_THREADS 256u
/* We read at most this many frames of a thread, like faulthandler, and omit frames further out. */
#define CW_PYTHON_READ_FRAMES 100u

/* A thread as the kernel knows it. */
struct cw_python_task {
	int32_t tid;
	int32_t inner_tid; /* number in the process's own pid namespace */
	char name[16];
	/*
	 * Time that the thread had run before we read its stack, from schedstat; 0 = not known. If
	 * the thread has the same time later, it has not run since, and its stack is the same.
	 */
	uint64_t run_ns;
	/* Address of the futex that the thread waits for; 0 = the thread waits for none. */
	uint64_t futex;
};

struct cw_python_frame {
	uint32_t line;      /* line number; 0 = not known */
	char file[256];     /* UTF-8; of a longer path, only the end; "???" = unreadable */
	char function[128]; /* UTF-8; of a longer name, only the beginning */
	/* C code called the frame, so the interpreter's loop is on the C stack once for it. */
	bool is_entry;
};

enum cw_python_thread_state {
	CW_PYTHON_THREAD_READ = 0,
	CW_PYTHON_THREAD_CUT,     /* outer frames are missing */
	CW_PYTHON_THREAD_CHANGED, /* stack changed while we read: only outer frames, or none */
	/* The thread's memory does not fit the Python version: no frames. */
	CW_PYTHON_THREAD_UNREADABLE,
};

struct cw_python_thread {
	uint64_t id;                       /* pthread_t */
	const struct cw_python_task *task; /* NULL = not known */
	enum cw_python_thread_state state;
	/* Whether the thread holds, or waits for, the interpreter lock at the time of the read. */
	bool holds_lock, wants_lock;
	const struct cw_python_frame *frames; /* innermost first */
	uint32_t n_frames;
};

/* Receives each thread, the newest first. The thread is borrowed until the callback returns. */
typedef void (*cw_python_thread_fn)(const struct cw_python_thread *thread, void *user);

struct cw_python_read_config {
	const struct cw_python_memory *memory;
	const struct cw_python_runtime *runtime;
	const struct cw_python_task *tasks; /* the process's threads */
	size_t n_tasks;
	cw_python_thread_fn fn;
	void *user;
};

struct cw_python_read_summary {
	uint32_t n_threads; /* number of threads passed to fn */
	uint32_t n_changed; /* those in state CW_PYTHON_THREAD_CHANGED */
	uint32_t n_unreadable;
	uint32_t n_cut;
	bool has_more; /* true if threads or interpreters exceed the limits */
	uint32_t n_reads;
};

/*
 * Reads all threads of all interpreters and passes them to fn. *ret counts the passed threads, even
 * if the result is not CW_PYTHON_READ.
 */
enum cw_python_result cw_python_read_threads(const struct cw_python_read_config *config,
					     struct cw_python_read_summary *ret);
