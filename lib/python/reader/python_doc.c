/* SPDX-License-Identifier: Apache-2.0 */
#include "python/reader/python_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes that punctuation and field names of one thread take in compact JSON, without its frames. */
#define THREAD_OVERHEAD 190u

struct doc {
	pid_t pid;
	json_t *threads, *main_thread;
	size_t bytes;
	bool is_full, is_out_of_memory;
};

/* Converts a thread's name from the kernel, which may have any bytes, to text. */
static json_t *task_name(const struct cw_python_task *task)
{
	char name[sizeof(task->name)];
	size_t i;

	for (i = 0; i + 1 < sizeof(name) && task->name[i]; i++)
		name[i] = task->name[i] & 0x80 ? '?' : task->name[i];
	name[i] = '\0';
	return json_string(name);
}

static const char *lock_of(const struct cw_python_thread *t)
{
	return t->holds_lock ? "holds" : t->wants_lock ? "wants" : NULL;
}

static const char *note_of(enum cw_python_thread_state state)
{
	switch (state) {
	case CW_PYTHON_THREAD_READ:
		return NULL;
	case CW_PYTHON_THREAD_CUT:
		return "outer frames are left out";
	case CW_PYTHON_THREAD_CHANGED:
		return "changed while read: inner frames are left out";
	case CW_PYTHON_THREAD_UNREADABLE:
		return "its memory is not as the interpreter's version says";
	}
	return "unknown";
}

static json_t *make_frames(const struct cw_python_thread *t)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct cw_python_frame *f = &t->frames[i];
		json_t *line = f->line ? json_integer(f->line) : json_null();

		if (json_array_append_new(frames, json_pack("{s:s, s:o, s:s, s:b}", "file", f->file,
							    "line", line, "function", f->function,
							    "entry", (int)f->is_entry)) < 0) {
			json_decref(frames);
			return NULL;
		}
	}
	return frames;
}

static json_t *make_thread(const struct cw_python_thread *t)
{
	json_t *tid = t->task ? json_integer(t->task->tid) : json_null();
	json_t *name = t->task ? task_name(t->task) : json_null();
	char id[24];

	(void)snprintf(id, sizeof(id), "0x%016" PRIx64, t->id);
	return json_pack("{s:s, s:o, s:b, s:o, s:I, s:s?, s:s?, s:o}", "id", id, "tid", tid,
			 "current", 0, "name", name, "run_ns",
			 (json_int_t)(t->task ? t->task->run_ns : 0), "gil", lock_of(t), "note",
			 note_of(t->state), "frames", make_frames(t));
}

static void on_thread(const struct cw_python_thread *t, void *user)
{
	struct doc *d = user;
	bool is_main = t->task && t->task->tid == d->pid;
	json_t *thread = make_thread(t);
	size_t bytes = thread ? json_dumpb(thread, NULL, 0, JSON_COMPACT) + 1 : 0;

	if (!thread) {
		d->is_out_of_memory = true;
	} else if (is_main && !d->main_thread) {
		/* We add the main thread even to a full document, because reports show it. */
		d->main_thread = thread;
		d->bytes += bytes;
	} else if (d->bytes + bytes > CW_PYTHON_DOC_BYTES) {
		d->is_full = true;
		json_decref(thread);
	} else {
		d->bytes += bytes;
		d->is_out_of_memory |= json_array_append_new(d->threads, thread) < 0;
	}
}

/* Writes a reason such as "2 of 9 threads: changed while read …". */
static void write_count(const struct cw_python_read_summary *s, uint32_t n,
			enum cw_python_thread_state state, char *reason, size_t size)
{
	(void)snprintf(reason, size, "%u of %u thread%s: %s", n, s->n_threads,
		       s->n_threads == 1 ? "" : "s", note_of(state));
}

static void write_reason(const struct cw_python_read_summary *s, bool is_full, char *reason,
			 size_t size)
{
	*reason = '\0';
	if (s->n_changed)
		write_count(s, s->n_changed, CW_PYTHON_THREAD_CHANGED, reason, size);
	else if (s->n_unreadable)
		write_count(s, s->n_unreadable, CW_PYTHON_THREAD_UNREADABLE, reason, size);
	else if (s->has_more || is_full)
		(void)snprintf(reason, size, "too many threads to send");
	else if (s->n_cut)
		write_count(s, s->n_cut, CW_PYTHON_THREAD_CUT, reason, size);
}

static json_t *make_part(const char *status, const char *reason, json_t *threads)
{
	return json_pack("{s:s, s:s, s:o}", "status", status, "reason", reason, "threads", threads);
}

json_t *cw_python_doc(struct cw_python_process *process, pid_t pid)
{
	struct doc d = { .pid = pid, .threads = json_array() };
	struct cw_python_read_summary summary;
	enum cw_python_result result;
	char reason[128];

	result = cw_python_process_read(process, on_thread, &d, &summary);
	if (d.main_thread)
		d.is_out_of_memory |= json_array_append_new(d.threads, d.main_thread) < 0;
	if (d.is_out_of_memory) {
		json_decref(d.threads);
		return NULL;
	}
	if (result == CW_PYTHON_NONE)
		return make_part("absent", cw_python_result_text(result), d.threads);
	if (result != CW_PYTHON_READ)
		return make_part(summary.n_threads ? "partial" : "failed",
				 cw_python_result_text(result), d.threads);
	write_reason(&summary, d.is_full, reason, sizeof(reason));
	return make_part(*reason ? "partial" : "ok", reason, d.threads);
}

json_t *cw_python_doc_not_opened(int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return make_part("refused",
				 "no permission to read the process's memory (another user, Yama, "
				 "seccomp or a security module)",
				 json_array());
	case ENOENT:
	case ESRCH:
		return make_part("absent", "the process is gone", json_array());
	default:
		return make_part("failed", strerror(-error), json_array());
	}
}
