/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario while it is read, line by line and word by word: read.c takes the lines, each read_*.c
 * one sort of them. Not thread-safe.
 */
#pragma once

#include "lab/suite/scenario/lexer.h"
#include "lab/suite/scenario/scenario.h"

struct reader {
	const char *file;
	suite_scenario_fn fn;
	void *user;
	struct cw_err *err;
	struct suite_scenario *s; /* being read; NULL between scenarios */
	struct suite_program *program;
	uint32_t open[SUITE_MAX_NEST]; /* blocks of the program, outermost first */
	uint32_t n_open;
	bool has_layout, has_ranks, has_expect;
	/* The line at hand. */
	const struct lexer_line *words;
	uint32_t at;
};

/* Returns -EINVAL, with "file:line: what "word"" in err; word may be NULL. */
int read_fail(const struct reader *r, const char *what, const char *word);

/* The next word, or NULL at the end of the line. */
const char *read_word(struct reader *r);
/* Takes the next word if it is this one. */
bool read_is(struct reader *r, const char *word);
/* Fails where words are left over. */
int read_end(struct reader *r);

int read_u64(struct reader *r, uint64_t max, uint64_t *ret);
int read_time(struct reader *r, int64_t *ret_ns);
int read_set(struct reader *r, struct suite_set *ret);
int read_family(struct reader *r, uint32_t *ret);

/* A call, from the word after its kind on. */
int read_call(struct reader *r, unsigned kind, struct suite_call *ret);
/* A line of a program. */
int read_insn(struct reader *r);
void read_free_program(struct suite_program *p);

/* A new fault of the scenario, that counts from read_fault_end() on; NULL: there are too many. */
struct suite_fault *read_new_fault(struct reader *r);
/* at TIME */
int read_fault_time(struct reader *r, struct suite_fault *f);
/* [for TIME], and the end of the line. */
int read_fault_end(struct reader *r, struct suite_fault *f);

/* Lines that begin with such a word, from their second word on (read_cluster.c). */
int read_node_fault(struct reader *r);
int read_leader_fault(struct reader *r);
int read_alerts_fault(struct reader *r);
int read_crowd(struct reader *r);
int read_digests_fault(struct reader *r);
int read_machine(struct reader *r);
int read_job_fault(struct reader *r);
int read_daemons_fault(struct reader *r);
int read_clock_fault(struct reader *r);

/* Lines "fault …" and "expect …", from their second word on. */
int read_fault(struct reader *r);
int read_expect(struct reader *r);
int read_also(struct reader *r);

/* Lines "nccl …", "environment …", "told …" and "starts …", from their second word on. */
int read_version(struct reader *r);
int read_environment(struct reader *r);
int read_told(struct reader *r);
int read_starts(struct reader *r);

/*
 * [in lock|gil|queue|socket|tty|sync|storage still|storage moving]: what a host that does nothing
 * sleeps in, an enum cw_host_wait; without it a queue, or of `io` moving storage. *ret_moves: bytes
 * move, which is work.
 */
int read_wait(struct reader *r, bool is_io, uint32_t *ret_wait, bool *ret_moves);

/* init, split, finalize; -1 = none of them. */
int read_host_kind(const char *w);
