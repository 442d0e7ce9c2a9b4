/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws hangs. The right answer follows from the fault that we draw, never from the engine's
 * output.
 */
#include <stdio.h>
#include <string.h>

#include "lab/suite/builder.h"

/* The latest time of two other kinds of page, in seconds, like DRAW_IDLE_PAGE_S. */
#define DEVICE_PAGE_S 305u
#define INSIDE_PAGE_S 130u

/* We draw this many of 100 endless waits in the same way as waits that end. */
#define USUAL_PERCENT 50u

/*
 * True if the culprit may give work to the others, which wait for its broadcast. If such a rank is
 * idle, it may just have nothing to send.
 */
static bool may_be_source(const struct builder *d)
{
	return !strcmp(d->kind, "broadcast") || !strcmp(d->kind, "scatter") ||
	       d->culprit % d->main_size < 2;
}

/*
 * Writes the expected answers: an incident of class `one` or of class `other`. The wait decides
 * whether a page, a notice or both are right.
 */
static void put_missed(struct builder *d, const struct draw_wait *w, const char *one,
		       const char *other)
{
	if (w->page_s == DRAW_NO_PAGE || (w->is_open && may_be_source(d)))
		builder_put(d, "expect notice %s %u or notice %s %u", one, d->culprit, other,
			    d->culprit);
	else
		builder_put(d, "expect %s %u or %s %u", one, d->culprit, other, d->culprit);
	/*
	 * There is no page if the culprit gives work to the others in the call where they wait. We
	 * do not know whether it does, so we accept both.
	 */
	if (w->is_open && may_be_source(d))
		builder_put(d, " or %s %u or %s %u", one, d->culprit, other, d->culprit);
	builder_put(d, "\n");
}

static void never_entered_as_usual(struct builder *d)
{
	const struct draw_wait *w = draw_wait(d);
	bool may_page = w->is_open && w->page_s != DRAW_NO_PAGE && may_be_source(d);
	uint32_t page_s = may_page ? DRAW_MAY_PAGE : w->page_s;
	char answer[64];

	/* the threads of the process's other devices would show activity, too */
	d->has_devices = false;
	draw_job(d, "stays outside", w->is_working ? 760 : 800);
	builder_put(d, "usual-wait\n");
	draw_fault(d, "%s%s", w->fault, w->in);
	(void)snprintf(answer, sizeof(answer), "never_entered %u or p2p_unmatched %u", d->culprit,
		       d->culprit);
	if (!draw_ended_by_watchdog(d, page_s, answer))
		put_missed(d, w, "never_entered", "p2p_unmatched");
}

/* The process has one thread for the calls of all its devices. This thread blocks. */
static void process_stands(struct builder *d)
{
	builder_put(d, "fault %s at %us on main %s block in lock\n", draw_process(d), d->at_s,
		    d->kind);
	builder_put(d, "expect never_entered %s or", draw_process(d));
	builder_put(d, " p2p_unmatched %s\n", draw_process(d));
}

static void never_entered(struct builder *d)
{
	static const char *const idle[] = { "block",         "block",        "block in socket",
					    "block in lock", "block in gil", "stop" };
	static const char *const busy[] = { "spin", "io", "child" };
	bool is_busy = builder_chance(d, 25);
	char answer[64];
	const char *how;

	if (builder_chance(d, 12)) {
		draw_several(d);
		return;
	}
	if (builder_chance(d, USUAL_PERCENT)) {
		never_entered_as_usual(d);
		return;
	}
	draw_job(d, "stays outside", 760);
	if (d->per_process > 1) {
		process_stands(d);
		return;
	}
	how = is_busy ? BUILDER_ONE(d, busy) : BUILDER_ONE(d, idle);
	if (!is_busy && may_be_source(d))
		how = "block in lock";
	/*
	 * Sometimes the call fails and its rank then blocks, which has the same effect on the
	 * others.
	 */
	if (!strcmp(how, "block") && !may_be_source(d) && builder_chance(d, 15))
		how = "fails block";
	draw_fault(d, "%s", how);
	/* In a pipeline or ring, the neighbours of the culprit may be the first to wait for it. */
	(void)snprintf(answer, sizeof(answer), "never_entered %u or p2p_unmatched %u", d->culprit,
		       d->culprit);
	if (draw_ended_by_watchdog(d, is_busy ? DRAW_NO_PAGE : DRAW_IDLE_PAGE_S, answer))
		return;
	if (is_busy)
		builder_put(d, "expect notice never_entered %u or notice p2p_unmatched %u\n",
			    d->culprit, d->culprit);
	else
		builder_put(d, "expect %s\n", answer);
}

static void process_dead(struct builder *d)
{
	static const char *const ends[] = { "kill 9", "kill 11", "kill 6", "oom",
					    "exit 1", "exit 0",  "exit 77" };
	const char *how;

	how = BUILDER_ONE(d, ends);
	draw_job(d, "dies", strcmp(how, "exit 0") ? 60 : 130);
	if (builder_chance(d, 50))
		draw_fault(d, "%s%s",
			   !strcmp(how, "exit 1") && builder_chance(d, 40) ? "fails " : "", how);
	else
		builder_put(d, "fault %u at %us %s\n", d->culprit, d->at_s, how);
	if (!strcmp(how, "exit 0") || !draw_ended_by_launcher(d, "process_dead"))
		builder_put(d, "expect process_dead %s\n", draw_process(d));
}

static void node_unreachable(struct builder *d)
{
	uint32_t node = d->culprit / d->per_node, last = (node + 1) * d->per_node;

	d->loses_node = true;
	draw_job(d, "node lost", 60);
	builder_put(d, "node %u at %us lost\nexpect node_unreachable %u-%u\n", node, d->at_s,
		    node * d->per_node, (last < d->n_ranks ? last : d->n_ranks) - 1);
}

static bool is_kind(const struct builder *d, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(d->kind, names[i]) == 0)
			return true;
	return false;
}

static void mismatch(struct builder *d)
{
	static const char *const rooted[] = { "broadcast", "reduce", "gather", "scatter" };
	static const char *const reducing[] = { "all_reduce", "reduce", "reduce_scatter" };
	bool has_root = is_kind(d, rooted, 4), has_op = is_kind(d, reducing, 3);

	if (builder_chance(d, 15)) {
		draw_differs_in_setup(d);
		return;
	}
	draw_job(d, "differs", 120);
	switch (builder_pick(d, 0, 6)) {
	case 0:
		draw_fault(d, "%s", has_root ? "change root 2" : "change count 31");
		break;
	case 1:
		draw_fault(d, "%s", has_op ? "change redop max" : "change dtype fp64");
		break;
	case 2:
		draw_fault(d, "%s", has_op ? "change dtype fp16" : "change kind reduce");
		break;
	case 3:
		draw_fault(d, "change kind %s",
			   strcmp(d->kind, "all_to_all") ? "all_to_all" : "scatter");
		break;
	case 4:
		draw_fault(d, "change count %u", builder_pick(d, 1, 60));
		break;
	case 5:
		draw_fault(d, "change count %u", builder_pick(d, 70000, 9000000));
		break;
	default:
		draw_fault(d, "%s",
			   builder_chance(d, 50)   ? "add"
			   : builder_chance(d, 30) ? "fails"
						   : "skip");
		break;
	}
	builder_put(d, "expect mismatch %u\n", d->culprit);
}

/*
 * Draws a deadlock. Two comms have the same ranks. One rank, or half of them, uses the comms in the
 * other order.
 */
static void deadlock(struct builder *d)
{
	const char *second = builder_kind(d);
	bool is_half = builder_chance(d, 25);

	if (d->n_ranks < 6)
		d->n_ranks = d->per_node = 6;
	d->culprit %= d->n_ranks;
	draw_head(d, "order", 60);
	builder_put(d, "comm main all\ncomm side all\nprogram\nloop\nwork %ums\n",
		    builder_pick(d, 20, 200));
	builder_put(d, "%s main %u\n%s side\nsync\nend\nend\n", d->kind,
		    1u << builder_pick(d, 4, 16), second);
	if (is_half)
		builder_put(d, "fault every 2 from %u at %us on main swap\nexpect deadlock\n",
			    builder_pick(d, 0, 1), d->at_s);
	else
		builder_put(d, "fault %u at %us on main swap\nexpect deadlock %u\n", d->culprit,
			    d->at_s, d->culprit);
}

static void put_pipeline(struct builder *d, uint32_t run_s)
{
	d->n_ranks = 4 * builder_pick(d, 1, 5);
	d->culprit = 4 * builder_pick(d, 0, d->n_ranks / 4 - 1) + builder_pick(d, 1, 2);
	d->per_node = builder_chance(d, 50) ? 4 : 2;
	draw_head(d, "pipeline", run_s);
	builder_put(d,
		    "comms pipe size 4\ncomm main all\nprogram\nloop\nrecv pipe 4096 from prev\n"
		    "compute %ums\nsend pipe 4096 to next\nrecv pipe 512 from next\ncompute %ums\n"
		    "send pipe 512 to prev\n%s main 64\nsync\nend\nend\n",
		    builder_pick(d, 10, 150), builder_pick(d, 10, 150), d->kind);
}

static void put_ring(struct builder *d, uint32_t run_s)
{
	draw_head(d, "ring", run_s);
	builder_put(d,
		    "comm pipe all\ncomm main all\nprogram\nloop\nwork %ums\ngroup\n"
		    "send pipe 512 to ring-next\nrecv pipe 512 from ring-prev\nend\n%s main 64\n"
		    "sync\nend\nend\n",
		    builder_pick(d, 20, 150), d->kind);
}

static void p2p_unmatched(struct builder *d)
{
	const char *half = builder_chance(d, 50) ? "send" : "recv";
	const struct draw_wait *w = builder_chance(d, USUAL_PERCENT) ? draw_wait(d) : NULL;
	uint32_t run_s = w && w->is_working ? 760 : 440;

	d->has_devices = false;
	if (builder_chance(d, 50))
		put_pipeline(d, run_s);
	else
		put_ring(d, run_s);
	if (builder_chance(d, 20)) {
		builder_put(d, "fault %u at %us on pipe recv change count 100000\n", d->culprit,
			    d->at_s);
		builder_put(d, "expect p2p_unmatched size\n");
		return;
	}
	if (w) {
		builder_put(d, "usual-wait\nfault %u at %us on pipe %s %s%s\n", d->culprit, d->at_s,
			    half, w->fault, w->in);
		put_missed(d, w, "p2p_unmatched", "never_entered");
		return;
	}
	builder_put(d, "fault %u at %us on pipe %s block%s\n", d->culprit, d->at_s, half,
		    may_be_source(d) ? " in lock" : "");
	/*
	 * The neighbours wait for the culprit in a send or receive, ranks further away in the
	 * collective.
	 */
	builder_put(d, "expect p2p_unmatched %u or never_entered %u\n", d->culprit, d->culprit);
}

static void init_stuck(struct builder *d)
{
	static const char *const calls[] = { "init late", "split main into half", "finalize main" };
	static const char *const outside[] = { "sleep 10h", "io 10h", "work 10h" };
	const char *how = BUILDER_ONE(d, outside);
	bool is_noticed = how != outside[0];
	const struct draw_wait *w;
	char usual[48];

	if (builder_chance(d, 15)) {
		draw_all_in_making(d);
		return;
	}
	if (builder_chance(d, USUAL_PERCENT)) {
		w = draw_wait(d);
		is_noticed = w->page_s == DRAW_NO_PAGE;
		(void)snprintf(usual, sizeof(usual), "%s 10h%s", w->statement, w->in);
		how = usual;
	}
	d->n_ranks += d->n_ranks % 2;
	d->has_devices = false;
	draw_head(d, "making comms", 800);
	builder_put(d,
		    "comm main all\ncomm late all by init\ncomms half size %u by split\nprogram\n",
		    d->n_ranks / 2);
	builder_put(d, "loop %u\nwork %ums\n%s main\nsync\nend\nonly %u\n%s\nend\n%s\n",
		    builder_pick(d, 10, 200), builder_pick(d, 10, 60), d->kind, d->culprit, how,
		    BUILDER_ONE(d, calls));
	builder_put(d, "loop\nsleep 1s\nend\nend\n%sexpect %sinit_stuck %u\n",
		    how == usual ? "usual-wait\n" : "", is_noticed ? "notice " : "", d->culprit);
}

static void device_stalled(struct builder *d)
{
	char answer[32];

	draw_job(d, "device stuck", 420);
	draw_fault(d, "stuck");
	(void)snprintf(answer, sizeof(answer), "device_stalled %u", d->culprit);
	if (!draw_ended_by_watchdog(d, DEVICE_PAGE_S, answer))
		builder_put(d, "expect %s\n", answer);
}

static void in_collective(struct builder *d)
{
	draw_job(d, "does not complete", 120);
	draw_fault(d, "wedge");
	if (!draw_ended_by_errors(d, INSIDE_PAGE_S, "in_collective nobody") &&
	    !draw_ended_by_watchdog(d, INSIDE_PAGE_S, "in_collective nobody"))
		builder_put(d, "expect in_collective nobody\n");
}

static void unknown(struct builder *d)
{
	d->has_devices = false; /* the other ranks of its process would be invisible, too */
	draw_job(d, "cannot be seen", 420);
	draw_fault(d, "block");
	builder_put(d, "fault %u at 0s blind\nexpect notice unknown nobody\n", d->culprit);
}

void draw_hang(struct builder *d, uint32_t nth)
{
	static void (*const hangs[DRAW_HANGS])(struct builder *) = {
		never_entered, process_dead,   node_unreachable, mismatch, deadlock,  p2p_unmatched,
		init_stuck,    device_stalled, in_collective,    unknown,  draw_slow,
	};

	hangs[nth](d);
}
