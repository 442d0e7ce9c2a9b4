/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of lab/vjob/cluster_fault.c and their times, applied to the process itself. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab/programs/scenario_rank.h"
#include "lab/suite/scenario/fault.h"

#define S INT64_C(1000000000)

static int64_t clock_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	return ts.tv_sec * S + ts.tv_nsec;
}

int64_t rank_now_ns(const struct rank *r)
{
	return clock_ns() - r->start_ns;
}

void rank_sleep(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / S, .tv_nsec = ns % S };

	if (ns == SUITE_FOREVER)
		for (;;)
			(void)pause();
	while (ns > 0 && nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static void spin(const struct rank *r, int64_t ns)
{
	int64_t begin = rank_now_ns(r);

	while (ns == SUITE_FOREVER || rank_now_ns(r) - begin < ns)
		;
}

static bool is_from_outside(const struct suite_fault *f)
{
	return f->family == SUITE_NONE && f->op_kind == CW_OP_NONE &&
	       (f->action == SUITE_KILL || f->action == SUITE_STOP || f->action == SUITE_EXIT_NOW);
}

/* The watcher of the job measures from this moment. */
static void announce(const struct rank *r, const struct suite_fault *f)
{
	fprintf(stderr, "fault: rank %u action %u\n", r->index, f->action);
}

static void hit(const struct rank *r, const struct suite_fault *f)
{
	announce(r, f);
	if (f->action == SUITE_EXIT_NOW)
		_exit((int)f->value);
	(void)kill(getpid(), f->action == SUITE_STOP ? SIGSTOP : (int)f->value);
	if (f->action == SUITE_KILL)
		rank_sleep(SUITE_FOREVER);
}

struct later {
	const struct rank *r;
	const struct suite_fault *f;
};

static void *wait_and_hit(void *arg)
{
	const struct later *l = arg;

	rank_sleep(l->f->at_ns - rank_now_ns(l->r));
	hit(l->r, l->f);
	return NULL;
}

void faults_schedule(const struct rank *r)
{
	static struct later later[SUITE_MAX_FAULTS];
	pthread_t thread;

	for (uint32_t i = 0; i < r->s->n_faults; i++) {
		const struct suite_fault *f = &r->s->faults[i];

		if (!is_from_outside(f) || !cw_suite_set_has(&f->set, r->index))
			continue;
		later[i] = (struct later){ r, f };
		if (pthread_create(&thread, NULL, wait_and_hit, &later[i]) != 0)
			die("no thread for a fault");
	}
}

static enum effect apply(struct rank *r, struct suite_call *call, const struct suite_fault *f)
{
	switch (f->action) {
	case SUITE_BLOCK:
		rank_sleep(f->for_ns);
		return GOES_ON;
	case SUITE_SPIN:
		spin(r, f->for_ns);
		return GOES_ON;
	case SUITE_SKIP:
		return SKIPPED;
	case SUITE_ADD:
		return TWICE;
	case SUITE_SWAP:
		r->held = *call;
		r->has_held = true;
		return SKIPPED;
	case SUITE_SLOW:
		r->slow_ns = (int64_t)f->value;
		r->slow_until_ns =
			f->for_ns == SUITE_FOREVER ? SUITE_FOREVER : rank_now_ns(r) + f->for_ns;
		return GOES_ON;
	case SUITE_STUCK:
		rank_occupy(r, call->stream, f->for_ns);
		return GOES_ON;
	case SUITE_CHANGE:
		suite_fault_change(f, call);
		return GOES_ON;
	default:
		hit(r, f);
		return GOES_ON;
	}
}

void faults_delay(struct rank *r)
{
	if (r->slow_ns && rank_now_ns(r) >= r->slow_until_ns)
		r->slow_ns = 0;
	rank_sleep(r->slow_ns);
}

static bool is_due(const struct rank *r, uint32_t fault, const struct suite_call *call)
{
	const struct suite_fault *f = &r->s->faults[fault];

	return !is_from_outside(f) && rank_now_ns(r) >= f->at_ns && !r->done[fault] &&
	       cw_suite_set_has(&f->set, r->index) && suite_fault_is_for(f, call);
}

bool faults_are_due(const struct rank *r, const struct suite_call *call)
{
	for (uint32_t i = 0; i < r->s->n_faults; i++)
		if (is_due(r, i, call))
			return true;
	return false;
}

enum effect faults_before_call(struct rank *r, struct suite_call *call)
{
	faults_delay(r);
	for (uint32_t i = 0; i < r->s->n_faults; i++) {
		const struct suite_fault *f = &r->s->faults[i];
		enum effect effect;

		if (!is_due(r, i, call))
			continue;
		r->done[i] = true;
		announce(r, f);
		effect = apply(r, call, f);
		if (effect != GOES_ON)
			return effect;
	}
	return GOES_ON;
}
