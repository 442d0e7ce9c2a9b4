/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Syncs bundles to disk before an alert names them. The receiver of an alert must find the bundle,
 * even if the power fails a moment later. A slow disk needs seconds, so a child syncs the files,
 * their directory and the parent directory. The loop does not wait for the child, and sampling
 * continues. After CW_BUNDLE_SYNC_MS the alert goes out even if its bundle is not synced, because
 * an alert must not wait for a disk.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_bundle_sync;
struct event_base;

/* Longest time that an alert waits for its bundles. The alert of a proof must go out within 3 s. */
#define CW_BUNDLE_SYNC_MS 2000u
/*
 * Maximum number of children at the same time. Further syncs wait in a queue, and their deadline
 * includes this wait.
 */
#define CW_BUNDLE_SYNC_RUNNING 2u

/*
 * Called at the end of a sync. is_on_disk: false = the deadline passed, or a bundle could not be
 * synced.
 */
typedef void (*cw_bundle_sync_fn)(bool is_on_disk, void *user);

/* dir: the directory of the bundles; we copy the string. Returns 0 or -ENOMEM. */
int cw_bundle_sync_new(struct event_base *base, const char *dir, struct cw_bundle_sync **ret);
/* Ends all syncs. No callback follows. Takes NULL; returns NULL. */
struct cw_bundle_sync *cw_bundle_sync_free(struct cw_bundle_sync *s);

/*
 * Syncs the bundles with these n ids; we copy the ids. Returns 0 or -ENOMEM. After 0 the loop calls
 * fn once, unless the sync is cancelled. Any number of syncs may be open.
 */
int cw_bundle_sync_start(struct cw_bundle_sync *s, const char *const *ids, size_t n,
			 cw_bundle_sync_fn fn, void *user);
void cw_bundle_sync_cancel(struct cw_bundle_sync *s, const void *user);

/* Returns the number of alerts that went out before their bundles were on disk. */
uint64_t cw_bundle_sync_missed(const struct cw_bundle_sync *s);
