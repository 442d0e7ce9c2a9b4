/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that plays an agent: it makes a small flight record of its own, and obeys
 * single-letter commands.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"

enum agent_flaw { /* flaws of this agent's registration */
		  AGENT_OK = 0,
		  AGENT_UNSEALED,
		  AGENT_NO_FD,
		  AGENT_NOT_MAPPED,
		  AGENT_NO_RECORD,    /* the descriptor is a pipe */
		  AGENT_TOO_NEW,      /* wants protocol versions we do not have */
		  AGENT_GARBAGE,      /* a frame of random bytes */
		  AGENT_HUGE_FRAME,   /* claims 4 GiB */
		  AGENT_WRONG_FIRST,  /* another message before the hello */
		  AGENT_NEWER_RECORD, /* of a version that we cannot read */
		  AGENT_NEXT_VERSION, /* newer in all, and it says that we can read it: no flaw */
};

struct agent_options {
	int32_t rank;
	const char *job;
	uint64_t comm_id;
	enum agent_flaw flaw;
	uid_t then_uid; /* for 'u' */
	/* Instead of fork(2): 0 in the agent. The process it returns is the one to be reaped. */
	pid_t (*fork)(void);
};

/*
 * The process obeys the commands that come through `in` and answers them through `out`, until `in`
 * is closed. Exit code 99 = the test itself is broken.
 *
 * Commands, each answered by one letter ('k' unless said):
 *	c connect and say hello: 'W' welcome, 'R' refused, 'X' connection closed
 *	d disconnect	n make a new record (not sent yet)
 *	o enter an op	r return from it
 *	p answer one request for Python stacks with the text "stacks of PID"
 *	q answer without a request, then 'k' when the daemon has not hung up
 *	l answer one with 600 KiB of a frame of 1 MiB, and no more	L the rest of it
 *	f as q, 50 times, each with a descriptor attached
 *	z answer 200 times without a request: 'X' when the daemon hangs up
 *	m send 200 messages that make no sense: 'X' when the daemon hangs up
 *	b burn 100 ms of CPU
 *	u become the user options.then_uid; root's user id must be the saved one
 * These end it, without an answer:
 *	e exit(3)	0 exit(0)	1 exit(1)	a abort	s write to address 0
 *	g take memory until the kernel kills it
 */
void fake_agent_main(const struct agent_options *options, const char *socket_path,
		     const struct cw_clock *clock, int in, int out) __attribute__((noreturn));
