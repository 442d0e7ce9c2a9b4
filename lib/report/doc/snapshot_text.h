/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as the text of a collwatch.snapshot/1, made a few pieces at a time: a tree of JSON
 * values takes 7 KiB for each membership, the text a tenth of it, and a leader's loop must not wait
 * until all 16,384 are done.
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
 * Writes only the communicators with a true is_in (copied; NULL = all); the notes say so. NULL =
 * out of memory.
 */
struct cw_snapshot_text *cw_snapshot_text_new(const struct cw_snapshot *snap, const bool *is_in);
/* Always NULL. Takes NULL. */
struct cw_snapshot_text *cw_snapshot_text_free(struct cw_snapshot_text *t);
/* Number of ranks and memberships that are still to be written. */
uint64_t cw_snapshot_text_left(const struct cw_snapshot_text *t);
/*
 * Writes up to max_pieces more ranks and memberships. snap: the snapshot given to
 * cw_snapshot_text_new(), unchanged. Returns 1 = complete, 0 = there is more, -ENOMEM.
 */
int cw_snapshot_text_step(struct cw_snapshot_text *t, const struct cw_snapshot *snap,
			  uint64_t max_pieces);
/*
 * The text as a JSON string; call it once, after completion. New reference; NULL = out of memory.
 */
json_t *cw_snapshot_text_take(struct cw_snapshot_text *t);
