/* SPDX-License-Identifier: Apache-2.0 */
/* Reading many files takes a while: whoever wants to know how far it has come, is told. */
#pragma once

#include <stdint.h>

struct cw_import_watch {
	/* After each file; the number of all may be known only at the end, and is at least `done`.
	 */
	void (*on_file)(void *user, uint32_t done, uint32_t total);
	void *user;
};

static inline void cw_import_tell(const struct cw_import_watch *w, uint32_t done, uint32_t total)
{
	if (w)
		w->on_file(w->user, done, total);
}
