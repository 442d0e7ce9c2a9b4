/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/stop_at.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/base/thread.h"
#include "agent/cuda/summary_growth.h"
#include "agent/record/record.h"

#define POLL_NS 20000000

/*
 * Bits 1 << enum cw_rec_stop: the causes to stop for. Once our thread runs, only that thread uses
 * `wanted` and `growth`.
 */
static unsigned wanted;
static struct cw_growth growth;
/* For each entry: the number of the last summary that we have seen. */
static uint64_t seen[CW_REC_SUMMARY_RING];

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == len && strncmp(at, word, len) == 0)
			return true;
	return false;
}

void cw_stop_at_start(void)
{
	const char *list = getenv("COLLWATCH_STOP_AT");

	if (!list || !*list)
		return;
	if (has_word(list, "nonfinite"))
		wanted |= 1u << CW_REC_STOP_NONFINITE;
	if (has_word(list, "headroom"))
		wanted |= 1u << CW_REC_STOP_HEADROOM;
	if (!wanted)
		cw_log("COLLWATCH_STOP_AT is neither nonfinite nor headroom");
	else if (!getenv("COLLWATCH_SUMMARY"))
		cw_log("COLLWATCH_STOP_AT has nothing to go by without COLLWATCH_SUMMARY");
}

/*
 * Stops the rank. We send SIGSTOP to this thread, which takes the signal before the system call
 * returns. When the call returns, SIGCONT has continued the rank. This thread blocks all other
 * signals, but cannot block SIGSTOP.
 */
static void stop(enum cw_rec_stop why, uint32_t entry)
{
	struct cw_rec_header *h = cw_record.header;

	wanted &= ~(1u << why);
	cw_log("stopping the rank: %s, as COLLWATCH_STOP_AT asks",
	       why == CW_REC_STOP_NONFINITE ? "NaN or Inf" : "numbers that will leave their type");
	CW_STORE(h->stopped_by, entry + 1);
	__atomic_store_n(&h->stopped_at, why, __ATOMIC_RELEASE);
	(void)syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), SIGSTOP);
	__atomic_store_n(&h->stopped_at, CW_REC_STOP_NONE, __ATOMIC_RELEASE);
}

/*
 * Copies the summary of an entry. Returns false if the device is writing the entry, or if we have
 * seen this summary before.
 */
static bool take(uint32_t i, struct cw_rec_summary *ret)
{
	const struct cw_rec_summary *s = &cw_record.summaries[CW_REC_SUMMARY_FIRSTS + i];
	uint64_t number = __atomic_load_n(&s->publish, __ATOMIC_ACQUIRE);

	if (!number || number == seen[i])
		return false;
	memcpy(ret, s, sizeof(*ret));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return ret->publish == number && CW_LOAD(s->publish) == number;
}

static void judge(uint32_t entry, const struct cw_rec_summary *s)
{
	bool is_leaving = cw_growth_is_leaving(&growth, s);

	if (s->nans + s->infs && wanted & 1u << CW_REC_STOP_NONFINITE)
		stop(CW_REC_STOP_NONFINITE, entry);
	if (is_leaving && wanted & 1u << CW_REC_STOP_HEADROOM)
		stop(CW_REC_STOP_HEADROOM, entry);
}

/*
 * Judges new summaries in the order of their numbers, as far as the device has written them. A
 * summary that arrives after its successor belongs to another stream, and so usually to another
 * communicator.
 */
static void judge_new(void)
{
	struct cw_rec_summary s, next;
	uint32_t found = 0;

	do {
		next.publish = 0;
		for (uint32_t i = 0; i < CW_REC_SUMMARY_RING; i++) {
			if (!take(i, &s) || (next.publish && s.publish > next.publish))
				continue;
			next = s;
			found = i;
		}
		if (next.publish) {
			seen[found] = next.publish;
			judge(CW_REC_SUMMARY_FIRSTS + found, &next);
		}
	} while (next.publish && wanted);
}

static void *run(void *arg)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	(void)prctl(PR_SET_NAME, "collwatch-stop");
	while (cw_agent_is_armed() && wanted) {
		judge_new();
		(void)nanosleep(&pause, NULL);
	}
	return arg;
}

void cw_stop_at_arm(void)
{
	static unsigned char has_thread;
	int r;

	if (!wanted || __atomic_test_and_set(&has_thread, __ATOMIC_ACQ_REL))
		return;
	r = cw_thread_start(run, NULL);
	if (r < 0)
		cw_log("COLLWATCH_STOP_AT: no thread: %s", strerror(-r));
}
