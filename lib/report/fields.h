/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain structs to JSON objects and back, by a table of their fields. One table drives both
 * directions, so that a reader cannot forget a field that the writer knows.
 *
 * The writer omits a field whose value is 0 (or NULL). The reader leaves the struct member of an
 * absent field alone, so callers start from a zeroed struct. Every value is checked for the type
 * and range of its C field.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum cw_field_type {
	CW_FIELD_U8,
	CW_FIELD_U16,
	CW_FIELD_U32,
	CW_FIELD_I16,
	CW_FIELD_I32,
	CW_FIELD_I64, /* ns: an instant or a duration */
	CW_FIELD_U64, /* a number, such as a count */
	CW_FIELD_ID,  /* an id, written as a string: "0x…" */
	CW_FIELD_TEXT,
};

struct cw_field {
	const char *name;
	enum cw_field_type type;
	size_t offset;
};

/* fields ends with a NULL name. The functions return a new reference; NULL = out of memory. */
json_t *cw_fields_write(const struct cw_field *fields, const void *from);
json_t *cw_fields_write_array(const struct cw_field *fields, const void *items, size_t n,
			      size_t size);

/* Fills *to. Its texts borrow from doc. Returns 0, or -EBADMSG with `what` and the field in err. */
int cw_fields_read(const struct cw_field *fields, const json_t *doc, void *to, const char *what,
		   struct cw_err *err);

/*
 * Reads the array of at most max objects at doc[key] into fresh zeroed memory. The caller
 * releases *ret with free(). A missing key is an empty array (*ret is NULL). Returns 0, -EBADMSG,
 * -E2BIG or -ENOMEM.
 */
int cw_fields_read_array(const struct cw_field *fields, const json_t *doc, const char *key,
			 size_t size, size_t max, void **ret, uint32_t *ret_n, struct cw_err *err);
