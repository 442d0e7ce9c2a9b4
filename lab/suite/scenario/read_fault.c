/* SPDX-License-Identifier: Apache-2.0 */
/* Reads faults of ranks, and the expected answers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lab/suite/scenario/reader.h"

static const struct {
	const char *name;
	uint8_t action;
} rank_actions[] = {
	{ "block", SUITE_BLOCK },      { "spin", SUITE_SPIN },     { "io", SUITE_BUSY_IO },
	{ "child", SUITE_BUSY_CHILD }, { "exit", SUITE_EXIT_NOW }, { "kill", SUITE_KILL },
	{ "oom", SUITE_OOM },          { "stop", SUITE_STOP },     { "trace", SUITE_TRACE },
	{ "skip", SUITE_SKIP },        { "add", SUITE_ADD },       { "change", SUITE_CHANGE },
	{ "swap", SUITE_SWAP },        { "slow", SUITE_SLOW },     { "stuck", SUITE_STUCK },
	{ "wedge", SUITE_WEDGE },      { "blind", SUITE_BLIND },   { "fails", SUITE_FAILS },
	{ "errors", SUITE_ERRORS },    { "freeze", SUITE_FREEZE },
};

struct suite_fault *read_new_fault(struct reader *r)
{
	struct suite_fault *f = &r->s->faults[r->s->n_faults];

	if (r->s->n_faults == SUITE_MAX_FAULTS) {
		(void)read_fail(r, "too many faults", NULL);
		return NULL;
	}
	*f = (struct suite_fault){ .family = SUITE_NONE, .for_ns = SUITE_FOREVER };
	return f;
}

int read_fault_time(struct reader *r, struct suite_fault *f)
{
	if (!read_is(r, "at"))
		return read_fail(r, "when? (at TIME)", NULL);
	return read_time(r, &f->at_ns);
}

int read_fault_end(struct reader *r, struct suite_fault *f)
{
	if (read_is(r, "for") && read_time(r, &f->for_ns) < 0)
		return -EINVAL;
	r->s->n_faults++;
	return read_end(r);
}

static int read_enum(struct reader *r, int (*from_name)(const char *), uint64_t *ret)
{
	const char *w = read_word(r);
	int v = w ? from_name(w) : -1;

	if (v < 0)
		return read_fail(r, "not a value of that field:", w);
	*ret = (uint64_t)v;
	return 0;
}

static int collective_from_name(const char *name)
{
	int kind = cw_op_kind_from_name(name);

	return kind >= 0 && (cw_op_is_collective((unsigned)kind) || cw_op_is_p2p((unsigned)kind))
		       ? kind
		       : -1;
}

static int read_change(struct reader *r, struct suite_fault *f)
{
	static const char *const names[] = { "count", "dtype", "redop", "root",
					     "kind",  "comm",  "peer" };
	const char *w = read_word(r);
	uint32_t family;
	unsigned i;

	for (i = 0; w && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(w, names[i]) == 0)
			break;
	if (!w || i == sizeof(names) / sizeof(*names))
		return read_fail(r, "change which field? not", w);
	f->field = (uint8_t)i;
	switch (i) {
	case SUITE_FIELD_DTYPE:
		return read_enum(r, cw_dtype_from_name, &f->value);
	case SUITE_FIELD_REDOP:
		return read_enum(r, cw_redop_from_name, &f->value);
	case SUITE_FIELD_KIND:
		return read_enum(r, collective_from_name, &f->value);
	case SUITE_FIELD_COMM:
		if (read_family(r, &family) < 0)
			return -EINVAL;
		f->value = family;
		return 0;
	default:
		return read_u64(r, UINT64_C(1) << 40, &f->value);
	}
}

/* Reads the rest of: fails [exit [CODE]|block] */
static int read_failure(struct reader *r, struct suite_fault *f)
{
	if (read_is(r, "block")) {
		f->field = SUITE_FAILED_STANDS;
		return 0;
	}
	if (!read_is(r, "exit"))
		return 0;
	f->field = SUITE_FAILED_EXITS;
	f->value = 1;
	return r->at < r->words->n ? read_u64(r, 255, &f->value) : 0;
}

static int read_action(struct reader *r, struct suite_fault *f)
{
	const char *w = read_word(r);
	uint64_t n;
	unsigned i;

	for (i = 0; w && i < sizeof(rank_actions) / sizeof(*rank_actions); i++)
		if (strcmp(w, rank_actions[i].name) == 0)
			break;
	if (!w || i == sizeof(rank_actions) / sizeof(*rank_actions))
		return read_fail(r, "no such fault:", w);
	f->action = rank_actions[i].action;
	if (f->action == SUITE_CHANGE)
		return read_change(r, f);
	if (f->action == SUITE_FAILS)
		return read_failure(r, f);
	if (f->action == SUITE_SLOW) {
		int64_t ns;

		if (read_time(r, &ns) < 0)
			return -EINVAL;
		f->value = (uint64_t)ns;
	}
	if (f->action == SUITE_BLOCK || f->action == SUITE_BUSY_IO) {
		uint32_t wait;
		bool moves;

		if (read_wait(r, f->action == SUITE_BUSY_IO, &wait, &moves) < 0)
			return -EINVAL;
		f->action = moves ? SUITE_BUSY_IO : SUITE_BLOCK;
		f->wait = (uint8_t)wait;
	}
	f->value = f->action == SUITE_KILL ? SIGKILL : f->value;
	if ((f->action == SUITE_EXIT_NOW || f->action == SUITE_KILL) && r->at < r->words->n &&
	    strcmp(r->words->w[r->at], "for") != 0) {
		if (read_u64(r, 255, &n) < 0)
			return -EINVAL;
		f->value = n;
	}
	return 0;
}

static int kind_of_call(const char *w)
{
	int kind = collective_from_name(w);

	return kind > 0 ? kind : read_host_kind(w);
}

/* Reads: fault RANKS at TIME [on COMM [KIND]] ACTION [for TIME] */
int read_fault(struct reader *r)
{
	struct suite_fault *f = read_new_fault(r);
	int kind;

	if (!f || read_set(r, &f->set) < 0 || read_fault_time(r, f) < 0)
		return -EINVAL;
	if (read_is(r, "on")) {
		if (read_family(r, &f->family) < 0)
			return -EINVAL;
		kind = r->at < r->words->n ? kind_of_call(r->words->w[r->at]) : -1;
		if (kind > 0) {
			f->op_kind = (uint8_t)kind;
			r->at++;
		}
	}
	if (read_action(r, f) < 0)
		return -EINVAL;
	return read_fault_end(r, f);
}

static bool is_set_next(const struct reader *r)
{
	const char *w;

	if (r->at >= r->words->n)
		return false;
	w = r->words->w[r->at];
	return (*w >= '0' && *w <= '9') || !strcmp(w, "all") || !strcmp(w, "odd") ||
	       !strcmp(w, "even") || !strcmp(w, "every") || !strcmp(w, "not");
}

/* Reads an answer into v, an array of SUITE_MAX_ANSWERS. */
static int read_answer(struct reader *r, uint32_t incident, struct suite_answer *v, uint32_t *n)
{
	struct suite_answer *a = &v[*n];
	bool is_notice = v == r->s->answers && read_is(r, "notice");
	const char *w = read_word(r);
	int verdict_class = w ? cw_class_from_name(w) : -1, detail;

	if (*n == SUITE_MAX_ANSWERS)
		return read_fail(r, "too many answers", NULL);
	if (verdict_class <= 0)
		return read_fail(r, "not a class:", w);
	if (is_notice && (verdict_class == CW_CLASS_SLOW || incident))
		return read_fail(r, "no notice is expected of", w);
	*a = (struct suite_answer){ .verdict_class = (uint8_t)verdict_class,
				    .incident = (uint8_t)incident,
				    .is_notice = is_notice };
	if (!is_set_next(r) && r->at < r->words->n && strcmp(r->words->w[r->at], "or") != 0 &&
	    strcmp(r->words->w[r->at], "nobody") != 0) {
		w = read_word(r);
		detail = cw_detail_from_name(w);
		if (detail <= 0)
			return read_fail(r, "not a detail:", w);
		a->detail = (uint8_t)detail;
	}
	if (read_is(r, "nobody")) {
		a->has_culprits = a->is_nobody = true;
	} else if (is_set_next(r)) {
		a->has_culprits = true;
		if (read_set(r, &a->culprits) < 0)
			return -EINVAL;
	}
	++*n;
	return 0;
}

/* Reads: postmortem nothing, or: postmortem CLASS [DETAIL] [RANKS|nobody] [or …] */
static int read_postmortem(struct reader *r)
{
	struct suite_scenario *s = r->s;

	if (suite_expects_postmortem(s))
		return read_fail(r, "a job has one post-mortem", NULL);
	if (read_is(r, "nothing")) {
		s->has_no_postmortem = true;
		return read_end(r);
	}
	do {
		if (read_answer(r, 0, s->postmortems, &s->n_postmortems) < 0)
			return -EINVAL;
		if (s->postmortems[s->n_postmortems - 1].verdict_class == CW_CLASS_SLOW)
			return read_fail(r, "nobody dies of coming late", NULL);
	} while (read_is(r, "or"));
	return read_end(r);
}

/* Reads: expect slow nobody. The job is healthy, and we check that no rank comes late. */
static int read_nobody_slow(struct reader *r)
{
	r->s->nobody_is_slow = true;
	r->s->n_answers = 0;
	return read_end(r);
}

/* Reads: expect silence [or …], or: expect [notice] CLASS [DETAIL] [RANKS|nobody] [or …] */
int read_expect(struct reader *r)
{
	if (read_is(r, "postmortem"))
		return read_postmortem(r);
	r->has_expect = true;
	if (read_is(r, "silence")) {
		if (r->s->n_answers)
			return read_fail(r, "silence, or something?", NULL);
		if (!read_is(r, "or"))
			return read_end(r);
		r->s->may_be_silent = true;
	}
	if (suite_n_incidents(r->s) > 1)
		return read_fail(r, "what is expected stands before what is also", NULL);
	do {
		if (read_answer(r, 0, r->s->answers, &r->s->n_answers) < 0)
			return -EINVAL;
		if (r->s->answers[0].verdict_class == CW_CLASS_SLOW && r->s->answers[0].is_nobody)
			return read_nobody_slow(r);
	} while (read_is(r, "or"));
	return read_end(r);
}

/* Reads: also nothing, or: also CLASS [DETAIL] [RANKS|nobody] [or …] */
int read_also(struct reader *r)
{
	uint32_t nth = suite_n_incidents(r->s);

	if (!nth || r->s->is_alone || r->s->answers[0].verdict_class == CW_CLASS_SLOW ||
	    r->s->may_be_silent || suite_expects_notice(r->s))
		return read_fail(r, "also, beside what?", NULL);
	if (nth == 1 && read_is(r, "nothing")) {
		r->s->is_alone = true;
		return read_end(r);
	}
	do {
		if (read_answer(r, nth, r->s->answers, &r->s->n_answers) < 0)
			return -EINVAL;
		if (r->s->answers[r->s->n_answers - 1].verdict_class == CW_CLASS_SLOW)
			return read_fail(r, "who comes late is asked of jobs that get on", NULL);
	} while (read_is(r, "or"));
	return read_end(r);
}
