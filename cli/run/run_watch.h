/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line that `run` prints at the end where the program called no NCCL, or where an agent could
 * make no record. Agents report by datagrams (proto/run_report.h), because they write nothing to
 * the program's output.
 *
 * Where `run` becomes the program, a small process stays behind: no child of the program, in a
 * session of its own, with no descriptor but standard error. It ends with the program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_watch {
	int fd;      /* negative: nothing is watched */
	int program; /* pidfd of the program, where a process stays behind */
	bool has_called;
	unsigned n_failed; /* processes without a record that reported it */
	pid_t failed;      /* one of them */
	int error;         /* and why */
};

/*
 * Listens, and puts the name into the environment. Does nothing (fd < 0) where a `run` above does
 * it already, or where it cannot be done.
 */
void run_watch_open(struct run_watch *w);
/* Takes what has come. Does not block. */
void run_watch_read(struct run_watch *w);
/* Prints the line, if there is one. */
void run_watch_say(struct run_watch *w);
/*
 * This process is about to become the program. Leaves a process behind that prints the line at the
 * program's end. Returns a descriptor that closes with a successful exec; write a byte to it where
 * exec failed. Negative: there is none.
 */
int run_watch_stay_behind(struct run_watch *w);
void run_watch_fini(struct run_watch *w);
