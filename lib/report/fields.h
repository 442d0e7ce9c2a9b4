/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts plain structs to JSON objects and back, by a table of their fields. One table drives
 * both directions. So the reader knows every field that the writer knows.
 *
 * The writer omits a field whose value is 0 (or NULL). If a field is absent, the reader leaves its
 * struct member alone, so callers start from a zeroed struct. The reader checks each value for the
 * type and range of its C field.
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
	CW_FIELD_I64, /* an instant or a duration, ns */
	CW_FIELD_U64, /* a number, such as a count */
	CW_FIELD_ID,  /* an id; the document has it as a string "0x…" */
	CW_FIELD_TEXT,
};

struct cw_field {
	const char *name;
	enum cw_field_type type;
	size_t offset;
};

/*
 * The table `fields` ends with a NULL name. Both functions return a new reference; NULL = out of
 * memory.
 */
json_t *cw_fields_write(const struct cw_field *fields, const void *from);
json_t *cw_fields_write_array(const struct cw_field *fields, const void *items, size_t n,
			      size_t size);

/*
 * Fills *to from doc. Texts in *to borrow from doc. Returns 0, or -EBADMSG with `what` and the
 * field's name in err.
 */
int cw_fields_read(const struct cw_field *fields, const json_t *doc, void *to, const char *what,
		   struct cw_err *err);

/*
 * Reads the array of at most max objects at doc[key] into fresh zeroed memory. The caller
 * releases *ret with free(). A missing key is an empty array (*ret is NULL). Returns 0, -EBADMSG,
 * -E2BIG or -ENOMEM.
 */
int cw_fields_read_array(const struct cw_field *fields, const json_t *doc, const char *key,
			 size_t size, size_t max, void **ret, uint32_t *ret_n, struct cw_err *err);
