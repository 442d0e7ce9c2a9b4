/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private daemon for one `collwatch run --standalone`, for users on a machine without collwatchd.
 * It sees the ranks on this node. If the environment names peers (run_peers.h), it also sees their
 * ranks. Its sockets, state and log are in their own directory. If the daemon found a hang, the
 * directory stays; otherwise we remove it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/err.h"
#include "model/verdict_types.h"

#define RUN_MAX_SETTINGS 64u
/* Limit on printed incidents. After so many the user knows that the job hangs. */
#define RUN_MAX_PRINTED 64u

/* The options that the user gave. */
struct run_standalone_options {
	const char *settings[RUN_MAX_SETTINGS]; /* KEY=VALUE, checked by run_setting_check() */
	unsigned n_settings;
	bool has_pages; /* also write a page for each hang at the end */
	bool opens;     /* open the first page */
};

/* States of a printed incident, in the order of its life. */
enum run_standing { RUN_NOTICE, RUN_PAGE, RUN_GOES_ON, RUN_ENDED };

/* A bundle as it was when we printed it. */
struct run_printed {
	char name[64];
	enum run_standing standing;
	enum cw_severity severity; /* PAGE if it ever was a page */
	char *summary;             /* NULL = out of memory */
	/* state of the document's file, which shows whether the file was replaced */
	struct stat doc;
};

struct run_standalone {
	char dir[PATH_MAX];
	pid_t daemon;
	struct run_printed printed[RUN_MAX_PRINTED]; /* oldest first */
	unsigned n_printed;
	struct run_standalone_options options;
};

/*
 * Checks a setting for the daemon's configuration. We refuse keys that `run` sets itself, and
 * values that would end their quotes. The daemon checks the value later. Returns 0, or -EINVAL with
 * err set.
 */
int run_setting_check(const char *setting, struct cw_err *err);
/*
 * Starts the daemon and waits until it answers. Copies `options`, but borrows their texts. Returns
 * 0, or -errno with err set and nothing left behind. -EINVAL: the user made a mistake (a setting,
 * the peers, TMPDIR).
 */
int run_standalone_start(struct run_standalone *s, const struct run_standalone_options *options,
			 struct cw_err *err);
/*
 * Prints incidents on standard error. It prints those that appeared since the last call, and those
 * whose severity or summary changed or whose job goes on again.
 */
void run_standalone_print(struct run_standalone *s);
/*
 * Stops the daemon, and writes and opens the pages that the user wants. Prints where the bundles
 * are. If there are none, removes the directory.
 */
void run_standalone_stop(struct run_standalone *s);
