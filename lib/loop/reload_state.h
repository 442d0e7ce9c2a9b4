/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of the last reload of the configuration, for status and metrics. After a failed reload
 * the daemon runs on with the old configuration. Its next start may then fail, because it reads the
 * faulty file. Loop thread only.
 */
#pragma once

#include <stdint.h>

enum cw_reload_result {
	CW_RELOAD_NONE = 0, /* no reload since the start */
	CW_RELOAD_DONE = 1, /* the new file is in use */
	/* A changed key needs a restart; the old configuration stays. */
	CW_RELOAD_NEEDS_RESTART = 2,
	CW_RELOAD_REFUSED = 3, /* the file has an error; the old configuration stays */
};

struct cw_reload_state {
	uint32_t result; /* enum cw_reload_result */
	int64_t at_ns;   /* time of the reload, on the daemon's clock */
	/* The key or the error. The text may quote the file, which may contain secrets. */
	char why[256];
	uint64_t failures; /* reloads since the start that were refused or need a restart */
};
