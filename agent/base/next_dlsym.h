/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the next dlsym in the search order, after the dlsym that we export. The agent looks up
 * symbols of other libraries with it. We find the next dlsym with dlvsym, which we do not hook. The
 * next dlsym may be the hook of another preloaded library. That hook then works as if we were
 * absent.
 */
#pragma once

typedef void *(*cw_dlsym_fn)(void *handle, const char *name);

/* Returns the next dlsym; NULL only if libc has none. Any thread, async-signal-unsafe. */
cw_dlsym_fn cw_next_dlsym_get(void);

/*
 * Searches for the next dlsym again and stores the result. dlsym_stub.S calls this function if the
 * program uses dlsym first.
 */
void *cw_dlsym_bootstrap(void);
