/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the steps protects us. First we copy all stacks, release the process, read its
 * memory map and open its files. Then we check again that all of this came from the same process.
 * Then we give up every right. Only then do we parse bytes of the process. The result has one JSON
 * object per line. If the child crashes or reaches its deadline, the lines before stay valid.
 */
#include "daemon/evidence/stack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json/json_whole.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/stack_confine.h"
#include "daemon/evidence/stack_modules.h"
#include "daemon/evidence/stack_take.h"
#include "daemon/evidence/unwinder.h"
#include "daemon/kernel/procfs.h"

/* Bytes that the lines of threads leave free for the last line. */
#define END_ROOM 1024u

struct writer {
	int fd;
	size_t used;
	bool is_cut;
};

static void write_line(struct writer *w, json_t *line, size_t room)
{
	char *text = line ? cw_json_write(line, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0, at = 0;

	json_decref(line);
	if (!text || w->used + len + 1 + room > CW_STACK_MAX_OUTPUT) {
		w->is_cut = true;
		free(text);
		return;
	}
	text[len++] = '\n'; /* replace the NUL at the end */
	while (at < len) {
		ssize_t n = write(w->fd, text + at, len - at);

		if (n < 0 && errno != EINTR)
			break; /* the reader is gone, so the rest is useless */
		at += n > 0 ? (size_t)n : 0;
	}
	w->used += len;
	free(text);
}

static int write_end(struct writer *w, const char *status, const char *reason, int64_t held_ns)
{
	write_line(w,
		   json_pack("{s:b, s:s, s:s, s:f}", "end", 1, "status", status, "reason", reason,
			     "held_ms", (double)held_ns / (double)CW_NS_PER_MS),
		   0);
	return 0;
}

static const char *describe_result(unsigned result)
{
	static const char *const text[] = {
		[CW_STACK_PENDING] = "the capture was cut short",
		[CW_STACK_UNINTERRUPTIBLE] = "skipped: in uninterruptible sleep (state D)",
		[CW_STACK_OURS] = "skipped: a thread of collwatch",
		[CW_STACK_GONE] = "ended",
		[CW_STACK_TRACED] = "held by a debugger",
		[CW_STACK_NOT_ALLOWED] = "no permission to trace it",
		[CW_STACK_NOT_STOPPED] = "did not stop in time",
		[CW_STACK_OTHER_USER] = "its user may not see it",
		[CW_STACK_FAILED] = "could not be copied",
		[CW_STACK_SPENT] = "skipped: the rank had already been held for 100 ms",
	};

	return result < sizeof(text) / sizeof(text[0]) && text[result] ? text[result] : "unknown";
}

static bool has_stack(const struct cw_stack_thread *t)
{
	return t->result == CW_STACK_TAKEN || t->result == CW_STACK_PEEKED;
}

/* Marks the modules into which a pc or a word of a stack points. We need no others. */
static void want_modules(const struct cw_stack_copy *copy, struct cw_stack_modules *mods)
{
	for (uint32_t i = 0; i < copy->n_threads; i++) {
		const struct cw_stack_thread *t = &copy->threads[i];
		size_t at = (8 - t->stack_start % 8) % 8;
		uint64_t word;

		if (!has_stack(t))
			continue;
		cw_stack_modules_want(mods, t->pc);
		if (t->result == CW_STACK_TAKEN)
			/* Register 30 is lr, the return address on aarch64. */
			cw_stack_modules_want(mods, t->regs[30 % CW_STACK_MAX_REGS]);
		for (; at + sizeof(word) <= t->stack_len; at += sizeof(word)) {
			memcpy(&word, copy->stacks[i] + at, sizeof(word));
			cw_stack_modules_want(mods, word);
		}
	}
}

static json_t *thread_name(const struct cw_stack_thread *t)
{
	return cw_evidence_text(t->name, strlen(t->name), sizeof(t->name));
}

static void write_threads(struct writer *w, const struct cw_stack_copy *copy, struct cw_unwinder *u)
{
	for (uint32_t i = 0; i < copy->n_threads; i++) {
		const struct cw_stack_thread *t = &copy->threads[i];
		json_t *line;

		if (t->result == CW_STACK_OURS || t->result == CW_STACK_GONE)
			continue;
		if (has_stack(t))
			line = json_pack("{s:i, s:o, s:I, s:o}", "tid", (int)t->tid, "name",
					 thread_name(t), "run_ns", (json_int_t)t->run_ns, "frames",
					 cw_unwinder_frames(u, i));
		else
			line = json_pack("{s:i, s:o, s:[], s:s}", "tid", (int)t->tid, "name",
					 thread_name(t), "frames", "note",
					 describe_result(t->result));
		write_line(w, line, END_ROOM);
	}
}

struct summary {
	unsigned taken, not_collected;
	unsigned remote;        /* number of program files on a server, which we do not open */
	unsigned first_failure; /* enum cw_stack_result of the first thread without a stack */
	int64_t held_ns;        /* longest hold of a thread */
};

static struct summary summarize(const struct cw_stack_copy *copy)
{
	struct summary s = { 0 };

	for (uint32_t i = 0; i < copy->n_threads; i++) {
		const struct cw_stack_thread *t = &copy->threads[i];

		if (t->held_ns > s.held_ns)
			s.held_ns = t->held_ns;
		if (has_stack(t)) {
			s.taken++;
		} else if (t->result != CW_STACK_OURS && t->result != CW_STACK_GONE) {
			if (!s.not_collected++)
				s.first_failure = t->result;
		}
	}
	return s;
}

static bool is_same_process(const struct cw_stack_target *target)
{
	struct cw_procfs_stat st;

	return cw_procfs_stat(target->pid, 0, &st) == 0 && st.start_ticks == target->start_ticks &&
	       st.state != 'Z' && st.state != 'X';
}

static int write_not_visible(struct writer *w, int64_t held_ns)
{
	return write_end(w, "refused", CW_PROCFS_NOT_VISIBLE, held_ns);
}

/* Writes a last line with the reason why we have no stack. */
static int write_nothing(struct writer *w, const struct cw_stack_target *target,
			 const struct summary *s)
{
	if (!s->not_collected)
		return write_end(w, "absent", "the process is gone", 0);
	if (s->first_failure == CW_STACK_NOT_ALLOWED)
		return write_end(w, "refused",
				 "no permission to trace the process (CAP_SYS_PTRACE, Yama or a "
				 "security module)",
				 0);
	if (s->first_failure == CW_STACK_OTHER_USER)
		return write_not_visible(w, s->held_ns);
	if (s->first_failure == CW_STACK_TRACED)
		return write_end(w, "refused", "the process is being traced", 0);
	if (s->first_failure == CW_STACK_UNINTERRUPTIBLE)
		return write_end(w, "refused",
				 "skipped: all threads are in uninterruptible sleep (state D)", 0);
	return write_end(w, "failed", describe_result(s->first_failure), s->held_ns);
}

static int write_summary(struct writer *w, const struct cw_stack_copy *copy,
			 const struct summary *s)
{
	char reason[256] = "";

	if (s->remote)
		(void)snprintf(reason, sizeof(reason),
			       "%u program file%s not read: FUSE, 9p, NFS or an unknown file "
			       "system, where a reader may hang",
			       s->remote, s->remote == 1 ? " was" : "s were");
	else if (s->not_collected)
		(void)snprintf(reason, sizeof(reason),
			       "%u of %u threads have no stack, the first: %s", s->not_collected,
			       s->taken + s->not_collected, describe_result(s->first_failure));
	else if (copy->n_total > copy->n_threads)
		(void)snprintf(reason, sizeof(reason), "%u of %u threads examined", copy->n_threads,
			       copy->n_total);
	else if (w->is_cut)
		(void)snprintf(reason, sizeof(reason), "too large to send");
	return write_end(w, *reason ? "partial" : "ok", reason, s->held_ns);
}

static int unwind(struct writer *w, const struct cw_stack_target *target,
		  const struct cw_procfs_view *view, const struct cw_stack_copy *copy,
		  struct summary *s)
{
	struct cw_stack_modules mods = { 0 };
	struct cw_unwinder *u = NULL;
	int r = copy->memory ? cw_stack_modules_read(target->pid, &mods) : -EACCES;

	if (r < 0)
		return write_end(w, "failed", "the memory map cannot be read", s->held_ns);
	want_modules(copy, &mods);
	cw_stack_modules_open(target->pid, copy->memory, &mods);
	/*
	 * Check again that the stacks and the memory map belong to the same process and program, by
	 * the descriptors from the start. After this check we read nothing of the process.
	 */
	if (!cw_procfs_view_holds(view))
		return is_same_process(target)
			       ? write_not_visible(w, s->held_ns)
			       : write_end(w, "absent", "the process is gone", s->held_ns);
	r = cw_stack_confine_unwinder(target->uid, target->gid);
	if (r < 0)
		return write_end(w, "failed", "the unwinder cannot be confined", s->held_ns);
	r = cw_unwinder_new(copy, &mods, &u);
	if (r < 0)
		return write_end(w, "failed", "no program file of the process can be read",
				 s->held_ns);
	for (size_t i = 0; i < mods.n; i++)
		s->remote += mods.list[i].is_remote;
	write_threads(w, copy, u);
	return write_summary(w, copy, s); /* no need to free, because the process exits */
}

int cw_stack_child(int out_fd, const struct cw_stack_target *target)
{
	struct writer w = { .fd = out_fd };
	struct cw_procfs_view view;
	struct cw_stack_copy *copy;
	struct summary s;
	int r;

	if (!is_same_process(target))
		return write_end(&w, "absent", "the process is gone", 0);
	r = cw_procfs_view_open(target->pid, target->start_ticks, target->uid, &view);
	if (r == -EPERM)
		return write_not_visible(&w, 0);
	if (r == 0)
		r = cw_stack_take_copy(target->pid, target->uid, &copy);
	if (r == 0)
		r = cw_stack_take_all(copy);
	if (r < 0)
		return write_end(&w, "failed", strerror(-r), 0);
	s = summarize(copy);
	return s.taken ? unwind(&w, target, &view, copy, &s) : write_nothing(&w, target, &s);
}
