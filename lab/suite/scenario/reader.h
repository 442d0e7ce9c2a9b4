/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads scenarios, line by line and word by word. read.c takes the lines, and each read_*.c reads
 * one sort of line. Not thread-safe.
 */
#pragma once

#include "lab/suite/scenario/lexer.h"
#include "lab/suite/scenario/scenario.h"

struct reader {
	const char *file;
	suite_scenario_fn fn;
	void *user;
	struct cw_err *err;
	struct suite_scenario *s; /* the scenario that we read; NULL between scenarios */
	struct suite_program *program;
	uint32_t open[SUITE_MAX_NEST]; /* open blocks of the program, outermost first */
	uint32_t n_open;
	bool has_layout, has_ranks, has_expect;
	/* The current line. */
	const struct lexer_line *words;
	uint32_t at;
};

/* Returns -EINVAL, with "file:line: what "word"" in err; word may be NULL. */
int read_fail(const struct reader *r, const char *what, const char *word);

/* Returns the next word, or NULL at the end of the line. */
const char *read_word(struct reader *r);
/* Takes the next word if it is `word`. Otherwise takes nothing and returns false. */
bool read_is(struct reader *r, const char *word);
/* Fails if words are left on the line. */
int read_end(struct reader *r);

int read_u64(struct reader *r, uint64_t max, uint64_t *ret);
int read_time(struct reader *r, int64_t *ret_ns);
int read_set(struct reader *r, struct suite_set *ret);
int read_family(struct reader *r, uint32_t *ret);

/* Reads the rest of a call, after the word for its kind. */
int read_call(struct reader *r, unsigned kind, struct suite_call *ret);
/* Reads a line of a program. */
int read_insn(struct reader *r);
void read_free_program(struct suite_program *p);

/*
 * Returns a new fault of the scenario. It becomes valid with read_fault_end(). NULL = there are too
 * many faults.
 */
struct suite_fault *read_new_fault(struct reader *r);
/* Reads: at TIME */
int read_fault_time(struct reader *r, struct suite_fault *f);
/* Reads: [for TIME], and the end of the line. */
int read_fault_end(struct reader *r, struct suite_fault *f);

/* Read lines "node …", "leader …" and so on, from their second word on (read_cluster.c). */
int read_node_fault(struct reader *r);
int read_leader_fault(struct reader *r);
int read_alerts_fault(struct reader *r);
int read_crowd(struct reader *r);
int read_digests_fault(struct reader *r);
int read_machine(struct reader *r);
int read_job_fault(struct reader *r);
int read_daemons_fault(struct reader *r);
int read_clock_fault(struct reader *r);

/* Read lines "fault …", "expect …" and "also …", from their second word on. */
int read_fault(struct reader *r);
int read_expect(struct reader *r);
int read_also(struct reader *r);

/* Read lines "nccl …", "environment …", "told …" and "starts …", from their second word on. */
int read_version(struct reader *r);
int read_environment(struct reader *r);
int read_told(struct reader *r);
int read_starts(struct reader *r);

/*
 * Reads: [in lock|gil|queue|socket|tty|sync|storage still|storage moving]. This is the object that
 * an idle host sleeps on, an enum cw_host_wait. The default is a queue, or moving storage for `io`.
 * *ret_moves: true if bytes move, which counts as work.
 */
int read_wait(struct reader *r, bool is_io, uint32_t *ret_wait, bool *ret_moves);

/* Returns the kind of init, split or finalize; -1 = the word is none of these. */
int read_host_kind(const char *w);
