/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that plays an agent. It makes a small flight record and obeys single-letter commands.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

enum agent_flaw { /* flaws of the agent's registration */
		  AGENT_OK = 0,
		  AGENT_UNSEALED,
		  AGENT_NO_FD,
		  AGENT_NOT_MAPPED,
		  AGENT_NO_RECORD,    /* the descriptor is a pipe */
		  AGENT_TOO_NEW,      /* requires protocol versions that we do not have */
		  AGENT_GARBAGE,      /* a frame of random bytes */
		  AGENT_HUGE_FRAME,   /* claims 4 GiB */
		  AGENT_WRONG_FIRST,  /* another message before the hello */
		  AGENT_NEWER_RECORD, /* the record has a version that we cannot read */
		  /* record and protocol are newer, but say that we can read them: no flaw */
		  AGENT_NEXT_VERSION,
};

struct agent_options {
	int32_t rank;
	const char *job;
	uint64_t comm_id;
	enum agent_flaw flaw;
	uid_t then_uid; /* user for the command 'u' */
	/*
	 * Replaces fork(2). Returns 0 in the agent, and elsewhere the pid of the process that we
	 * must reap.
	 */
	pid_t (*fork)(void);
};

/*
 * Runs the agent. The process obeys the commands that arrive through `in` and answers them through
 * `out`, until `in` is closed. Exit code 99 = the test itself is broken.
 *
 * Each command is answered by one letter. It is 'k' unless the table has others:
 *	c connect and say hello: 'W' welcome, 'R' refused, 'X' connection closed
 *	d disconnect	n make a new record (not sent yet)
 *	o enter an op	r return from it
 *	p answer one request for Python stacks with the text "stacks of PID"
 *	q answer without a request, then 'k' if the daemon has not hung up
 *	l answer one request with 600 KiB of a frame of 1 MiB	L send the rest of that frame
 *	f like q, 50 times, each with a descriptor attached
 *	z answer 200 times without a request: 'X' when the daemon hangs up
 *	m send 200 messages that make no sense: 'X' when the daemon hangs up
 *	b burn 100 ms of CPU
 *	u become the user options.then_uid; root's user id must be the saved one
 * These commands end the process without an answer:
 *	e exit(3)	0 exit(0)	1 exit(1)	a abort	s write to address 0
 *	g take memory until the kernel kills it
 */
void fake_agent_main(const struct agent_options *options, const char *socket_path,
		     const struct cw_clock *clock, int in, int out) __attribute__((noreturn));
