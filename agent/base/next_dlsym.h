/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dlsym behind ours: with it the agent looks up what is not its own. Found with dlvsym, which
 * no hook of ours touches. It may be another preloaded library's hook: that one gets its turn as if
 * we were not there.
 */
#pragma once

typedef void *(*cw_dlsym_fn)(void *handle, const char *name);

/* NULL only when libc has none. Any thread, async-signal-unsafe. */
cw_dlsym_fn cw_next_dlsym_get(void);

/* Looks for it anew. For dlsym_stub.S, when dlsym is used before anybody asked. */
void *cw_dlsym_bootstrap(void);
