/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts bundles on disk for good before an alert names them: a receiver that is told of an incident
 * must find its bundle, also where the power fails a moment later. Files, directory, and the one it
 * lies in are synced by a child, because a slow disk takes seconds for that and the loop has none:
 * sampling goes on meanwhile. After CW_BUNDLE_SYNC_MS the alert goes out without: it must not wait
 * for a disk.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_bundle_sync;
struct event_base;

/* The time that an alert has to spare: that of a proof is due after 3 s. */
#define CW_BUNDLE_SYNC_MS 2000u
/* Children at once; the others wait for their turn, for no longer than the same time. */
#define CW_BUNDLE_SYNC_RUNNING 2u

/* is_on_disk: false = the time was over, or there is no bundle on disk. */
typedef void (*cw_bundle_sync_fn)(bool is_on_disk, void *user);

/* dir: that of the bundles; copied. 0 or -ENOMEM. */
int cw_bundle_sync_new(struct event_base *base, const char *dir, struct cw_bundle_sync **ret);
/* Takes NULL; returns NULL. Nobody is called back any more. */
struct cw_bundle_sync *cw_bundle_sync_free(struct cw_bundle_sync *s);

/*
 * The bundles with these ids, copied. 0: fn comes once, from the loop, unless it is cancelled;
 * -ENOMEM. There are as many as the caller asks for.
 */
int cw_bundle_sync_start(struct cw_bundle_sync *s, const char *const *ids, size_t n,
			 cw_bundle_sync_fn fn, void *user);
void cw_bundle_sync_cancel(struct cw_bundle_sync *s, const void *user);

/* Alerts that went out before their bundle was on disk. */
uint64_t cw_bundle_sync_missed(const struct cw_bundle_sync *s);
