/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws waits that end by themselves, as in a healthy job where some ranks wait in a call. A wait
 * lasts from half a minute to four hours, whether or not a page is due before. As many waits last
 * one to two minutes as one to two hours. A job repeats its wait several times; the lengths may be
 * similar or not.
 *
 * A job may have its own watchdog with a known time-out. Then either its waits stay within the
 * time-out, or the known time-out is only PyTorch's default, and the job uses another.
 */
#include <inttypes.h>
#include <math.h>

#include "lab/suite/builder.h"

#define SHORTEST_S 30.0
#define LONGEST_S 14400.0
#define ASSUMED_S 600u
/* Time between two waits: the part of a healthy stretch that daemons see, and some more. */
#define STEPS_S 40u
#define WAITS_MAX 10u

struct plan {
	struct builder *d;
	uint32_t n, most;             /* number of waits, and its limit */
	uint32_t length_s[WAITS_MAX]; /* length of each wait */
	uint32_t at_s[WAITS_MAX];     /* approximate beginning of each wait */
	uint32_t run_s;
	double longest_s; /* limit on the length of a wait */
};

static double draw_log(struct builder *d, double low, double high)
{
	double x = (double)builder_pick(d, 0, 1000000) / 1e6;

	return low * pow(high / low, x);
}

/* ---- the job ---- */

static void put_timeout(struct plan *p)
{
	static const uint32_t usual_s[] = { 600, 600, 1800, 1800, 3600, 7200, 86400 };
	uint32_t percent = builder_pick(p->d, 0, 99), timeout_s;

	p->longest_s = LONGEST_S;
	if (percent < 20)
		return;
	if (percent < 45) {
		builder_put(p->d, "job-timeout %us\n", ASSUMED_S);
		return;
	}
	timeout_s = builder_chance(p->d, 70) ? BUILDER_ONE(p->d, usual_s)
					     : (uint32_t)draw_log(p->d, 180, 86400);
	builder_put(p->d, "job-timeout %us\n", timeout_s);
	p->longest_s = fmin(p->longest_s, 0.9 * timeout_s);
}

static void draw_lengths(struct plan *p)
{
	bool is_regular = builder_chance(p->d, 60);
	double usual_s = draw_log(p->d, SHORTEST_S, p->longest_s);
	uint32_t at_s = builder_pick(p->d, 20, 120);

	p->n = builder_pick(p->d, 1, p->most);
	for (uint32_t i = 0; i < p->n; i++) {
		double s = is_regular ? usual_s * (80 + builder_pick(p->d, 0, 40)) / 100
				      : draw_log(p->d, SHORTEST_S, p->longest_s);

		p->length_s[i] = (uint32_t)fmin(s, p->longest_s);
		p->at_s[i] = at_s;
		at_s += p->length_s[i] + STEPS_S + builder_pick(p->d, 0, 60);
	}
	p->run_s = at_s;
}

static void draw_few(struct builder *d)
{
	static const uint32_t sizes[] = { 2, 4, 4, 8, 8, 16 };
	uint32_t nodes;

	d->layout = SUITE_DP;
	d->n_ranks = d->main_size = BUILDER_ONE(d, sizes);
	nodes = builder_pick(d, 1, d->n_ranks < 4 ? 2 : 3);
	d->per_node = (d->n_ranks + nodes - 1) / nodes;
	d->culprit = builder_chance(d, 50) ? 0 : builder_pick(d, 0, d->n_ranks - 1);
	d->kind = builder_kind(d);
	d->is_noisy = d->is_graph = false;
}

static void begin(struct plan *p, const char *what)
{
	struct builder *d = p->d;

	builder_put(d,
		    "scenario \"waits: %s\"\nlayout dp\nranks %u per-node %u\nseed %u\n"
		    "completion nccl\nwhole\nfast-forward waits\n",
		    what, d->n_ranks, d->per_node, builder_pick(d, 0, 1u << 30));
	put_timeout(p);
	draw_lengths(p);
	builder_put(d, "run %us\ncomm main all\n", p->run_s);
}

/* Writes data-parallel steps, which are quick to simulate. */
static void put_steps(struct builder *d, uint32_t n)
{
	builder_put(d, "loop");
	if (n)
		builder_put(d, " %u", n);
	builder_put(d,
		    "\nwork %ums\n%s main %u\ncompute %ums\nall_reduce main fp32 64\nsync\nend\n",
		    builder_pick(d, 100, 400), d->kind, 1u << builder_pick(d, 6, 16),
		    builder_pick(d, 100, 900));
}

/*
 * Begins a training loop that we fast-forward. A rank with a fault executes another statement
 * before its call.
 */
static void begin_steps(struct plan *p, const char *what)
{
	begin(p, what);
	builder_put(p->d, "fast-forward\nprogram\n");
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

static void put_each(struct plan *p, uint32_t who, const char *what)
{
	for (uint32_t i = 0; i < p->n; i++)
		builder_put(p->d, "fault %u at %us on main %s for %us\n", who, p->at_s[i], what,
			    p->length_s[i]);
}

/* ---- what the ranks do meanwhile ---- */

static void evaluates(struct plan *p)
{
	static const char *const by[] = { "spin", "spin", "child" };

	begin_steps(p, "one rank evaluates");
	put_each(p, p->d->culprit, BUILDER_ONE(p->d, by));
}

/* A rank evaluates on its own device, batch by batch. */
static void evaluates_on_device(struct plan *p)
{
	begin(p, "one rank evaluates on its device");
	builder_put(p->d, "program\n");
	put_steps(p->d, builder_pick(p->d, 10, 30));
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t batch_ms = builder_pick(p->d, 200, 2000);

		builder_put(p->d, "only %u\nloop %u\nwork 20ms\ncompute %ums\nsync\nend\nend\n",
			    p->d->culprit,
			    (uint32_t)(p->length_s[i] * 1000ull / (batch_ms + 20)) + 1, batch_ms);
		put_steps(p->d, builder_pick(p->d, 10, 30));
	}
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

static void saves(struct plan *p)
{
	begin_steps(p, "one rank writes a checkpoint");
	put_each(p, p->d->culprit, builder_chance(p->d, 80) ? "io" : "spin");
}

/* Each rank writes its own shard, and the shards differ in size. */
static void saves_shards(struct plan *p)
{
	begin(p, "each rank writes its shard");
	builder_put(p->d, "program\n");
	put_steps(p->d, builder_pick(p->d, 10, 30));
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t asleep_s = builder_chance(p->d, 50) ? builder_pick(p->d, 1, 60) : 0;
		uint32_t more_s;

		if (asleep_s > p->length_s[i] / 2)
			asleep_s = p->length_s[i] / 2;
		/*
		 * After the end of the first rank's write, the rest takes as long as the wait
		 * should.
		 */
		more_s = p->length_s[i] - asleep_s - (p->d->culprit % 2 ? p->length_s[i] / 3 : 0);
		builder_put(p->d, "work %us\nio %us\nonly odd\nio %us\nend\nonly %u\nio %us\n",
			    p->length_s[i] / 10, p->length_s[i] / 5, p->length_s[i] / 3,
			    p->d->culprit, more_s);
		if (asleep_s)
			builder_put(p->d, "sleep %us in sync\n", asleep_s);
		builder_put(p->d, "end\n");
		put_steps(p->d, builder_pick(p->d, 10, 30));
	}
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

static void compiles(struct plan *p)
{
	static const char *const by[] = { "child", "spin" };

	begin_steps(p, "a rank compiles");
	for (uint32_t i = 0; i < p->n; i++)
		builder_put(p->d, "fault %u at %us on main %s for %us\n",
			    builder_pick(p->d, 0, p->d->n_ranks - 1), p->at_s[i],
			    BUILDER_ONE(p->d, by), p->length_s[i]);
}

/*
 * Ranks compile one after the other. A rank that has to wait sleeps, and checks repeatedly whether
 * the lock file is gone.
 */
static void compiles_in_turn(struct plan *p)
{
	uint32_t each_s = p->d->n_ranks;

	p->most = 1;
	begin(p, "ranks compile in turn");
	builder_put(p->d, "program\n");
	put_steps(p->d, builder_pick(p->d, 10, 30));
	each_s = p->length_s[0] / each_s + 1;
	for (uint32_t r = 1; r < p->d->n_ranks; r++)
		builder_put(p->d, "only %u\nsleep %us\nend\n", r, r * each_s);
	builder_put(p->d, "child %us\n", each_s);
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

static void loads(struct plan *p)
{
	static const char *const by[] = { "io", "child", "spin" };

	begin_steps(p, "a rank loads data");
	put_each(p, p->d->culprit, BUILDER_ONE(p->d, by));
}

static void is_typed_at(struct plan *p)
{
	begin_steps(p, "a rank asks a person");
	put_each(p, p->d->culprit, "block in tty");
}

static void is_debugged(struct plan *p)
{
	begin_steps(p, "a rank is held by a debugger");
	for (uint32_t i = 0; i < p->n; i++)
		builder_put(p->d, "fault %u at %us trace for %us\n", p->d->culprit, p->at_s[i],
			    p->length_s[i]);
}

/* Rank 0 waits for requests or rollouts, and passes them to the others. */
static void serves(struct plan *p)
{
	static const char *const by[] = { "block in socket", "block in queue", "block" };

	p->d->kind = "broadcast";
	begin_steps(p, "rank 0 waits for work");
	if (builder_chance(p->d, 40))
		builder_put(p->d, "policy serving\n");
	for (uint32_t i = 0; i < p->n; i++)
		builder_put(p->d, "fault 0 at %us on main broadcast %s for %us\n", p->at_s[i],
			    BUILDER_ONE(p->d, by), p->length_s[i]);
}

/*
 * All ranks but one wait in a barrier before the first step. That rank prepares the data for all.
 */
static void prepares(struct plan *p)
{
	static const char *const by[] = { "work", "io", "child" };

	p->most = 1;
	begin(p, "one rank prepares the data");
	builder_put(p->d, "program\nonly %u\n%s %us\nend\nall_reduce main fp32 1\nsync\n",
		    p->d->culprit, BUILDER_ONE(p->d, by), p->length_s[0]);
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

/* One rank still reads the model while the others wait in the call that makes the communicator. */
static void comes_late(struct plan *p)
{
	static const char *const by[] = { "work", "io", "child" };

	p->most = 1;
	begin(p, "one rank is late for the making");
	builder_put(p->d,
		    "comm late all by init\nprogram\nall_reduce main fp32 1\nsync\nonly %u\n"
		    "%s %us\nend\ninit late\n",
		    p->d->culprit, BUILDER_ONE(p->d, by), p->length_s[0]);
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

/* A receive waits until its sender sends. All ranks go on meanwhile. */
static void has_mail(struct plan *p)
{
	begin(p, "a receive is posted early");
	builder_put(p->d, "comm mail 0,1\nprogram\n");
	for (uint32_t i = 0; i < p->n; i++) {
		builder_put(p->d,
			    "only 0\nrecv mail 64 from 1 on 5\nend\nloop %u\nwork 500ms\n"
			    "%s main 64\ncompute 400ms\nsync on 0\nend\n",
			    p->length_s[i], p->d->kind);
		builder_put(p->d, "only 1\nsend mail 64 to 0 on 5\nend\n");
	}
	put_steps(p->d, 0);
	builder_put(p->d, "end\n");
}

size_t cw_suite_draw_waits(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES],
			   uint32_t *ret_n)
{
	static void (*const sorts[])(struct plan *) = {
		evaluates,   evaluates_on_device,
		saves,       saves_shards,
		compiles,    compiles_in_turn,
		loads,       is_typed_at,
		serves,      serves,
		prepares,    comes_late,
		is_debugged, has_mail,
	};
	struct builder d = builder_begin(seed, index, ret);
	struct plan p = { .d = &d, .most = WAITS_MAX };

	draw_few(&d);
	BUILDER_ONE(&d, sorts)(&p);
	if (builder_chance(&d, 10))
		builder_put(&d, "daemons at %us restart for %us\n", builder_pick(&d, 10, p.run_s),
			    builder_pick(&d, 2, 20));
	builder_put(&d, "expect silence\nend\n");
	*ret_n = p.n;
	return d.n;
}
