/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We find the earliest failure, then all deaths whose times are too close to tell apart. Among
 * these the kind of death decides, then the sender of a signal. A job counts as cancelled in two
 * cases: no rank failed before most ranks were asked to end, or SIGKILL ended all ranks at once.
 */
#include "leader/postmortem_first.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "model/death.h"

static bool is_asked(const struct cw_postmortem_death *death)
{
	const struct cw_ending end = { .liveness = death->liveness,
				       .exit_code = death->exit_code,
				       .term_signal = death->term_signal };

	if (cw_ending_is_asked(&end))
		return true;
	if (death->end_by == CW_END_BY_PARENT || death->end_by == CW_END_BY_INIT)
		return true;
	/*
	 * An exit with an error counts as requested if the kernel recorded a cause. The kernel also
	 * records that there was none.
	 */
	return death->liveness == CW_LIVE_EXITED && death->exit_code &&
	       death->end_by != CW_END_BY_UNKNOWN && death->end_by != CW_END_BY_NOBODY;
}

static enum cw_postmortem_kind kind_of_signal(const struct cw_postmortem_death *death)
{
	switch (death->term_signal) {
	case SIGKILL:
		return CW_POSTMORTEM_KILLED;
	case SIGABRT:
		return death->is_inside_call || death->has_lost_peer ? CW_POSTMORTEM_REACTION
								     : CW_POSTMORTEM_OWN;
	case SIGHUP:
	case SIGPIPE:
		/* The terminal of the process, or the reader of its pipe, is gone. */
		return CW_POSTMORTEM_REACTION;
	default:
		return death->end_by == CW_END_BY_PROCESS || death->end_by == CW_END_BY_OUTSIDE
			       ? CW_POSTMORTEM_KILLED
			       : CW_POSTMORTEM_OWN;
	}
}

enum cw_postmortem_kind cw_postmortem_kind(const struct cw_postmortem_death *death)
{
	if (!cw_liveness_is_dead(death->liveness))
		return CW_POSTMORTEM_ALIVE;
	if (death->liveness == CW_LIVE_GONE ||
	    (death->liveness == CW_LIVE_EXITED && !death->exit_code))
		return CW_POSTMORTEM_NO_FAILURE;
	if (death->is_oom_killed)
		return CW_POSTMORTEM_OWN;
	if (is_asked(death))
		return CW_POSTMORTEM_ASKED;
	if (death->liveness == CW_LIVE_KILLED)
		return kind_of_signal(death);
	if (death->has_lost_peer)
		return CW_POSTMORTEM_REACTION;
	return death->is_inside_call ? CW_POSTMORTEM_KILLED : CW_POSTMORTEM_OWN;
}

void cw_postmortem_format_end(const struct cw_postmortem_death *death, char *buf, uint32_t len)
{
	const char *name;

	switch (death->liveness) {
	case CW_LIVE_EXITED:
		(void)snprintf(buf, len, "exited with status %d", death->exit_code);
		break;
	case CW_LIVE_KILLED:
		name = cw_signal_name(death->term_signal);
		if (death->is_oom_killed)
			(void)snprintf(buf, len, "was killed by the OOM killer");
		else if (name)
			(void)snprintf(buf, len, "was killed by SIG%s", name);
		else
			(void)snprintf(buf, len, "was killed by signal %d", death->term_signal);
		break;
	case CW_LIVE_GONE:
		(void)snprintf(buf, len, "ended, the kernel did not say how");
		break;
	default:
		(void)snprintf(buf, len, "has not ended");
	}
}

static bool has_failed(const struct cw_postmortem_death *death)
{
	return cw_postmortem_kind(death) < CW_POSTMORTEM_NO_FAILURE;
}

/* True if both deaths may be simultaneous, given their uncertainty. */
static bool is_together(const struct cw_postmortem_death *a, const struct cw_postmortem_death *b)
{
	int64_t apart =
		b->ended_ns > a->ended_ns ? b->ended_ns - a->ended_ns : a->ended_ns - b->ended_ns;

	if (a->node == b->node)
		return apart <= 2 * CW_POSTMORTEM_NEAR_NS;
	return apart <= a->unsure_ns + b->unsure_ns;
}

/* True if both ranks are of one process. They then end at one time and for one cause. */
static bool is_one_process(const struct cw_postmortem_death *a, const struct cw_postmortem_death *b)
{
	return a->node == b->node && a->pid > 0 && a->pid == b->pid && a->ended_ns == b->ended_ns;
}

/* True if all marked ranks belong to one process. */
static bool are_one_process(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			    const bool *marked)
{
	const struct cw_postmortem_death *one = NULL;

	for (uint32_t i = 0; i < n_deaths; i++) {
		if (!marked[i])
			continue;
		if (one && !is_one_process(one, &deaths[i]))
			return false;
		one = one ? one : &deaths[i];
	}
	return true;
}

/* True if one of the marked ranks sent the signal to rank i. */
static bool was_sent_by_one_of(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			       const bool *marked, uint32_t i)
{
	for (uint32_t k = 0;
	     deaths[i].end_by == CW_END_BY_PROCESS && deaths[i].end_sender && k < n_deaths; k++)
		if (k != i && marked[k] && deaths[k].node == deaths[i].node &&
		    deaths[k].pid == deaths[i].end_sender)
			return true;
	return false;
}

static void keep_strongest(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			   bool *is_first)
{
	enum cw_postmortem_kind best = CW_POSTMORTEM_ALIVE;

	for (uint32_t i = 0; i < n_deaths; i++)
		if (is_first[i] && cw_postmortem_kind(&deaths[i]) < best)
			best = cw_postmortem_kind(&deaths[i]);
	for (uint32_t i = 0; i < n_deaths; i++)
		is_first[i] = is_first[i] && cw_postmortem_kind(&deaths[i]) == best;
}

static uint32_t count(const bool *is, uint32_t n_deaths)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n_deaths; i++)
		sum += is[i];
	return sum;
}

/*
 * Drops each of the first ranks whose signal came from another of them. The sender is to blame
 * before its target, no matter how the sender died.
 */
static void drop_receivers(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			   bool *is_first, struct cw_postmortem_first *f)
{
	uint32_t left = count(is_first, n_deaths);

	for (uint32_t i = 0; i < n_deaths && left > 1; i++) {
		if (!is_first[i] || !was_sent_by_one_of(deaths, n_deaths, is_first, i))
			continue;
		is_first[i] = false;
		f->is_sender_known = true;
		left--;
	}
}

/* True if one SIGKILL from outside ended all ranks, and no rank failed on its own. */
static bool is_stroke(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
		      const struct cw_postmortem_first *f)
{
	uint32_t killed = 0;

	for (uint32_t i = 0; i < n_deaths; i++) {
		enum cw_postmortem_kind kind = cw_postmortem_kind(&deaths[i]);

		if (kind == CW_POSTMORTEM_ALIVE || kind == CW_POSTMORTEM_OWN)
			return false;
		if (kind == CW_POSTMORTEM_NO_FAILURE)
			continue;
		if (!deaths[i].is_shutdown ||
		    deaths[i].ended_ns - deaths[f->earliest].ended_ns >
			    CW_POSTMORTEM_TOGETHER_NS + deaths[i].unsure_ns)
			return false;
		killed += kind == CW_POSTMORTEM_KILLED && deaths[i].term_signal == SIGKILL;
	}
	return killed >= 2 && killed == f->n_failed;
}

/*
 * True if the first ranks, and most others, were asked to end, and other kinds of death came later.
 */
static bool is_cancelled(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			 const bool *is_first, const struct cw_postmortem_first *f)
{
	uint32_t asked = 0;

	for (uint32_t i = 0; i < n_deaths; i++) {
		asked += cw_postmortem_kind(&deaths[i]) == CW_POSTMORTEM_ASKED;
		if (is_first[i] && cw_postmortem_kind(&deaths[i]) != CW_POSTMORTEM_ASKED)
			return is_stroke(deaths, n_deaths, f);
	}
	return 2 * asked > f->n_failed;
}

static void find_earliest(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			  struct cw_postmortem_first *f)
{
	for (uint32_t i = 0; i < n_deaths; i++) {
		if (!has_failed(&deaths[i]))
			continue;
		if (!f->n_failed++ || deaths[i].ended_ns < deaths[f->earliest].ended_ns)
			f->earliest = i;
	}
}

/* Returns the time from the earliest failure to the next one that is clearly later. */
static int64_t margin(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
		      uint32_t earliest)
{
	int64_t least = 0;

	for (uint32_t i = 0; i < n_deaths; i++) {
		int64_t apart = deaths[i].ended_ns - deaths[earliest].ended_ns;

		if (has_failed(&deaths[i]) && !is_together(&deaths[earliest], &deaths[i]) &&
		    (!least || apart < least))
			least = apart;
	}
	return least;
}

void cw_postmortem_order(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			 bool *is_first, struct cw_postmortem_first *ret)
{
	struct cw_postmortem_first f = { 0 };
	bool is_one;

	for (uint32_t i = 0; i < n_deaths; i++)
		is_first[i] = false;
	find_earliest(deaths, n_deaths, &f);
	if (!f.n_failed) {
		*ret = f;
		return;
	}
	for (uint32_t i = 0; i < n_deaths; i++) {
		is_first[i] =
			has_failed(&deaths[i]) && is_together(&deaths[f.earliest], &deaths[i]);
		f.n_together += is_first[i];
	}
	f.margin_ns = margin(deaths, n_deaths, f.earliest);
	is_one = are_one_process(deaths, n_deaths, is_first);
	if (f.n_failed > 1 && !is_one)
		f.reason = CW_POSTMORTEM_BY_CAUSE;
	else if (f.n_failed > f.n_together)
		f.reason = CW_POSTMORTEM_BY_TIME;
	drop_receivers(deaths, n_deaths, is_first, &f);
	keep_strongest(deaths, n_deaths, is_first);
	f.n_first = count(is_first, n_deaths);
	if (f.n_first > 1 && !are_one_process(deaths, n_deaths, is_first))
		f.reason = CW_POSTMORTEM_TIE;
	f.outcome = is_cancelled(deaths, n_deaths, is_first, &f) ? CW_POSTMORTEM_CANCELLED
								 : CW_POSTMORTEM_FAILED;
	*ret = f;
}

const char *cw_postmortem_reason_name(unsigned reason)
{
	static const char *const names[] = {
		[CW_POSTMORTEM_ONLY] = "only",
		[CW_POSTMORTEM_BY_TIME] = "time",
		[CW_POSTMORTEM_BY_CAUSE] = "cause",
		[CW_POSTMORTEM_TIE] = "tie",
	};

	return reason < sizeof(names) / sizeof(*names) ? names[reason] : "?";
}
