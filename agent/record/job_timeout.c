/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch has no environment variable for the timeout. The program passes the timeout to
 * init_process_group(), and usually takes it from an option. The options have few names, but not
 * every name states the unit. With a wrong timeout we would alert too early or not at all. An
 * option therefore counts only if its name, or another argument beside it, makes the unit certain.
 * Otherwise the timeout stays unknown.
 *
 *   --distributed-timeout-minutes   NVIDIA/Megatron-LM (training/arguments.py) and programs built
 *       on it, modelscope/ms-swift with underscores. The timeout applies to all groups.
 *   --distributed-timeout-seconds-after-init   also Megatron-LM (training/training.py). This
 *       timeout applies from the second iteration on and the other one before, so a job has two
 *       timeouts.
 *   --comm.init_timeout_seconds, --comm.train_timeout_seconds   pytorch/torchtitan (train.py): two
 *       timeouts, too.
 *   --ddp_timeout   seconds in huggingface/transformers (training_args.py: timedelta(seconds=…)),
 *       minutes in kohya-ss/sd-scripts (library/accelerator_setup.py: timedelta(minutes=…)).
 *   DEEPSPEED_TIMEOUT   minutes in deepspeedai/DeepSpeed (constants.py). It applies to the first
 *       group only, and has no effect if Transformers passes its own timeout.
 */
#include "agent/record/job_timeout.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "common/parse.h"

#define NS_PER_S UINT64_C(1000000000)

#define LONGEST_S (CW_JOB_TIMEOUT_LONGEST_NS / NS_PER_S)

/*
 * We read at most this much of the command line. One argument may take 128 KiB, and a command line
 * several megabytes. The options come well before this limit.
 */
#define ARGUMENTS_BYTES (256u * 1024)

enum unit {
	UNIT_MINUTES,
	UNIT_BY_TRAINER, /* seconds if Transformers reads the option, else unknown */
	UNIT_TWO_TIMES,  /* two timeouts, so we know neither */
};

/*
 * The options that we know. If the command line has several of them, the first one in this order
 * counts. In names we treat '_' as '-'.
 */
static const struct option {
	const char *name;
	enum unit unit;
} options[CW_JOB_OPTIONS] = {
	{ "--distributed-timeout-seconds-after-init", UNIT_TWO_TIMES },
	{ "--comm.train-timeout-seconds", UNIT_TWO_TIMES },
	{ "--comm.init-timeout-seconds", UNIT_TWO_TIMES },
	{ "--distributed-timeout-minutes", UNIT_MINUTES },
	{ "--ddp-timeout", UNIT_BY_TRAINER },
};

/* Options that only Transformers has. sd-scripts has --train_batch_size instead. */
static const char *const transformers[] = {
	"--per-device-train-batch-size",
	"--per-device-eval-batch-size",
};

static bool is_name(const char *word, size_t len, const char *name)
{
	size_t i;

	for (i = 0; i < len && name[i]; i++)
		if (word[i] != name[i] && !(word[i] == '_' && name[i] == '-'))
			return false;
	return i == len && !name[i];
}

static void take_value(struct cw_job_arguments *args, uint32_t option, const char *text)
{
	if (cw_parse_u64(text, 1, UINT64_MAX, &args->options[option].value) < 0)
		args->options[option].value = 0;
}

/* Handles a complete argument, which ends with a NUL. */
static void take_word(struct cw_job_arguments *args)
{
	uint32_t value_of_plus_1 = args->option_plus_1;
	size_t len = strcspn(args->word, "=");

	args->option_plus_1 = 0;
	if (value_of_plus_1) {
		take_value(args, value_of_plus_1 - 1, args->word);
		return;
	}
	for (uint32_t i = 0; i < sizeof(transformers) / sizeof(transformers[0]); i++)
		if (is_name(args->word, len, transformers[i]))
			args->is_transformers = true;
	for (uint32_t i = 0; i < CW_JOB_OPTIONS; i++) {
		if (!is_name(args->word, len, options[i].name))
			continue;
		args->options[i].is_given = true;
		args->options[i].value = 0;
		memcpy(args->options[i].name, args->word, len);
		args->options[i].name[len] = '\0';
		if (args->word[len] == '=')
			take_value(args, i, args->word + len + 1);
		else
			args->option_plus_1 = i + 1;
	}
}

void cw_job_arguments_feed(struct cw_job_arguments *args, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (args->word_bytes < sizeof(args->word))
			args->word[args->word_bytes] = bytes[i];
		if (bytes[i]) {
			args->word_bytes += args->word_bytes < sizeof(args->word);
			continue;
		}
		if (args->word_bytes == sizeof(args->word))
			args->word[0] = '\0'; /* the argument is too long for a name or a number */
		take_word(args);
		args->word_bytes = 0;
	}
}

/* Returns the option's timeout in seconds; 0 = longer than LONGEST_S, or unknown. */
static uint64_t seconds_of(const struct cw_job_arguments *args, uint32_t option)
{
	uint64_t value = args->options[option].value;
	enum unit unit = options[option].unit;

	if (value > LONGEST_S || unit == UNIT_TWO_TIMES ||
	    (unit == UNIT_BY_TRAINER && !args->is_transformers))
		return 0;
	value *= unit == UNIT_MINUTES ? 60 : 1;
	return value <= LONGEST_S ? value : 0;
}

static bool take_arguments(const struct cw_job_arguments *args, struct cw_job_timeout *ret)
{
	for (uint32_t i = 0; i < CW_JOB_OPTIONS; i++) {
		if (!args->options[i].is_given)
			continue;
		ret->ns = seconds_of(args, i) * NS_PER_S;
		(void)snprintf(ret->source, sizeof(ret->source), "%s %llu in its arguments",
			       args->options[i].name, (unsigned long long)args->options[i].value);
		if (!ret->ns)
			cw_log("%s: no time-out of the job follows", ret->source);
		return true;
	}
	return false;
}

static void take_variable(struct cw_job_timeout *ret, const char *name)
{
	(void)snprintf(ret->source, sizeof(ret->source), "%s in its environment", name);
}

void cw_job_timeout_of(const struct cw_env *env, const struct cw_job_arguments *args,
		       struct cw_job_timeout *ret)
{
	const char *text = cw_env_get(env, "COLLWATCH_JOB_TIMEOUT");
	int64_t ns;

	*ret = (struct cw_job_timeout){ 0 };
	if (text && cw_parse_duration_ns(text, &ns) == 0) {
		ret->ns = (uint64_t)ns;
		take_variable(ret, "COLLWATCH_JOB_TIMEOUT");
		return;
	}
	if (text)
		cw_log("COLLWATCH_JOB_TIMEOUT is no time like 30min, ignoring it");
	if (args && take_arguments(args, ret))
		return;
	if (cw_env_get(env, "DEEPSPEED_TIMEOUT"))
		take_variable(ret, "DEEPSPEED_TIMEOUT");
}

void cw_job_timeout_read(const struct cw_env *env, struct cw_job_timeout *ret)
{
	struct cw_job_arguments args = { 0 };
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	char buf[4096];
	ssize_t n;

	for (size_t left = ARGUMENTS_BYTES; fd >= 0 && left; left -= (size_t)n) {
		n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf));
		if (n <= 0)
			break;
		cw_job_arguments_feed(&args, buf, (size_t)n);
	}
	if (fd >= 0)
		(void)close(fd);
	cw_job_timeout_of(env, &args, ret);
}
