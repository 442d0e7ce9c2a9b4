/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the facts of an incident (model/incident_list.h) as a collwatch.incident/1, and reads them
 * back. No other code looks up a key of this document.
 */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "model/arena.h"
#include "model/incident_list.h"

/* Makes the document. New reference; NULL = out of memory. */
json_t *cw_incident_facts_write(const struct cw_incident_facts *facts);

/* True if the document says how the job ended. */
bool cw_incident_facts_has_ending(const json_t *doc);
/* Copies how the job ended from one incident to another. Returns 0, or -1 if out of memory. */
int cw_incident_facts_copy_ending(const json_t *from, json_t *to);

/* Keys of the document that have no row here, because a newer version wrote them. */
struct cw_incident_newer {
	unsigned n;
	char first[96]; /* path of the first such key, for example "culprits[0].colour" */
};

/*
 * Reads the document. Everything in *ret lives as long as the arena. A missing key leaves its fact
 * unset, as null does. ret_newer may be NULL. Returns 0, or:
 *
 *	-EBADMSG  a value is of the wrong kind; err names its key and the right kind
 *	-ENOMEM
 */
int cw_incident_facts_read(const json_t *doc, struct cw_arena *arena, struct cw_incident_facts *ret,
			   struct cw_incident_newer *ret_newer, struct cw_err *err);

/*
 * Reads the facts that identify a process. The document may have other keys, too, as a
 * collwatch.evidence/1 has. A fact of a wrong kind stays unset. Returns 0 or -ENOMEM.
 */
int cw_incident_facts_read_process(const json_t *doc, struct cw_arena *arena,
				   struct cw_incident_process *ret);

/* Returns the text, or "" for NULL. */
static inline const char *cw_fact_text(const char *text)
{
	return text ? text : "";
}
