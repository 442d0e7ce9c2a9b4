/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/python_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json_whole.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/procfacts.h"
#include "daemon/evidence/stack_confine.h"
#include "daemon/kernel/mapped_memory.h"
#include "daemon/kernel/procfs.h"
#include "python/reader/python_doc.h"

#define MAX_TEXT_BYTES 256u
#define MAX_NAME_BYTES 64u

/* ---- the child ---- */

static bool may_read(void *user, uint64_t from, size_t len)
{
	return cw_mapped_memory_readable(user, from, len) == len;
}

/* What the child opens before it confines itself. We free nothing, because the child exits. */
struct take {
	struct cw_procfs_view view;
	struct cw_mapped_memory *memory;
	struct cw_python_process *process;
};

/* Opens the process. Returns NULL, or a part with the reason for a failure. */
static json_t *open_process(const struct cw_stack_target *target, struct take *ret)
{
	int r = cw_procfs_view_open(target->pid, target->start_ticks, target->uid, &ret->view);

	if (r == -EPERM)
		return cw_evidence_part("refused", CW_PROCFS_NOT_VISIBLE);
	if (r == 0)
		r = cw_python_process_open(target->pid, &ret->process);
	if (r == 0)
		r = cw_mapped_memory_new(target->pid, &ret->memory);
	if (r < 0)
		return cw_python_doc_not_opened(r);
	/* Check again: the process may have started another program, and this may be its memory. */
	if (!cw_procfs_view_holds(&ret->view))
		return cw_evidence_part("refused", CW_PROCFS_NOT_VISIBLE);
	cw_python_process_limit(ret->process, may_read, ret->memory);
	return NULL;
}

static json_t *not_confined(void)
{
	return cw_evidence_part("failed", "the process that reads memory cannot be confined");
}

int cw_python_take_child(int out_fd, const struct cw_stack_target *target)
{
	struct take take = { 0 };
	json_t *part = open_process(target, &take);

	if (!part && cw_stack_confine_unwinder(target->uid, target->gid) < 0)
		part = not_confined();
	if (!part)
		part = cw_python_doc(take.process, target->pid);
	return part && json_dumpfd(part, out_fd, JSON_COMPACT) == 0 ? 0 : 1;
}

/* One of many processes. part: the reason why we did not open it; NULL = we did. */
struct one_of_many {
	struct take take;
	json_t *part;
};

static int write_line(int fd, json_t *line)
{
	char *text = line ? cw_json_write(line, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0, at = 0;

	if (!text)
		return -ENOMEM;
	text[len++] = '\n'; /* replace the NUL at the end */
	while (at < len) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	free(text);
	return 0;
}

int cw_python_take_all_child(int out_fd, const struct cw_stack_target *targets, size_t n)
{
	struct one_of_many *all = calloc(n, sizeof(*all));
	bool is_confined;
	int r = 0;

	if (!all)
		return 1;
	for (size_t i = 0; i < n && r == 0; i++) {
		json_t *proc =
			cw_procfacts(targets[i].pid, targets[i].start_ticks, targets[i].uid, -1, 1);

		r = write_line(out_fd, json_pack("{s:i, s:o}", "index", (int)i, "proc", proc));
		all[i].part = open_process(&targets[i], &all[i].take);
	}
	is_confined = cw_stack_confine_unwinder(targets[0].uid, targets[0].gid) == 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		json_t *part = all[i].part;

		if (!part)
			part = is_confined ? cw_python_doc(all[i].take.process, targets[i].pid)
					   : not_confined();
		r = write_line(out_fd, json_pack("{s:i, s:o}", "index", (int)i, "python", part));
	}
	return r < 0; /* no need to free, because the process exits */
}

/* ---- the output ---- */

static json_t *clean_integer(const json_t *value)
{
	return json_is_integer(value) ? json_integer(json_integer_value(value)) : json_null();
}

/* Returns the value if it is "holds" or "wants", otherwise JSON null. */
static json_t *clean_lock(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && (strcmp(text, "holds") == 0 || strcmp(text, "wants") == 0)
		       ? json_string(text)
		       : json_null();
}

static json_t *clean_frames(const json_t *from)
{
	json_t *frames = json_array(), *frame;
	size_t i;

	json_array_foreach (from, i, frame)
		if (i < CW_PYTHON_READ_FRAMES && json_is_object(frame))
			(void)json_array_append_new(
				frames,
				json_pack("{s:o, s:o, s:o, s:b}", "file",
					  cw_evidence_clean(json_object_get(frame, "file"),
							    MAX_TEXT_BYTES),
					  "line", clean_integer(json_object_get(frame, "line")),
					  "function",
					  cw_evidence_clean(json_object_get(frame, "function"),
							    MAX_TEXT_BYTES),
					  "entry",
					  (int)json_is_true(json_object_get(frame, "entry"))));
	return frames;
}

static json_t *clean_threads(const json_t *from)
{
	json_t *threads = json_array(), *each;
	size_t i;

	json_array_foreach (from, i, each)
		if (i < CW_PYTHON_READ_THREADS && json_is_object(each))
			(void)json_array_append_new(
				threads,
				json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "run_ns",
					  clean_integer(json_object_get(each, "run_ns")), "id",
					  cw_evidence_clean(json_object_get(each, "id"),
							    MAX_NAME_BYTES),
					  "tid", clean_integer(json_object_get(each, "tid")),
					  "current", 0, "name",
					  cw_evidence_clean(json_object_get(each, "name"),
							    MAX_NAME_BYTES),
					  "gil", clean_lock(json_object_get(each, "gil")), "note",
					  cw_evidence_clean(json_object_get(each, "note"),
							    MAX_TEXT_BYTES),
					  "frames", clean_frames(json_object_get(each, "frames"))));
	return threads;
}

static const char *known_status(const json_t *part)
{
	static const char *const known[] = { "ok", "partial", "absent", "refused", "failed" };
	const char *status = json_string_value(json_object_get(part, "status"));

	for (size_t i = 0; status && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(status, known[i]) == 0)
			return known[i];
	return "failed";
}

json_t *cw_python_take_clean(const json_t *part)
{
	const json_t *reason = json_object_get(part, "reason");

	if (!json_is_object(part))
		return cw_evidence_part("failed",
					"the process that reads the interpreter's memory failed");
	return json_pack("{s:s, s:o, s:o}", "status", known_status(part), "reason",
			 json_is_string(reason) ? cw_evidence_clean(reason, MAX_TEXT_BYTES)
						: json_string(""),
			 "threads", clean_threads(json_object_get(part, "threads")));
}

json_t *cw_python_take_read(const char *output, size_t len, bool is_whole)
{
	json_t *part = is_whole ? cw_json_parse(output, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_t *result = cw_python_take_clean(part);

	json_decref(part);
	return result;
}
