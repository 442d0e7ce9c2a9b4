/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements of the analysis, as data. A clause is a list of sayings. A saying is a fixed
 * phrase with typed arguments: ranks, hosts, communicators, durations (model/saying_list.h). No
 * code needs to search English text for a fact, and an anonymous report knows which words are
 * names. lib/say makes text from a clause.
 *
 * All memory of a clause comes from the caller's arena, which also copies names. A clause therefore
 * lives as long as the arena and does not need the snapshot. Pure; not thread-safe; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/arena.h"
#include "model/op.h"
#include "model/saying_list.h"

enum cw_saying {
#define CW_SAYING_ENUM(name, arguments, english) CW_SAYING_##name,
	CW_SAYINGS(CW_SAYING_ENUM)
#undef CW_SAYING_ENUM
		CW_SAYING__MAX,
};

/* The kinds of arguments. Each kind is a letter in the rows of CW_SAYINGS(). */
enum cw_arg_kind {
	CW_ARG_NONE = 0,
	CW_ARG_RANKS = 'R',
	CW_ARG_PROCESS = 'P',
	CW_ARG_HOST = 'H',
	CW_ARG_HOSTS = 'S',
	CW_ARG_COMM = 'C',
	CW_ARG_CALL = 'O',
	CW_ARG_OP = 'F',
	CW_ARG_ERROR = 'E',
	CW_ARG_DURATION = 'D',
	CW_ARG_COUNT = 'N',
	CW_ARG_NUMBER = 'I',
	CW_ARG_SIGNAL = 'G',
	CW_ARG_VERSION = 'V',
	CW_ARG_DETAIL = 'J',
	CW_ARG_DTYPE = 'Y',
	CW_ARG_REDOP = 'Z',
	CW_ARG_TEXT = 'T',
	CW_ARG_CLAUSE = 'L',
};

struct cw_clause;

/* One argument of a saying. Texts are not NULL unless a comment allows it; "" = unknown. */
struct cw_arg {
	uint8_t kind; /* enum cw_arg_kind */
	union {
		struct {
			const int32_t *labels; /* NULL = only the number n of ranks is known */
			uint32_t n;
			bool is_rest; /* all ranks that the sentence does not name otherwise */
		} ranks;
		struct {
			int32_t label; /* -1 = the rank has no number */
			int32_t pid;   /* pid as the process's host sees it; 0 = unknown */
			/* Pid as the process's pod sees it; 0 = unknown, or the same as pid. */
			int32_t own_pid;
			const char *host, *pod, *pod_namespace;
		} process;
		struct {
			const char *const *names; /* the order for people */
			uint32_t n;
		} hosts;
		struct {
			const char *name;
			uint64_t id;
		} comm;
		struct {
			uint8_t kind;      /* enum cw_op_kind */
			bool is_unknown;   /* even the kind of the call is not known */
			bool is_comm_rank; /* peer is a rank of the communicator, not of the job */
			int32_t peer;      /* peer of a send or receive; -1 = none */
			uint64_t seq;      /* 0 = the call has no number */
		} call;
		struct cw_op op;
		struct {
			int32_t result; /* ncclResult_t */
			const char *text;
		} error;
		struct {
			int64_t ns;
			bool is_unknown;
			bool is_less; /* the duration is shorter than ns, a whole number of s */
		} duration;
		uint64_t count;
		int32_t number;   /* a number, a signal, or the value of an enum */
		uint32_t version; /* as ncclGetVersion() returns it */
		const char *text; /* also used for the name of a host */
		const struct cw_clause *clause;
	};
};

struct cw_said {
	enum cw_saying saying;
	uint32_t n_args;
	const struct cw_arg *args;
};

/* A zeroed clause with an arena is empty and renders as "". */
struct cw_clause {
	struct cw_arena *arena;
	struct cw_said *said;
	uint32_t n;
	bool is_incomplete; /* memory ran out, and at least one saying is missing */
};

/*
 * Appends a saying with n arguments, whose kinds must be those of its row. Copies the arguments,
 * but not the texts and lists that they point to: these must live as long as the arena. If the
 * arena is out of memory, the clause stays unchanged and is_incomplete becomes true.
 */
void cw_clause_add(struct cw_clause *clause, enum cw_saying saying, const struct cw_arg *args,
		   uint32_t n);

/*
 * Appends the saying of this name in CW_SAYINGS(), with its arguments, to the clause. Example:
 * cw_say(clause, never_reached, who, call, comm). Out of memory: like cw_clause_add().
 */
#define cw_say(clause, name, ...)                                                                  \
	cw_clause_add((clause), CW_SAYING_##name, CW_SAY_ARGS(__VA_ARGS__) + 1,                    \
		      sizeof(CW_SAY_ARGS(__VA_ARGS__)) / sizeof(struct cw_arg) - 1)
#define CW_SAY_ARGS(...) ((const struct cw_arg[]){ { .kind = CW_ARG_NONE }, ##__VA_ARGS__ })

/* Appends all sayings of another clause of the same arena. */
void cw_clause_append(struct cw_clause *clause, const struct cw_clause *more);

/* True if both clauses have equal sayings with equal arguments. */
bool cw_clause_is_same(const struct cw_clause *a, const struct cw_clause *b);

/*
 * Return the name of a saying ("never_reached"), and its kinds of arguments ("WOC"). saying <
 * CW_SAYING__MAX.
 */
const char *cw_saying_name(enum cw_saying saying);
const char *cw_saying_args(enum cw_saying saying);
/* Returns the saying of a name; -1 if the name is unknown, for example of a newer version. */
int cw_saying_from_name(const char *name);

/* True if an argument of this kind may stand where a row has the letter `row`. */
bool cw_arg_fits(char row, unsigned kind);
