/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a snapshot as the text of a collwatch.snapshot/1, a few pieces at a time. A tree of JSON
 * values would take 7 KiB for each membership of a rank in a communicator; the text takes a tenth
 * of that. A job may have 16,384 memberships. Writing them in one step would block the leader's
 * loop.
 *
 *	t = cw_snapshot_text_new(snap, is_in);
 *	while ((r = cw_snapshot_text_step(t, snap, 4096)) == 0)
 *		...
 *	text = cw_snapshot_text_take(t);
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/snapshot.h"

struct cw_snapshot_text;

/*
 * Begins to write a snapshot. is_in: one flag per communicator, true = write it; NULL = write all.
 * We copy the flags. The notes of the document state the number of omitted communicators. Returns
 * NULL if out of memory.
 */
struct cw_snapshot_text *cw_snapshot_text_new(const struct cw_snapshot *snap, const bool *is_in);
/* Accepts NULL and returns NULL. */
struct cw_snapshot_text *cw_snapshot_text_free(struct cw_snapshot_text *t);
/* Returns the number of ranks and memberships that are still to be written. */
uint64_t cw_snapshot_text_left(const struct cw_snapshot_text *t);
/*
 * Writes up to max_pieces more ranks and memberships. snap: the snapshot given to
 * cw_snapshot_text_new(), unchanged. Returns 1 = complete, 0 = there is more, -ENOMEM.
 */
int cw_snapshot_text_step(struct cw_snapshot_text *t, const struct cw_snapshot *snap,
			  uint64_t max_pieces);
/*
 * Returns the text as a JSON string. Call it once, after completion. New reference; NULL = out
 * of memory.
 */
json_t *cw_snapshot_text_take(struct cw_snapshot_text *t);
