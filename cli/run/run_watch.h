/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a line at the end of `run` if the program called no NCCL, or if an agent could not make
 * its record. Agents write nothing to the program's output, so they report by datagrams
 * (proto/run_report.h).
 *
 * If `run` replaces itself by the program, it first leaves a small process behind. That process is
 * not a child of the program. It has its own session, and no descriptor except standard error. It
 * ends with the program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_watch {
	int fd;      /* negative: watching is off */
	int program; /* pidfd of the program, if a process stays behind */
	bool has_called;
	unsigned n_failed; /* number of processes that reported a missing record */
	pid_t failed;      /* pid of one of these processes */
	int error;         /* errno that the process `failed` reported */
};

/*
 * Opens the socket for reports and puts its name into the environment. Does nothing (fd < 0) in
 * case of an error, or if the environment has the socket of a `run` above this one.
 */
void run_watch_open(struct run_watch *w);
/* Reads the reports that have arrived. Does not block. */
void run_watch_read(struct run_watch *w);
/* Prints the line about missing NCCL calls or records, if there is a reason for one. */
void run_watch_say(struct run_watch *w);
/*
 * Leaves a process behind that prints the line when the program ends. Call it right before exec.
 * Returns a descriptor that a successful exec closes; if exec failed, write a byte to it. Negative
 * = there is no such process.
 */
int run_watch_stay_behind(struct run_watch *w);
void run_watch_fini(struct run_watch *w);
