/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the processes that the service manager has stored into the table. Loop thread only; call
 * this before the first agent connects.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/process/process.h"

struct cw_fdstore_restore_config {
	struct cw_process **table;
	struct cw_process_quota quota;
	const struct cw_clock *clock;
	/*
	 * Called when a living process is in the table. If the callee returns -errno, we remove p
	 * again.
	 */
	int (*on_living)(struct cw_process *p, void *user);
	void (*on_dead)(struct cw_process *p, const struct cw_ending *end, void *user);
	void *user;
};

/*
 * Restores the processes of the list, and owns the list from now on. Removes entries that it cannot
 * restore from the store. Returns the number of restored processes.
 */
unsigned cw_fdstore_restore(const struct cw_fdstore_restore_config *config,
			    struct cw_fdstore_entry *list, size_t n);
