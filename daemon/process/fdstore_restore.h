/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager kept over a restart, back into the table of processes. Loop thread only;
 * before the first agent is let in.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/process/process.h"

struct cw_fdstore_restore_config {
	struct cw_process **table;
	struct cw_process_places places;
	const struct cw_clock *clock;
	/* It is in the table. A negative errno: it is taken out again. */
	int (*on_living)(struct cw_process *p, void *user);
	void (*on_dead)(struct cw_process *p, const struct cw_ending *end, void *user);
	void *user;
};

/* Takes the list. How many came back; the others are given up. */
unsigned cw_fdstore_restore(const struct cw_fdstore_restore_config *config,
			    struct cw_fdstore_entry *list, size_t n);
