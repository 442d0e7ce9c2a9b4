/* SPDX-License-Identifier: Apache-2.0 */
/* A callback that shows the progress while we read many files. */
#pragma once

#include <stdint.h>

struct cw_import_watch {
	/* Called after each file. total is at least `done`, and may be exact only at the end. */
	void (*on_file)(void *user, uint32_t done, uint32_t total);
	void *user;
};

static inline void cw_import_watch_note(const struct cw_import_watch *w, uint32_t done,
					uint32_t total)
{
	if (w)
		w->on_file(w->user, done, total);
}
