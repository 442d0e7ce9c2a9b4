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
		(void)snprintf(buf, len, "ended; the kernel did not report how");
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

/*
 * True if all marked ranks belong to one process. They then end at one time and for one cause.
 */
static bool are_one_process(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			    const bool *marked)
{
	const struct cw_postmortem_death *one = NULL;

	for (uint32_t i = 0; i < n_deaths; i++) {
		if (!marked[i])
			continue;
		if (one && (one->node != deaths[i].node || one->pid <= 0 ||
			    one->pid != deaths[i].pid || one->ended_ns != deaths[i].ended_ns))
			return false;
		one = one ? one : &deaths[i];
	}
	return true;
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
		const struct cw_postmortem_death *death = &deaths[i];
		uint32_t k = 0;

		if (!is_first[i] || death->end_by != CW_END_BY_PROCESS || !death->end_sender)
			continue;
		while (k < n_deaths && (k == i || !is_first[k] || deaths[k].node != death->node ||
					deaths[k].pid != death->end_sender))
			k++;
		if (k == n_deaths)
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
 * True if a signal such as SIGTERM ended the first ranks and most others. Ranks that ended in other
 * ways did so later.
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

void cw_postmortem_order(const struct cw_postmortem_death *deaths, uint32_t n_deaths,
			 bool *is_first, struct cw_postmortem_first *ret)
{
	enum cw_postmortem_kind strongest = CW_POSTMORTEM_ALIVE;
	struct cw_postmortem_first f = { 0 };
	bool is_one;

	for (uint32_t i = 0; i < n_deaths; i++) {
		is_first[i] = false;
		if (!has_failed(&deaths[i]))
			continue;
		if (!f.n_failed++ || deaths[i].ended_ns < deaths[f.earliest].ended_ns)
			f.earliest = i;
	}
	if (!f.n_failed) {
		*ret = f;
		return;
	}
	for (uint32_t i = 0; i < n_deaths; i++) {
		int64_t apart_ns = deaths[i].ended_ns - deaths[f.earliest].ended_ns;

		if (!has_failed(&deaths[i]))
			continue;
		is_first[i] = is_together(&deaths[f.earliest], &deaths[i]);
		f.n_together += is_first[i];
		/* The time from the earliest failure to the next one that is clearly later. */
		if (!is_first[i] && (!f.margin_ns || apart_ns < f.margin_ns))
			f.margin_ns = apart_ns;
	}
	is_one = are_one_process(deaths, n_deaths, is_first);
	if (f.n_failed > 1 && !is_one)
		f.reason = CW_FIRST_BY_CAUSE;
	else if (f.n_failed > f.n_together)
		f.reason = CW_FIRST_BY_TIME;
	drop_receivers(deaths, n_deaths, is_first, &f);
	for (uint32_t i = 0; i < n_deaths; i++)
		if (is_first[i] && cw_postmortem_kind(&deaths[i]) < strongest)
			strongest = cw_postmortem_kind(&deaths[i]);
	for (uint32_t i = 0; i < n_deaths; i++)
		is_first[i] = is_first[i] && cw_postmortem_kind(&deaths[i]) == strongest;
	f.n_first = count(is_first, n_deaths);
	if (f.n_first > 1 && !are_one_process(deaths, n_deaths, is_first))
		f.reason = CW_FIRST_TIE;
	f.outcome = is_cancelled(deaths, n_deaths, is_first, &f) ? CW_POSTMORTEM_CANCELLED
								 : CW_POSTMORTEM_FAILED;
	*ret = f;
}
