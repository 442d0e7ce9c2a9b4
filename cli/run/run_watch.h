/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a line at the end of `run` if the program called no NCCL, or if an agent could not make a
 * record. Agents report by datagrams (proto/run_report.h), because they write nothing to the
 * program's output.
 *
 * If `run` replaces itself by the program, a small process stays behind. It is not a child of the
 * program, has a session of its own, and has no descriptor except standard error. It ends with the
 * program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_watch {
	int fd;      /* negative: watching is off */
	int program; /* pidfd of the program, if a process stays behind */
	bool has_called;
	unsigned n_failed; /* number of processes that reported that they have no record */
	pid_t failed;      /* pid of one of these processes */
	int error;         /* errno that this process reported */
};

/*
 * Opens the socket and puts its name into the environment. If a `run` above this one has done so,
 * or in case of an error, does nothing (fd < 0).
 */
void run_watch_open(struct run_watch *w);
/* Reads the reports that have arrived. Does not block. */
void run_watch_read(struct run_watch *w);
/* Prints the line at the end, if one is due. */
void run_watch_say(struct run_watch *w);
/*
 * Call this right before exec. Leaves a process behind that prints the line when the program ends.
 * Returns a descriptor that a successful exec closes; if exec failed, write a byte to it.
 * Negative = no process was left.
 */
int run_watch_stay_behind(struct run_watch *w);
void run_watch_fini(struct run_watch *w);
