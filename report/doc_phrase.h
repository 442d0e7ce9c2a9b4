/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of a collwatch.incident/1 document are called in a sentence. The text report and
 * the page say it in the same words; each makes it harmless for its medium. Documents may be
 * hostile; nothing here fails, what does not fit is cut.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* "all_reduce bf16 x 1048576 sum"; the number of the call is said by the caller. Returns buf. */
char *phrase_doc_op(const json_t *op, char *buf, size_t len);

/* "tp", or "communicator 0x…" of something that has comm_name and comm. Returns buf. */
char *phrase_doc_comm(const json_t *at, char *buf, size_t len);

/* "rank 3", or "a process without rank number". Returns buf. */
char *phrase_doc_rank(const json_t *who, char *buf, size_t len);

/* More than one rank is in the set. */
bool phrase_is_many(const char *rank_set);

/* What a side of the call in question did that has no op: it did not come, or it had ended. */
const char *phrase_doc_absence(const json_t *incident);

/* The evidence was taken of one of the incident's culprits. */
bool doc_is_culprit(const json_t *incident, const json_t *evidence);
