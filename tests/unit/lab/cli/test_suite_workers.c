/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/cli/suite_workers.h"

#define N 23u

static struct outcome *new_outcome(int32_t culprit, bool is_notice)
{
	struct outcome *o = calloc(1, sizeof(*o));

	cr_assert(o);
	o->is_alert = !is_notice;
	o->is_notice = is_notice;
	o->culprits = calloc(3, sizeof(*o->culprits));
	cr_assert(o->culprits);
	o->culprits[0] = culprit;
	o->culprits[1] = culprit + 1;
	o->n_culprits = 2;
	return o;
}

/* The outcome of scenario i: some silence, some with an alert, another one, and two notices. */
static struct outcome outcome_of(uint64_t i)
{
	struct outcome o = { .n_checks = (uint32_t)i }, *first;

	if (i % 3 == 0)
		return o;
	first = new_outcome((int32_t)i, false);
	o = *first;
	free(first);
	o.n_checks = (uint32_t)i;
	(void)snprintf(o.summary, sizeof(o.summary), "scenario %u", (unsigned)i);
	if (i % 3 == 1)
		return o;
	o.also = new_outcome((int32_t)i + 100, false);
	o.notices = new_outcome((int32_t)i + 200, true);
	o.notices->also = new_outcome((int32_t)i + 300, true);
	return o;
}

static void is_same(const struct outcome *a, const struct outcome *b)
{
	cr_assert_eq(!a, !b);
	if (!a)
		return;
	cr_expect_eq(a->is_alert, b->is_alert);
	cr_expect_eq(a->is_notice, b->is_notice);
	cr_expect_eq(a->n_checks, b->n_checks);
	cr_expect_str_eq(a->summary, b->summary);
	cr_assert_eq(a->n_culprits, b->n_culprits);
	for (uint32_t i = 0; i < a->n_culprits; i++)
		cr_expect_eq(a->culprits[i], b->culprits[i]);
	is_same(a->also, b->also);
	is_same(a->notices, b->notices);
}

/* A worker's part of them; each third fails with a sentence where fails says so. */
static void work(struct suite_workers *w, uint64_t n, bool fails)
{
	struct cw_err err = { "no such rank" };

	for (uint64_t i = 0; i < n; i++) {
		struct outcome o;
		int r;

		if (!suite_workers_take(w))
			continue;
		o = outcome_of(i);
		r = suite_workers_put(w, fails && i % 3 == 2 ? -EINVAL : 0, &err, &o);
		cw_outcome_fini(&o);
		if (r < 0)
			break;
	}
	suite_workers_end(w);
}

static void go_through(unsigned n_workers)
{
	struct cw_err err = { "" };
	struct suite_workers w;

	cr_assert_eq(suite_workers_start(&w, n_workers), 0);
	if (suite_workers_is_one(&w))
		work(&w, N, false);
	for (uint64_t i = 0; i < N; i++) {
		struct outcome got, want = outcome_of(i);

		cr_assert(suite_workers_take(&w));
		cr_assert_eq(suite_workers_get(&w, &err, &got), 0, "%s", err.text);
		is_same(&got, &want);
		cw_outcome_fini(&got);
		cw_outcome_fini(&want);
	}
	suite_workers_end(&w);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "none is left");
}

Test(suite_workers, outcomes_come_in_order_and_whole)
{
	go_through(2);
	go_through(5);
}

Test(suite_workers, what_a_worker_could_not_do_is_said_by_the_parent)
{
	struct cw_err err = { "" };
	struct suite_workers w;
	struct outcome got;

	cr_assert_eq(suite_workers_start(&w, 2), 0);
	if (suite_workers_is_one(&w))
		work(&w, 3, true);
	for (uint64_t i = 0; i < 2; i++) {
		cr_assert(suite_workers_take(&w));
		cr_assert_eq(suite_workers_get(&w, &err, &got), 0);
		cw_outcome_fini(&got);
	}
	cr_assert(suite_workers_take(&w));
	cr_expect_eq(suite_workers_get(&w, &err, &got), -EINVAL);
	cr_expect_str_eq(err.text, "no such rank");
	suite_workers_end(&w);
}

Test(suite_workers, a_worker_that_dies_is_noticed)
{
	struct cw_err err = { "" };
	struct suite_workers w;
	struct outcome got;

	cr_assert_eq(suite_workers_start(&w, 2), 0);
	if (suite_workers_is_one(&w))
		_exit(1);
	cr_assert(suite_workers_take(&w));
	cr_expect_eq(suite_workers_get(&w, &err, &got), -EIO);
	cr_expect(strstr(err.text, "a worker has ended"), "%s", err.text);
	suite_workers_end(&w);
}

/* A parent that stops reading ends them, with more output than a pipe holds. */
Test(suite_workers, workers_end_with_their_parent)
{
	struct cw_err err = { "" };
	struct suite_workers w;
	struct outcome got;

	cr_assert_eq(suite_workers_start(&w, 2), 0);
	if (suite_workers_is_one(&w))
		work(&w, 100000, false);
	cr_assert(suite_workers_take(&w));
	cr_assert_eq(suite_workers_get(&w, &err, &got), 0);
	cw_outcome_fini(&got);
	suite_workers_end(&w);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "none is left");
}
