/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Syncs bundles to disk before an alert names them. The receiver of an alert must find the bundle,
 * even if the power fails a moment later. A child syncs the files, their directory, and the parent
 * directory, because a slow disk needs seconds. The loop does not wait, so sampling continues
 * meanwhile. After CW_BUNDLE_SYNC_MS the alert goes out unsynced, because it must not wait for a
 * disk.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_bundle_sync;
struct event_base;

/* The time that an alert can wait. The alert of a proof is due after 3 s. */
#define CW_BUNDLE_SYNC_MS 2000u
/* The limit of concurrent children. Other items wait in the queue, within the same deadline. */
#define CW_BUNDLE_SYNC_RUNNING 2u

/*
 * Called when a sync ends. is_on_disk is false if the time is over, or if the bundle is not on
 * disk.
 */
typedef void (*cw_bundle_sync_fn)(bool is_on_disk, void *user);

/* dir is the directory of the bundles. We copy it. 0 or -ENOMEM. */
int cw_bundle_sync_new(struct event_base *base, const char *dir, struct cw_bundle_sync **ret);
/* Takes NULL; returns NULL. No callback comes afterwards. */
struct cw_bundle_sync *cw_bundle_sync_free(struct cw_bundle_sync *s);

/*
 * Syncs the bundles with these ids, which we copy. 0: the loop calls fn once, unless the sync is
 * cancelled. -ENOMEM. There is no limit on the number of calls.
 */
int cw_bundle_sync_start(struct cw_bundle_sync *s, const char *const *ids, size_t n,
			 cw_bundle_sync_fn fn, void *user);
void cw_bundle_sync_cancel(struct cw_bundle_sync *s, const void *user);

/* Returns the number of alerts that went out before their bundle was on disk. */
uint64_t cw_bundle_sync_missed(const struct cw_bundle_sync *s);
