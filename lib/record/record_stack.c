/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats call stacks as text. An agent publishes an entry once and never changes it. A hostile
 * record may change an entry, so we copy first and check every number and every text of the copy.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "record/record_internal.h"

struct writer {
	char *buf;
	size_t len, used;
};

/* Appends a line for a frame. If a line does not fit, the text ends before it. */
__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
	size_t left = w->len - w->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(w->buf + w->used, left, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < left) {
		w->used += (size_t)n;
	} else {
		w->buf[w->used] = '\0';
		w->len = w->used + 1;
	}
}

static bool read_entry(const struct cw_record *rec, enum cw_rec_section_type section,
		       uint32_t index_plus_1, void *copy, size_t len)
{
	const struct cw_record_section *s = &rec->sections[section];

	return index_plus_1 && index_plus_1 <= s->count &&
	       cw_record_read_published(
		       rec, s->offset + (uint64_t)(index_plus_1 - 1) * s->entry_bytes, copy, len);
}

static void put_python(const struct cw_record *rec, struct writer *w, uint32_t index_plus_1)
{
	const char *gap = w->used ? "\n" : "";
	struct cw_rec_frame frame;

	if (!read_entry(rec, CW_REC_SECTION_FRAMES, index_plus_1, &frame, sizeof(frame))) {
		put(w, "%s?", gap);
		return;
	}
	cw_record_make_line(frame.file, sizeof(frame.file));
	cw_record_make_line(frame.function, sizeof(frame.function));
	put(w, "%s%s:%" PRIu32 " in %s", gap, frame.file[0] ? frame.file : "?", frame.line,
	    frame.function[0] ? frame.function : "?");
}

static void put_native(const struct cw_record *rec, struct writer *w,
		       const struct cw_rec_native_frame *native)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_MODULES];
	const char *gap = w->used ? "\n" : "", *name;
	struct cw_rec_module module;

	if (native->module >= s->count ||
	    cw_record_pread(rec, &module, sizeof(module),
			    s->offset + (uint64_t)native->module * s->entry_bytes) < 0)
		return;
	cw_record_make_line(module.name, sizeof(module.name));
	name = strrchr(module.name, '/');
	name = name ? name + 1 : module.name;
	put(w, "%s%s+0x%" PRIx32, gap, *name ? name : "?", native->offset);
}

int cw_record_stack(const struct cw_record *rec, uint32_t stack, char *buf, size_t len)
{
	struct writer w = { .buf = buf, .len = len };
	struct cw_rec_stack entry;

	buf[0] = '\0';
	if (!(rec->header.has & CW_REC_HAS_STACKS) ||
	    !read_entry(rec, CW_REC_SECTION_STACKS, stack, &entry, sizeof(entry)))
		return -ENOENT;
	for (unsigned i = 0; i < entry.n_native && i < CW_REC_STACK_NATIVE; i++)
		put_native(rec, &w, &entry.native[i]);
	for (unsigned i = 0; i < entry.n_python && i < CW_REC_STACK_PYTHON; i++)
		put_python(rec, &w, entry.python[i]);
	if (entry.flags & CW_REC_STACK_CUT)
		put(&w, "%s…", w.used ? "\n" : "");
	return w.used ? 0 : -ENOENT;
}

int cw_record_site(const struct cw_record *rec, const struct cw_rec_op *op, char *buf, size_t len)
{
	const struct cw_rec_native_frame at = { .offset = op->call_offset, .module = op->module };
	struct writer w = { .buf = buf, .len = len };

	buf[0] = '\0';
	if (op->module != CW_REC_NO_SLOT)
		put_native(rec, &w, &at);
	return w.used ? 0 : -ENOENT;
}
