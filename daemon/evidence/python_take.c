/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/python_part.h"

#include <errno.h>
#include <string.h>

#include "common/json/json_whole.h"
#include "daemon/evidence/evidence_text.h"
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

/*
 * Opens the process and confines the child. Returns NULL, or a part with the reason for a failure.
 */
static json_t *open_all(const struct cw_stack_target *target, struct take *ret)
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
	if (cw_stack_confine_unwinder(target->uid, target->gid) < 0)
		return cw_evidence_part("failed", "the reader cannot be confined");
	return NULL;
}

int cw_python_take_child(int out_fd, const struct cw_stack_target *target)
{
	struct take take = { 0 };
	json_t *part = open_all(target, &take);

	if (!part) {
		cw_python_process_limit(take.process, may_read, take.memory);
		part = cw_python_doc(take.process, target->pid);
	}
	return part && json_dumpfd(part, out_fd, JSON_COMPACT) == 0 ? 0 : 1;
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
				json_pack("{s:o, s:o, s:o}", "file",
					  cw_evidence_clean(json_object_get(frame, "file"),
							    MAX_TEXT_BYTES),
					  "line", clean_integer(json_object_get(frame, "line")),
					  "function",
					  cw_evidence_clean(json_object_get(frame, "function"),
							    MAX_TEXT_BYTES)));
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
				json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o}", "id",
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

json_t *cw_python_take_read(const char *output, size_t len, bool is_whole)
{
	json_t *part = is_whole ? cw_json_parse(output, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *reason = json_object_get(part, "reason");
	json_t *result;

	if (!json_is_object(part))
		result = cw_evidence_part("failed",
					  "reading the interpreter's memory did not end well");
	else
		result =
			json_pack("{s:s, s:o, s:o}", "status", known_status(part), "reason",
				  json_is_string(reason) ? cw_evidence_clean(reason, MAX_TEXT_BYTES)
							 : json_string(""),
				  "threads", clean_threads(json_object_get(part, "threads")));
	json_decref(part);
	return result;
}
