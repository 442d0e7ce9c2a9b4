/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines from public scripts. The time-out that we read decides whether and when we page
 * people, so an ambiguous one counts as none.
 */
#include "agent/record/job_timeout.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define S UINT64_C(1000000000)
#define MAX_ARGUMENTS 8

static const char *const *variables; /* names and values, NULL at the end */

static const char *variable(const char *name, const void *user)
{
	for (const char *const *v = variables; v && *v; v += 2)
		if (strcmp(v[0], name) == 0)
			return v[1];
	return NULL;
}

static const struct cw_env env = { .get = variable };

static struct cw_job_timeout timeout_of(const char *const argv[MAX_ARGUMENTS])
{
	struct cw_job_arguments args = { 0 };
	struct cw_job_timeout timeout;

	for (int i = 0; i < MAX_ARGUMENTS && argv[i]; i++)
		cw_job_arguments_feed(&args, argv[i], strlen(argv[i]) + 1);
	cw_job_timeout_of(&env, &args, &timeout);
	return timeout;
}

#define PER_DEVICE "--per_device_train_batch_size"

Test(agent_job_timeout, takes_what_has_one_reading)
{
	static const struct {
		const char *argv[MAX_ARGUMENTS];
		uint64_t seconds;
		const char *source;
	} cases[] = {
		{ { "pretrain_gpt.py", "--distributed-timeout-minutes", "30", "--bf16" },
		  1800,
		  "--distributed-timeout-minutes 30 in its arguments" },
		{ { "x.py", "--distributed_timeout_minutes=60" },
		  3600,
		  "--distributed_timeout_minutes 60 in its arguments" },
		{ { "x.py", "--distributed-timeout-minutes", "1440" },
		  86400,
		  "--distributed-timeout-minutes 1440 in its arguments" },
		/* As argparse has it, the last one counts. */
		{ { "x.py", "--distributed-timeout-minutes=5", "--distributed-timeout-minutes",
		    "20" },
		  1200,
		  "--distributed-timeout-minutes 20 in its arguments" },
		{ { "run_clm.py", "--ddp_timeout", "3600", PER_DEVICE, "4" },
		  3600,
		  "--ddp_timeout 3600 in its arguments" },
		{ { "run_clm.py", "--per-device-eval-batch-size=4", "--ddp-timeout=60" },
		  60,
		  "--ddp-timeout 60 in its arguments" },
		/* This name is the value of another option. */
		{ { "x.py", "--distributed-timeout-minutes", "7", "--name", "--ddp-timeouts" },
		  420,
		  "--distributed-timeout-minutes 7 in its arguments" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_job_timeout timeout = timeout_of(cases[i].argv);

		cr_expect_eq(timeout.ns, cases[i].seconds * S, "case %u: %llu", i,
			     (unsigned long long)timeout.ns);
		cr_expect_str_eq(timeout.source, cases[i].source, "case %u", i);
	}
}

Test(agent_job_timeout, knows_that_something_was_said_where_it_cannot_tell_what)
{
	static const char *const cases[][MAX_ARGUMENTS] = {
		/* LlamaFactory's examples: the job must never be ended. */
		{ "x.py", "--ddp_timeout", "180000000", PER_DEVICE, "1" },
		{ "x.py", "--ddp_timeout", "180000000" },
		{ "x.py", "--distributed-timeout-minutes", "300000" },
		{ "x.py", "--distributed-timeout-minutes", "1441" },
		/* Minutes for sd-scripts, seconds for Transformers. */
		{ "flux_train.py", "--pretrained_model_name_or_path", "x", "--ddp_timeout", "60" },
		{ "x.py", "--ddp_timeout=3600" },
		/* One for the first iteration, another for the rest. */
		{ "x.py", "--distributed-timeout-minutes", "30",
		  "--distributed-timeout-seconds-after-init", "60" },
		{ "train.py", "--comm.train_timeout_seconds", "300" },
		{ "train.py", "--comm.init_timeout_seconds=900" },
		/* No numbers of minutes. */
		{ "x.py", "--distributed-timeout-minutes", "-30" },
		{ "x.py", "--distributed-timeout-minutes", "0" },
		{ "x.py", "--distributed-timeout-minutes", "30m" },
		{ "x.py", "--distributed-timeout-minutes=" },
		{ "x.py", "--distributed-timeout-minutes" },
		{ "x.py", "--distributed-timeout-minutes", "99999999999999999999999999" },
		{ "x.py", "--distributed-timeout-minutes",
		  "0000000000000000000000000000000000000000000000000000000000000000000030" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_job_timeout timeout = timeout_of(cases[i]);

		cr_expect_eq(timeout.ns, 0, "case %u: %llu", i, (unsigned long long)timeout.ns);
		cr_expect_str_neq(timeout.source, "", "case %u", i);
	}
}

Test(agent_job_timeout, knows_of_none_where_nobody_said_any)
{
	static const char *const cases[][MAX_ARGUMENTS] = {
		{ "train.py", "--timeout", "30" },
		{ "train.py", "--distributed-timeout-minutesx", "30" },
		{ "train.py", "--distributed-timeout", "30" },
		{ "train.py", "-distributed-timeout-minutes", "30" },
		{ "train.py", "distributed-timeout-minutes=30" },
		{ "train.py", "--DDP-timeout", "30", PER_DEVICE, "1" },
		{ "", "", "=", "--", "-", "--=" },
		{ NULL },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_job_timeout timeout = timeout_of(cases[i]);

		cr_expect_eq(timeout.ns, 0, "case %u", i);
		cr_expect_str_eq(timeout.source, "", "case %u: %s", i, timeout.source);
	}
}

Test(agent_job_timeout, takes_what_people_told_collwatch_first)
{
	static const char *const argv[MAX_ARGUMENTS] = { "--distributed-timeout-minutes", "30" };
	struct cw_job_timeout timeout;

	variables = (const char *const[]){ "COLLWATCH_JOB_TIMEOUT", "10min", NULL };
	timeout = timeout_of(argv);
	cr_expect_eq(timeout.ns, 600 * S);
	cr_expect_str_eq(timeout.source, "COLLWATCH_JOB_TIMEOUT in its environment");
	variables = (const char *const[]){ "COLLWATCH_JOB_TIMEOUT", "0", NULL };
	timeout = timeout_of(argv);
	cr_expect_eq(timeout.ns, 0, "it has none");
	cr_expect_str_neq(timeout.source, "", "and none is assumed");
	variables = (const char *const[]){ "COLLWATCH_JOB_TIMEOUT", "soon", NULL };
	cr_expect_eq(timeout_of(argv).ns, 1800 * S, "no time, ignored");
}

/* DeepSpeed takes minutes, of its first group; public scripts give it seconds, too. */
Test(agent_job_timeout, assumes_none_of_deepspeed_that_was_given_one)
{
	struct cw_job_timeout timeout;

	variables = (const char *const[]){ "DEEPSPEED_TIMEOUT", "7200", NULL };
	timeout = timeout_of((const char *const[MAX_ARGUMENTS]){ "train.py" });
	cr_expect_eq(timeout.ns, 0);
	cr_expect_str_eq(timeout.source, "DEEPSPEED_TIMEOUT in its environment");
	timeout = timeout_of((const char *const[MAX_ARGUMENTS]){ "train.py", "--ddp_timeout",
								 "3600", PER_DEVICE, "1" });
	cr_expect_eq(timeout.ns, 3600 * S, "Transformers hands over its own");
}

Test(agent_job_timeout, survives_megabytes_without_an_end)
{
	static const char tail[] = "\0--distributed-timeout-minutes\0"
				   "30";
	struct cw_job_arguments args = { 0 };
	struct cw_job_timeout timeout;
	char *block = malloc(1 << 20);

	cr_assert_not_null(block);
	memset(block, 0xff, 1 << 20);
	for (int i = 0; i < 4; i++)
		cw_job_arguments_feed(&args, block, 1 << 20);
	cw_job_timeout_of(&env, &args, &timeout);
	cr_expect_str_eq(timeout.source, "");
	cw_job_arguments_feed(&args, tail, sizeof(tail) - 1);
	cw_job_timeout_of(&env, &args, &timeout);
	cr_expect_eq(timeout.ns, 0, "the last argument has no end: perhaps it is 300");
	cw_job_arguments_feed(&args, "", 1);
	cw_job_timeout_of(&env, &args, &timeout);
	cr_expect_eq(timeout.ns, 1800 * S);
	free(block);
}
