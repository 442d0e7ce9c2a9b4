/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private daemon for one `collwatch run --standalone`: for users on a machine where nobody runs
 * collwatchd. It sees the ranks on this node, and those of its peers' (run_peers.h) where the
 * environment names some. Sockets, state and log lie in a directory of its own, which stays when a
 * hang was found and goes otherwise.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/err.h"

#define RUN_MAX_SETTINGS 64u
#define RUN_MAX_TOLD 64u /* a job that hangs so often is known to */

/* What was asked for. */
struct run_standalone_options {
	const char *settings[RUN_MAX_SETTINGS]; /* KEY=VALUE, as run_setting_check() lets pass */
	unsigned n_settings;
	bool has_pages; /* each hang is written as a page at the end, too */
	bool opens;     /* and the first of them opened */
};

/* In the order in which an incident moves through them. */
enum run_standing { RUN_NOTICE, RUN_PAGE, RUN_GOES_ON, RUN_ENDED };

/* A bundle that was printed, as it was then. */
struct run_told {
	char name[64];
	enum run_standing standing;
	bool was_page;
	char *summary;   /* NULL: out of memory */
	struct stat doc; /* of the document's file: another one says something else */
};

struct run_standalone {
	char dir[PATH_MAX];
	pid_t daemon;
	struct run_told told[RUN_MAX_TOLD]; /* the first one first */
	unsigned n_told;
	struct run_standalone_options options;
};

/*
 * Whether it can stand in the daemon's configuration: a key that is not run's own, and a value that
 * ends where it ends. The daemon says what it thinks of the value. 0, or -EINVAL with err set.
 */
int run_setting_check(const char *setting, struct cw_err *err);
/*
 * Starts it and waits until it answers. Copies options, borrows their texts. 0, or -errno with err
 * set: then nothing is left behind. -EINVAL: the user made a mistake
 * (a setting, the peers, TMPDIR).
 */
int run_standalone_start(struct run_standalone *s, const struct run_standalone_options *options,
			 struct cw_err *err);
/*
 * Prints what was found since the last call, on standard error; again when severity or summary
 * changed, and when the job goes on.
 */
void run_standalone_tell(struct run_standalone *s);
/* Stops it; writes and opens pages, says where the bundles are, or removes the directory. */
void run_standalone_stop(struct run_standalone *s);
