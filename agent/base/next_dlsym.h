/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We export a dlsym of our own, and this file finds the next one in the search order. The agent
 * looks up other libraries' symbols with it. We find it with dlvsym, which we do not hook. The next
 * dlsym may be the hook of another preloaded library; that hook then works as if we were absent.
 */
#pragma once

typedef void *(*cw_dlsym_fn)(void *handle, const char *name);

/* Return: the next dlsym; NULL only if libc has none. Any thread, async-signal-unsafe. */
cw_dlsym_fn cw_next_dlsym_get(void);

/* Searches again and stores the result. dlsym_stub.S calls it if the program uses dlsym first. */
void *cw_dlsym_bootstrap(void);
