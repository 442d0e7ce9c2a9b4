/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws healthy jobs that look faulty in some way, and faulty jobs about which users want no alert.
 */
#include <string.h>

#include "lab/suite/builder.h"

/* ---- one unusual event ---- */

static void nothing(struct builder *d)
{
	(void)d;
}

/* A rank comes late, but before a page is due. */
static void late(struct builder *d)
{
	const struct draw_wait *w = draw_wait(d);

	draw_fault(d, "%s%s for %us", w->fault, w->in,
		   w->is_working ? builder_pick(d, 5, 200) : builder_pick(d, 2, 45));
}

static void all_late(struct builder *d)
{
	builder_put(d, "fault all at %us on main io for %us\n", d->at_s, builder_pick(d, 5, 90));
}

static void straggler(struct builder *d)
{
	builder_put(d, "fault %u at %us slow %ums\n", d->culprit, d->at_s,
		    builder_pick(d, 20, 5000));
}

static void debugged(struct builder *d)
{
	builder_put(d, "fault %u at %us trace for %us\n", d->culprit, d->at_s,
		    builder_pick(d, 5, 150));
}

static void stopped_shortly(struct builder *d)
{
	builder_put(d, "fault %u at %us stop for %us\n", d->culprit, d->at_s,
		    builder_pick(d, 1, 40));
}

static void daemon_restarts(struct builder *d)
{
	builder_put(d, "node %u at %us goodbye for %us\n", builder_pick(d, 0, 1), d->at_s,
		    builder_pick(d, 5, 90));
}

static void node_quiet(struct builder *d)
{
	uint32_t node = builder_pick(d, 0, 1), lasts_s = builder_pick(d, 1, 60);

	builder_put(d, "node %u at %us %s for %us\n", node, d->at_s,
		    builder_chance(d, 40) ? "suspended" : "silent", lasts_s);
}

static void all_daemons(struct builder *d)
{
	builder_put(d, "daemons at %us %s for %us\n", d->at_s,
		    builder_chance(d, 60) ? "restart" : "stop", builder_pick(d, 1, 120));
}

static void clock_jumps(struct builder *d)
{
	builder_put(d, "clock at %us %s %uh\n", d->at_s, builder_chance(d, 50) ? "forward" : "back",
		    builder_pick(d, 1, 30));
}

static void ended(struct builder *d)
{
	builder_put(d, "job at %us %s\n", d->at_s, builder_chance(d, 50) ? "cancel" : "restart");
}

static void slow_device(struct builder *d)
{
	draw_fault(d, "stuck for %us", builder_pick(d, 1, 40));
}

static void network_stutters(struct builder *d)
{
	draw_fault(d, "wedge for %us", builder_pick(d, 1, 9));
}

static void one_blind(struct builder *d)
{
	builder_put(d, "fault %u at 0s blind\n", d->culprit);
}

static void cancelled_while_late(struct builder *d)
{
	draw_fault(d, "block");
	builder_put(d, "job at %us cancel\n", d->at_s + builder_pick(d, 5, 40));
}

static void (*const things[])(struct builder *) = {
	nothing,
	late,
	all_late,
	late,
	straggler,
	debugged,
	stopped_shortly,
	node_quiet,
	all_daemons,
	clock_jumps,
	ended,
	slow_device,
	daemon_restarts,
	one_blind,
	late,
	late,
	network_stutters,
	cancelled_while_late,
};

static void usual_job(struct builder *d)
{
	draw_job(d, "healthy", 200);
	BUILDER_ONE(d, things)(d);
}

/* ---- jobs of another shape ---- */

static void begin_own(struct builder *d, const char *what, uint32_t run_s)
{
	d->is_noisy = false;
	draw_head(d, what, run_s);
	draw_comms(d);
}

static void epoch_end(struct builder *d)
{
	begin_own(d, "ends", 200);
	builder_put(d, "program\nloop %u\n", builder_pick(d, 20, 200));
	draw_step(d);
	builder_put(d, "end\nonly %s\nio %us\nend\n", builder_chance(d, 50) ? "odd" : "0",
		    builder_pick(d, 1, 60));
	if (builder_chance(d, 50))
		builder_put(d, "finalize main\n");
	builder_put(d, "only 0\nio %us\nend\nend\n", builder_pick(d, 1, 60));
}

static void waits_for_rollouts(struct builder *d)
{
	begin_own(d, "idles by design", 1500);
	builder_put(d, "program\nloop\nloop %u\n", builder_pick(d, 3, 30));
	draw_step(d);
	builder_put(d, "end\nsleep %us\nend\nend\n", builder_pick(d, 100, 1300));
}

static void evaluates(struct builder *d)
{
	static const char *const by[] = { "work", "io", "child" };

	begin_own(d, "evaluates", 300);
	builder_put(d, "program\nloop\n");
	draw_step(d);
	builder_put(d, "every %u\nonly %u\n%s %us\nend\n%s main\nend\nend\nend\n",
		    builder_pick(d, 20, 150), d->culprit, BUILDER_ONE(d, by),
		    builder_pick(d, 5, 150), d->kind);
}

/*
 * Some processes start minutes late, and the others wait for them while they make a communicator.
 */
static void comes_up_slowly(struct builder *d)
{
	begin_own(d, "comes up slowly", 700);
	builder_put(d,
		    "comm late all by init\nstarts all within %us\nstarts %u after 0s\nprogram\n"
		    "init late\nloop\n",
		    builder_pick(d, 5, 500), d->culprit);
	draw_step(d);
	builder_put(d, "end\nend\n");
}

/* A receive waits on its own stream until its sender sends. */
static void mailbox(struct builder *d)
{
	begin_own(d, "a receive is posted early", 700);
	builder_put(d,
		    "comm mail 0,1\nprogram\nloop\nonly 0\nrecv mail 64 from 1 on 5\nend\n"
		    "loop %u\nwork %ums\n%s main %u\ncompute %ums\nsync on 0\nend\n"
		    "only 1\nsend mail 64 to 0 on 5\nend\nend\nend\n",
		    builder_pick(d, 200, 3000), builder_pick(d, 40, 200), d->kind,
		    1u << builder_pick(d, 6, 16), builder_pick(d, 40, 250));
}

static void policy(struct builder *d)
{
	draw_job(d, "nobody wants to know", 300);
	if (builder_chance(d, 50)) {
		builder_put(d, "policy off\n");
		draw_fault(d, "block");
	} else {
		builder_put(d, "policy serving\n");
		draw_fault(d, "block for %us", builder_pick(d, 60, 200));
	}
}

void draw_control(struct builder *d)
{
	static void (*const shapes[])(struct builder *) = {
		epoch_end, waits_for_rollouts, evaluates,       mailbox,
		policy,    draw_late_groups,   comes_up_slowly,
	};

	if (builder_chance(d, 8)) {
		draw_nobody_slow(d);
		return;
	}
	if (builder_chance(d, 70))
		usual_job(d);
	else
		BUILDER_ONE(d, shapes)(d);
	builder_put(d, "expect silence\n");
}
