/* SPDX-License-Identifier: Apache-2.0 */
/* Reads faults of nodes, daemons, clocks and the whole job, and properties of machines. */
#include <errno.h>

#include "lab/suite/scenario/reader.h"

#define MAX_EVERY 1000u
/*
 * The largest drift in ppm. The drift of a quartz clock without NTP is less than a hundredth of
 * this.
 */
#define MAX_DRIFT_PPM 10000u
#define MAX_AHEAD_NS (INT64_C(366) * 86400 * 1000000000)
/*
 * The largest time that a clock may be behind. Scenarios begin 1,000 s after the machines, and a
 * clock must not show a time before its start.
 */
#define MAX_BEHIND_NS (INT64_C(900) * 1000000000)

/*
 * Takes the next word if the table contains it, and returns its index. Otherwise takes nothing and
 * returns -1.
 */
static int read_one_of(struct reader *r, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (read_is(r, names[i]))
			return (int)i;
	return -1;
}

/*
 * Reads: node NODES at TIME lost|silent|goodbye|killed|suspended|cut [from NODES]|stalled [from
 * NODES] [for TIME]
 */
int read_node_fault(struct reader *r)
{
	static const char *const names[] = { "lost",      "silent", "goodbye", "killed",
					     "suspended", "cut",    "stalled" };
	static const uint8_t actions[] = { SUITE_NODE_LOST,      SUITE_NODE_SILENT,
					   SUITE_NODE_GOODBYE,   SUITE_NODE_KILLED,
					   SUITE_NODE_SUSPENDED, SUITE_NODE_CUT,
					   SUITE_NODE_STALLED };
	struct suite_fault *f = read_new_fault(r);
	int i;

	if (!f || read_set(r, &f->set) < 0 || read_fault_time(r, f) < 0)
		return -EINVAL;
	i = read_one_of(r, names, 7);
	if (i < 0)
		return read_fail(
			r,
			"a node is lost, silent, killed, suspended, cut, stalled, or says goodbye",
			NULL);
	f->action = actions[i];
	if (suite_fault_is_between_daemons(f) && read_is(r, "from") && read_set(r, &f->others) < 0)
		return -EINVAL;
	return read_fault_end(r, f);
}

/* Reads: leader at TIME killed|silent|cut|stalled for TIME, or: leader at TIME anew */
int read_leader_fault(struct reader *r)
{
	static const char *const names[SUITE_LEADER__MAX] = { "killed", "silent", "cut", "stalled",
							      "anew" };
	struct suite_fault *f = read_new_fault(r);
	int i;

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	i = read_one_of(r, names, SUITE_LEADER__MAX);
	if (i < 0)
		return read_fail(r, "a leader is killed, silent, cut, stalled, or begins anew",
				 NULL);
	f->action = SUITE_LEADER;
	f->value = (uint64_t)i;
	if (read_fault_end(r, f) < 0)
		return -EINVAL;
	return i != SUITE_LEADER_ANEW && f->for_ns == SUITE_FOREVER
		       ? read_fail(r, "for how long?", NULL)
		       : 0;
}

/* Reads: digests at TIME late TIME|lost|twice every N [for TIME] */
int read_digests_fault(struct reader *r)
{
	static const char *const names[SUITE_DIGESTS__MAX] = { "late", "lost", "twice" };
	struct suite_fault *f = read_new_fault(r);
	int i;

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	i = read_one_of(r, names, SUITE_DIGESTS__MAX);
	if (i < 0)
		return read_fail(r, "digests come late, are lost, or come twice", NULL);
	f->action = SUITE_DIGESTS;
	f->field = (uint8_t)i;
	if (i == SUITE_DIGESTS_LATE && read_time(r, &f->late_ns) < 0)
		return -EINVAL;
	if (!read_is(r, "every") || read_u64(r, MAX_EVERY, &f->value) < 0 || f->value == 0)
		return read_fail(r, "every which of them? (every N)", NULL);
	return read_fault_end(r, f);
}

/* Reads: alerts at TIME undelivered|muted [for TIME] */
int read_alerts_fault(struct reader *r)
{
	static const char *const names[SUITE_ALERTS__MAX] = { "undelivered", "muted" };
	struct suite_fault *f = read_new_fault(r);
	int i;

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	i = read_one_of(r, names, SUITE_ALERTS__MAX);
	if (i < 0)
		return read_fail(r, "alerts are undelivered or muted", NULL);
	f->action = SUITE_ALERTS;
	f->value = (uint64_t)i;
	return read_fault_end(r, f);
}

/* Reads: crowd at TIME N [for TIME] */
int read_crowd(struct reader *r)
{
	struct suite_fault *f = read_new_fault(r);

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	if (read_u64(r, SUITE_MAX_CROWD, &f->value) < 0 || f->value == 0)
		return read_fail(r, "how many jobs?", NULL);
	f->action = SUITE_CROWD;
	return read_fault_end(r, f);
}

static int read_ahead(struct reader *r, struct suite_machine *m, int sign)
{
	if (read_time(r, &m->ahead_ns) < 0)
		return -EINVAL;
	if (m->ahead_ns > (sign < 0 ? MAX_BEHIND_NS : MAX_AHEAD_NS))
		return read_fail(r, "a year ahead, 15 minutes behind at most", NULL);
	m->ahead_ns *= sign;
	m->has_ahead = true;
	return 0;
}

/* Reads: machine NODES ahead TIME|behind TIME|fast PPM|slow PPM|newer … */
int read_machine(struct reader *r)
{
	struct suite_machine *m = &r->s->machines[r->s->n_machines];
	uint64_t ppm;
	bool is_fast;

	if (r->s->n_machines == SUITE_MAX_MACHINES)
		return read_fail(r, "too many lines about machines", NULL);
	*m = (struct suite_machine){ 0 };
	if (read_set(r, &m->set) < 0)
		return -EINVAL;
	if (r->at == r->words->n)
		return read_fail(r, "what of the machine? (ahead, behind, fast, slow, newer)",
				 NULL);
	while (r->at < r->words->n) {
		if (read_is(r, "newer")) {
			m->is_newer = true;
			continue;
		}
		if (read_is(r, "ahead")) {
			if (read_ahead(r, m, 1) < 0)
				return -EINVAL;
			continue;
		}
		if (read_is(r, "behind")) {
			if (read_ahead(r, m, -1) < 0)
				return -EINVAL;
			continue;
		}
		is_fast = read_is(r, "fast");
		if (!is_fast && !read_is(r, "slow"))
			return read_end(r);
		if (read_u64(r, MAX_DRIFT_PPM, &ppm) < 0)
			return -EINVAL;
		m->drift_ppm = is_fast ? (int32_t)ppm : -(int32_t)ppm;
		m->has_drift = true;
	}
	r->s->n_machines++;
	return 0;
}

/* Reads: job at TIME cancel|restart */
int read_job_fault(struct reader *r)
{
	struct suite_fault *f = read_new_fault(r);

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	if (read_is(r, "cancel"))
		f->action = SUITE_CANCEL;
	else if (read_is(r, "restart"))
		f->action = SUITE_RESTART;
	else
		return read_fail(r, "a job is told to cancel or to restart", NULL);
	return read_fault_end(r, f);
}

/* Reads: daemons at TIME restart|stop for TIME, or: daemons at TIME reload */
int read_daemons_fault(struct reader *r)
{
	struct suite_fault *f = read_new_fault(r);

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	if (read_is(r, "restart"))
		f->action = SUITE_DAEMONS_RESTART;
	else if (read_is(r, "stop"))
		f->action = SUITE_DAEMONS_STOP;
	else if (read_is(r, "reload"))
		f->action = SUITE_RELOAD;
	else
		return read_fail(r, "daemons restart, stop or reload", NULL);
	if (read_fault_end(r, f) < 0)
		return -EINVAL;
	if (f->action == SUITE_RELOAD)
		return 0;
	return f->for_ns == SUITE_FOREVER ? read_fail(r, "for how long?", NULL) : 0;
}

/* Reads: clock at TIME forward|back TIME */
int read_clock_fault(struct reader *r)
{
	struct suite_fault *f = read_new_fault(r);
	int64_t by, sign = 1;

	if (!f || read_fault_time(r, f) < 0)
		return -EINVAL;
	if (read_is(r, "back"))
		sign = -1;
	else if (!read_is(r, "forward"))
		return read_fail(r, "a clock is set forward or back", NULL);
	if (read_time(r, &by) < 0)
		return -EINVAL;
	f->action = SUITE_CLOCK;
	f->value = (uint64_t)(sign * by);
	return read_fault_end(r, f);
}
