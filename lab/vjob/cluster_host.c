/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, which execute each rank's program, statement by statement. */
#include <errno.h>

#include "lab/vjob/cluster_state.h"
#include "model/facts.h"

/*
 * Limit on the statements at one instant. An endless loop without durations must not stop the
 * clock.
 */
#define STATEMENTS_AT_ONCE 10000u

static void note_active(struct rank *r)
{
	r->active_ns = r->c->now_ns;
}

static void be_busy(struct rank *r, int64_t ns, const char *by)
{
	r->host = HOST_BUSY;
	r->busy_by = by;
	if (ns != SUITE_FOREVER)
		host_wake_at(r, r->c->now_ns + ns);
}

static void end_rank(struct rank *r, uint32_t liveness, uint32_t number)
{
	r->host = HOST_ENDED;
	r->liveness = liveness;
	r->ended_ns = r->c->now_ns;
	if (liveness == CW_LIVE_EXITED)
		r->exit_code = number;
	else
		r->term_signal = number;
	r->wake_id++;
	if (r->barrier_member) {
		r->barrier_member->comm->inside[r->barrier_kind]--;
		r->barrier_member = NULL;
	}
}

void host_die(struct rank *r, uint32_t liveness, uint32_t number)
{
	struct rank *all;
	uint32_t n;

	if (r->ended_ns)
		return;
	all = process_ranks(r, &n);
	for (uint32_t i = 0; i < n; i++) {
		all[i].flags |= r->flags & CW_RANKF_OOM_KILLED;
		end_rank(&all[i], liveness, number);
	}
	end_on_death(r);
}

/*
 * Ends a rank's program. Each rank of a process has a thread. The first thread waits for the
 * others, and then the process ends.
 */
static void end_program(struct rank *r)
{
	struct rank *all;
	uint32_t n, n_through = 0;

	r->is_through = true;
	all = process_ranks(r, &n);
	for (uint32_t i = 0; i < n; i++)
		n_through += all[i].is_through;
	if (n_through == n) {
		host_die(r, CW_LIVE_EXITED, 0);
		return;
	}
	r->wait = CW_HOST_WAIT_LOCK;
	be_busy(r, SUITE_FOREVER, NULL);
}

/* ---- calls ---- */

static struct suite_call *as_call(struct rank *r, struct suite_call *copy)
{
	*copy = r->program->insns[r->pc].call;
	return copy;
}

static void make_lone_call(struct rank *r, const struct suite_call *call)
{
	if (cw_op_blocks_host(call->kind))
		call_block_host(r, call);
	else if (r->in_graph)
		graph_add_calls(r, call, 1, false);
	else
		call_make(r, call, 1, call->peer_kind == SUITE_PEER_EACH);
}

static void give_call(struct rank *r, const struct suite_call *call)
{
	if (!r->in_group) {
		make_lone_call(r, call);
	} else if (r->n_group < GROUP_MAX) {
		r->group[r->n_group++] = *call;
	} else {
		r->c->error = -EINVAL;
	}
}

/* Makes the rank's call fail. A failed call is not part of its group. */
static void fail_call(struct rank *r, const struct suite_call *call)
{
	const struct suite_fault *f = r->failing;

	if (!r->in_group && !r->in_graph && cw_op_blocks_host(call->kind))
		call_refuse(r, call);
	else if (!r->in_group && !r->in_graph)
		call_fail(r, call);
	if (f->field == SUITE_FAILED_EXITS) {
		host_die(r, CW_LIVE_EXITED, (uint32_t)f->value);
	} else if (f->field == SUITE_FAILED_STANDS) {
		r->wait = CW_HOST_WAIT_QUEUE;
		be_busy(r, SUITE_FOREVER, NULL);
	}
}

/* Makes a call. True if the host continues at once. */
static bool do_call(struct rank *r)
{
	struct suite_call call;
	enum fault_effect effect;

	if (r->slow_ns && r->c->now_ns >= r->slow_until_ns)
		r->slow_ns = 0;
	if (r->slow_ns && !r->was_slowed) {
		r->was_slowed = true;
		be_busy(r, r->slow_ns, "cpu");
		return false;
	}
	effect = fault_before_call(r, as_call(r, &call));
	if (effect == FAULT_WAITS || r->host == HOST_ENDED)
		return false;
	r->was_slowed = false;
	r->pc++;
	if (effect == FAULT_SKIPS)
		return true;
	if (effect == FAULT_FAILS) {
		fail_call(r, &call);
		return r->host == HOST_READY;
	}
	give_call(r, &call);
	if (effect == FAULT_TWICE && r->host == HOST_READY)
		give_call(r, &call);
	if (r->has_held && effect == FAULT_GOES_ON && r->host == HOST_READY) {
		r->has_held = false;
		give_call(r, &r->held);
	}
	if (r->in_group || r->in_graph)
		return true;
	if (r->host == HOST_READY)
		host_wake_at(r, r->c->now_ns + CALL_NS);
	return false;
}

/* ---- blocks ---- */

static uint64_t innermost_iteration(const struct rank *r)
{
	return r->n_frames ? r->frames[r->n_frames - 1].iteration : 0;
}

static void begin_loop(struct rank *r, const struct suite_insn *insn)
{
	if (r->n_frames == SUITE_MAX_NEST) {
		r->c->error = -EINVAL;
		return;
	}
	r->frames[r->n_frames++] = (struct frame){ .insn = r->pc, .left = insn->n };
	r->pc++;
}

static void end_group(struct rank *r)
{
	uint32_t n = r->n_group;

	r->in_group = false;
	r->n_group = 0;
	if (n && r->in_graph) {
		graph_add_calls(r, r->group, n, true);
	} else if (n) {
		call_make(r, r->group, n, true);
		if (r->host == HOST_READY)
			host_wake_at(r, r->c->now_ns + CALL_NS);
	}
}

static void end_block(struct rank *r, const struct suite_insn *insn)
{
	const struct suite_insn *begin = &r->program->insns[insn->other];
	struct frame *f;

	if (begin->kind == SUITE_GRAPH && !graph_launch(r, begin->n)) {
		r->host = HOST_LAUNCH;
		return;
	}
	r->pc++;
	if (begin->kind == SUITE_GROUP)
		end_group(r);
	if (begin->kind == SUITE_GRAPH)
		host_wake_at(r, r->c->now_ns + CALL_NS);
	if (begin->kind != SUITE_LOOP)
		return;
	f = &r->frames[r->n_frames - 1];
	f->iteration++;
	if (f->left && f->iteration >= f->left)
		r->n_frames--;
	else
		r->pc = insn->other + 1;
}

/* Varies a duration a little, because durations vary on real hosts. */
static int64_t about(struct rank *r, int64_t ns)
{
	int64_t spread = ns / 50;

	return spread ? ns - spread / 2 + (int64_t)cluster_random(r->c, (uint64_t)spread) : ns;
}

static void end_job(struct cluster *c)
{
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		cluster_at(c, c->now_ns + (int64_t)cluster_random(c, 300) * MS, EVENT_DIE,
			   &c->ranks[i], NULL, 15);
}

static bool is_idle(const struct rank *r)
{
	return r->sync_stream == SUITE_NONE ? r->n_items == 0
					    : r->streams[r->sync_stream % STREAMS] == NULL;
}

static void wait_for_device(struct rank *r, const struct suite_insn *insn, const char *by)
{
	r->pc++;
	r->sync_stream = insn->n;
	if (is_idle(r))
		return;
	r->host = HOST_SYNC;
	r->busy_by = by;
}

/* Executes statements that take time. The host continues only if they took none. */
static void do_work(struct rank *r, const struct suite_insn *insn)
{
	static const char *const by[] = { [SUITE_WORK] = "cpu",
					  [SUITE_IO] = "io",
					  [SUITE_CHILD] = "child",
					  [SUITE_SLEEP] = NULL };

	r->pc++;
	r->wait = insn->n;
	be_busy(r, about(r, insn->ns), by[insn->kind]);
}

static void do_statement(struct rank *r)
{
	const struct suite_insn *insn = &r->program->insns[r->pc];

	switch (insn->kind) {
	case SUITE_CALL:
		(void)do_call(r);
		return;
	case SUITE_WORK:
	case SUITE_IO:
	case SUITE_CHILD:
	case SUITE_SLEEP:
		do_work(r, insn);
		return;
	case SUITE_COMPUTE:
		r->pc++;
		if (r->in_graph)
			graph_add_kernel(r, about(r, insn->ns));
		else if (r->n_items < 4 * OPEN_MAX)
			device_kernel(r, insn->n, about(r, insn->ns));
		return;
	case SUITE_SYNC:
		wait_for_device(r, insn, "cpu");
		return;
	case SUITE_WAIT:
		wait_for_device(r, insn, NULL);
		return;
	case SUITE_LOOP:
		begin_loop(r, insn);
		return;
	case SUITE_EVERY:
		r->pc = innermost_iteration(r) % insn->n == insn->n - 1 ? r->pc + 1
									: insn->other + 1;
		return;
	case SUITE_ONLY:
		r->pc = cw_suite_set_has(&insn->set, r->index) ? r->pc + 1 : insn->other + 1;
		return;
	case SUITE_GROUP:
		r->in_group = true;
		r->pc++;
		return;
	case SUITE_GRAPH:
		graph_begin(r);
		r->pc++;
		return;
	case SUITE_END:
		end_block(r, insn);
		return;
	case SUITE_SIGTERM:
		r->pc++;
		end_job(r->c);
		return;
	default:
		host_die(r, CW_LIVE_EXITED, insn->n);
		return;
	}
}

/* True while a wake-up is pending or another rank must act first. */
static bool is_waiting(const struct rank *r, uint64_t wake_before)
{
	return r->host != HOST_READY || r->wake_id != wake_before;
}

void host_step(struct rank *r)
{
	uint64_t wake = r->wake_id;

	if (r->ended_ns)
		return;
	if (r->is_frozen) {
		r->missed_wake = true;
		return;
	}
	note_active(r);
	if (r->host == HOST_BARRIER)
		call_leave_barrier(r);
	r->host = HOST_READY;
	for (unsigned i = 0; !is_waiting(r, wake); i++) {
		if (i == STATEMENTS_AT_ONCE) {
			host_wake_at(r, r->c->now_ns + MS);
			return;
		}
		if (!r->program || r->pc >= r->program->n_insns)
			end_program(r);
		else
			do_statement(r);
	}
}

void host_on_device(struct rank *r)
{
	if (r->host == HOST_SYNC && is_idle(r)) {
		host_wake_at(r, r->c->now_ns + CALL_NS);
	} else if (r->host == HOST_LAUNCH && !r->connecting && r->n_items < OPEN_MAX) {
		call_resume(r);
		host_wake_at(r, r->c->now_ns + CALL_NS);
	}
}
