/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a line at the end of `run` if the program called no NCCL, or if an agent could make no
 * record. Agents report by datagrams (proto/run_report.h), because they write nothing to the
 * program's output.
 *
 * If `run` becomes the program, a small process stays behind. It is not a child of the program, has
 * a session of its own, and has no descriptor except standard error. It ends with the program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_watch {
	int fd;      /* negative: watching is off */
	int program; /* pidfd of the program, if a process stays behind */
	bool has_called;
	unsigned n_failed; /* processes that reported that they have no record */
	pid_t failed;      /* one of these */
	int error;         /* and its errno */
};

/*
 * Opens the socket and puts its name into the environment. Does nothing (fd < 0) if a `run` above
 * this one has done so, or if it fails.
 */
void run_watch_open(struct run_watch *w);
/* Reads the reports that have arrived. Does not block. */
void run_watch_read(struct run_watch *w);
/* Prints the line, if one is due. */
void run_watch_say(struct run_watch *w);
/*
 * Call it right before exec. Leaves a process behind that prints the line when the program ends.
 * Returns a descriptor that a successful exec closes; if exec failed, write a byte to it. Negative:
 * no process was left.
 */
int run_watch_stay_behind(struct run_watch *w);
void run_watch_fini(struct run_watch *w);
