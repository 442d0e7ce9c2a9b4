/* SPDX-License-Identifier: Apache-2.0 */
/* The node with an extension of the test's: the daemon needs no other knowledge of tensors. */
#include "daemon/node/job_tensor_stats.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/node/reading_budget.h"
#include "daemon/process/process.h"
#include "tests/support/record/record_writer.h"

#define RANKS 3u

static int64_t now_ns = 100 * CW_NS_PER_S;

static int64_t fake_now(void *user)
{
	return now_ns;
}

static const struct cw_clock fake = { .monotonic_ns = fake_now };

/* ---- the extension ---- */

struct state {
	struct cw_extension_finding findings[CW_EXTENSION_KINDS];
	unsigned n_calls;
};

static int answer;              /* the result of the next calls */
static unsigned n_calls;        /* calls of the job so far, by its state */
static uint32_t n_records;      /* records of the last call */
static int32_t ranks_of[RANKS]; /* … and their ranks */

static int on_digest(void *state, struct cw_record *const *records, uint32_t n, int64_t at_ns)
{
	struct state *s = state;

	n_calls = ++s->n_calls;
	n_records = n;
	for (uint32_t i = 0; i < n; i++)
		ranks_of[i] = cw_record_header(records[i])->rank_label;
	for (unsigned kind = 0; answer > 0 && kind < CW_EXTENSION_KINDS; kind++) {
		if (!(answer & 1 << kind))
			continue;
		s->findings[kind].seen_ns = at_ns;
		(void)snprintf(s->findings[kind].text, sizeof(s->findings[kind].text), "call %u",
			       n_calls);
	}
	return answer;
}

static const struct cw_extension_finding *finding(const void *state, unsigned kind)
{
	return &((const struct state *)state)->findings[kind];
}

static const struct cw_extension extension = {
	.kinds = { { .name = "odd", .message_id = "5b0d4c1fb0a84c5e8f5d2c9b7a3e6f10" },
		   { .name = "even", .message_id = "c7e2a9d86f1b4f33a4b8d05e91c6472f" } },
	.state_bytes = sizeof(struct state),
	.on_digest = on_digest,
	.finding = finding,
};

/* ---- the node's processes ---- */

static struct cw_test_record *writers[RANKS];
static struct cw_process processes[RANKS], *table;
static struct cw_reading_budget *budget;
static struct cw_job_tensor_stats *stats;

static void set_up(void)
{
	struct cw_job_id job;

	cr_assert_eq(cw_job_id_make(1000, "job-1", &job), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct cw_process *p = &processes[i];

		writers[i] = cw_test_record_new();
		writers[i]->header->rank_label = (int32_t)i;
		writers[i]->header->has |= CW_REC_HAS_SUMMARIES;
		p->key.pid = i + 1;
		p->uid = 1000;
		p->job_key = job.key;
		(void)snprintf(p->label, sizeof(p->label), "%s", job.label);
		cr_assert_eq(cw_record_open(cw_test_record_dup(writers[i]), true, &p->record, NULL),
			     0);
		HASH_ADD(hh, table, key, sizeof(p->key), p);
	}
	cr_assert_eq(cw_reading_budget_new(&fake, &budget), 0);
	cr_assert_eq(cw_job_tensor_stats_new(&extension, &table, budget, &stats), 0);
}

static void tear_down(void)
{
	(void)cw_job_tensor_stats_free(stats);
	(void)cw_reading_budget_free(budget);
	HASH_CLEAR(hh, table);
	for (uint32_t i = 0; i < RANKS; i++) {
		cw_record_close(processes[i].record);
		cw_test_record_free(writers[i]);
	}
}

TestSuite(job_tensor_stats, .init = set_up, .fini = tear_down);

static void tick(void)
{
	now_ns += 100 * CW_NS_PER_S;
	cw_job_tensor_stats_tick(stats, now_ns);
}

static char listed[512];

static void on_finding(const struct cw_job_id *job, const struct cw_extension_kind *kind,
		       const struct cw_extension_finding *f, void *user)
{
	size_t len = strlen(listed);

	(void)snprintf(listed + len, sizeof(listed) - len, "%s %s: %.16s; ", job->label, kind->name,
		       f->text);
}

static const char *list(void)
{
	*listed = '\0';
	cw_job_tensor_stats_each_finding(stats, on_finding, NULL);
	return listed;
}

Test(job_tensor_stats, findings_are_counted_and_listed_by_kind)
{
	uint64_t totals[CW_EXTENSION_KINDS];

	tick();
	cr_expect_str_eq(list(), "");
	answer = 1 << 1;
	tick();
	cr_expect_str_eq(list(), "job-1 even: call 2; ");
	answer = 1 << 0 | 1 << 1;
	tick();
	cr_expect_str_eq(list(), "job-1 odd: call 3; job-1 even: call 3; ");
	answer = 0;
	tick();
	cr_expect_str_eq(list(), "job-1 odd: call 3; job-1 even: call 3; ");
	cw_job_tensor_stats_totals(stats, totals);
	cr_expect_eq(totals[0], 1);
	cr_expect_eq(totals[1], 2);
}

Test(job_tensor_stats, an_extension_without_memory_finds_nothing)
{
	uint64_t totals[CW_EXTENSION_KINDS];

	answer = -ENOMEM;
	tick();
	cr_expect_eq(n_calls, 1);
	cr_expect_str_eq(list(), "");
	cw_job_tensor_stats_totals(stats, totals);
	cr_expect_eq(totals[0] + totals[1], 0);
}

Test(job_tensor_stats, a_job_is_read_once_a_second_at_most)
{
	tick();
	cw_job_tensor_stats_tick(stats, now_ns + CW_JOB_TENSOR_STATS_NS / 2);
	cr_expect_eq(n_calls, 1);
}

Test(job_tensor_stats, only_records_with_summaries_are_read_and_living_ranks_first)
{
	processes[0].ended_ns = now_ns;
	writers[1]->header->has = 0;
	cr_assert_eq(cw_record_refresh(processes[1].record), 0);
	tick();
	cr_assert_eq(n_records, 2);
	cr_expect_eq(ranks_of[0], 2);
	cr_expect_eq(ranks_of[1], 0);
}

Test(job_tensor_stats, a_restarted_job_begins_with_an_empty_state)
{
	answer = 1;
	tick();
	tick();
	cr_expect_eq(n_calls, 2);
	answer = 0;
	for (uint32_t i = 0; i < RANKS; i++)
		processes[i].ended_ns = now_ns;
	tick();
	cr_expect_eq(n_calls, 3, "its last numbers still count");
	cr_expect_str_eq(list(), "job-1 odd: call 2; ");
	processes[0].ended_ns = 0;
	tick();
	cr_expect_eq(n_calls, 1);
	cr_expect_str_eq(list(), "");
}
