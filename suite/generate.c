/* SPDX-License-Identifier: Apache-2.0 */
#include "suite/generate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/signature.h"

#define TEXT_BYTES 4096u
#define MAX_LINES 1000u

struct draw {
	uint64_t state;
	char text[TEXT_BYTES];
	size_t n;
	uint32_t layout; /* enum suite_layout */
	uint32_t n_ranks, per_node;
	uint32_t main_size;
	uint32_t culprit, at_s;
	const char *kind;
};

static const char *const kinds[] = { "all_reduce",     "broadcast",  "reduce", "all_gather",
				     "reduce_scatter", "all_to_all", "gather", "scatter" };

static uint32_t pick(struct draw *d, uint32_t low, uint32_t high)
{
	d->state += UINT64_C(0x9e3779b97f4a7c15);
	return low + (uint32_t)(cw_hash_mix64(d->state) % (high - low + 1));
}

static void put(struct draw *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct draw *d, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(&d->text[d->n], sizeof(d->text) - d->n, fmt, ap);
	va_end(ap);
	if (n > 0 && d->n + (size_t)n < sizeof(d->text))
		d->n += (size_t)n;
}

/* ---- jobs ---- */

static void draw_sizes(struct draw *d)
{
	static const uint32_t small[] = { 4, 8 };

	d->layout = pick(d, SUITE_DP, SUITE_ZERO);
	d->main_size = small[pick(d, 0, 1)];
	switch (d->layout) {
	case SUITE_DP:
	case SUITE_ZERO:
		d->n_ranks = d->main_size = 2 * pick(d, 2, 12);
		break;
	case SUITE_3D:
		d->main_size = 4;
		d->n_ranks = 8 * pick(d, 2, 4);
		break;
	default:
		d->n_ranks = d->main_size * pick(d, 2, 4);
		break;
	}
	d->per_node = d->n_ranks / 2;
	d->culprit = pick(d, 0, d->n_ranks - 1);
	d->at_s = pick(d, 5, 15);
	d->kind = kinds[pick(d, 0, 7)];
}

static void put_head(struct draw *d, const char *what, uint32_t run_s)
{
	put(d, "scenario \"%s: %s, %s\"\nlayout %s\nranks %u per-node %u\nseed %u\nrun %us\n",
	    suite_layout_name(d->layout), what, d->kind, suite_layout_name(d->layout), d->n_ranks,
	    d->per_node, pick(d, 0, 1u << 30), run_s);
}

static void put_step(struct draw *d)
{
	uint32_t count = 1u << pick(d, 6, 16), other = count + 64;

	put(d, "program\nloop\nwork %ums\n", pick(d, 10, 60));
	if (d->layout == SUITE_3D)
		put(d, "recv pipe %u from prev\n", other);
	if (d->layout == SUITE_EP)
		put(d, "all_to_all main %u\n", other);
	if (d->layout == SUITE_ZERO)
		put(d, "all_gather main %u\n", other);
	put(d, "%s main %u\ncompute %ums\n", d->kind, count, pick(d, 10, 80));
	if (d->layout == SUITE_3D)
		put(d, "send pipe %u to next\n", other);
	put(d, "all_reduce main fp32 %u\n", other);
	if (d->layout != SUITE_DP && d->layout != SUITE_ZERO)
		put(d, "all_reduce outer %u\n", other);
	put(d, "sync\nend\nend\n");
}

static void put_job(struct draw *d, const char *what, uint32_t run_s)
{
	put_head(d, what, run_s);
	if (d->layout == SUITE_DP || d->layout == SUITE_ZERO)
		put(d, "comm main all\n");
	else
		put(d, "comms main size %u\n", d->main_size);
	if (d->layout == SUITE_3D)
		put(d, "comms outer size 2 stride 4\ncomms pipe size rest stride 8\n");
	else if (d->layout != SUITE_DP && d->layout != SUITE_ZERO)
		put(d, "comms outer size rest stride %u\n", d->main_size);
	put_step(d);
}

static void put_fault(struct draw *d, const char *action)
{
	put(d, "fault %u at %us on main %s %s\n", d->culprit, d->at_s, d->kind, action);
}

/* ---- hangs ---- */

static void draw_never_entered(struct draw *d)
{
	static const char *const actions[] = { "block", "block", "stop", "spin", "io" };
	uint32_t how = pick(d, 0, 4);

	put_job(d, "stays outside", how < 3 ? 150 : 420);
	put_fault(d, actions[how]);
	put(d, "expect never_entered %u or p2p_unmatched %u\n", d->culprit, d->culprit);
}

static void draw_process_dead(struct draw *d)
{
	static const char *const actions[] = { "kill 9", "kill 11", "oom", "exit 1", "exit 0" };

	put_job(d, "dies", 60);
	if (pick(d, 0, 1))
		put_fault(d, actions[pick(d, 0, 4)]);
	else
		put(d, "fault %u at %us %s\n", d->culprit, d->at_s, actions[pick(d, 0, 4)]);
	put(d, "expect process_dead %u\n", d->culprit);
}

static void draw_node_unreachable(struct draw *d)
{
	uint32_t node = d->culprit / d->per_node;

	put_job(d, "node lost", 60);
	put(d, "node %u at %us lost\nexpect node_unreachable %u-%u\n", node, d->at_s,
	    node * d->per_node, (node + 1) * d->per_node - 1);
}

static bool is_kind(const struct draw *d, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(d->kind, names[i]) == 0)
			return true;
	return false;
}

static void draw_mismatch(struct draw *d)
{
	static const char *const rooted[] = { "broadcast", "reduce", "gather", "scatter" };
	static const char *const reducing[] = { "all_reduce", "reduce", "reduce_scatter" };

	put_job(d, "differs", 90);
	switch (pick(d, 0, 4)) {
	case 0:
		if (is_kind(d, rooted, 4)) {
			put_fault(d, "change root 2");
			break;
		}
		__attribute__((fallthrough));
	case 1:
		if (is_kind(d, reducing, 3)) {
			put_fault(d, pick(d, 0, 1) ? "change redop max" : "change dtype fp16");
			break;
		}
		__attribute__((fallthrough));
	case 2:
		put_fault(d, strcmp(d->kind, "reduce") ? "change kind reduce"
						       : "change kind all_gather");
		break;
	case 3:
		put_fault(d, "change count 33");
		break;
	default:
		put_fault(d, "change count 100000");
		break;
	}
	put(d, "expect mismatch %u\n", d->culprit);
}

static void draw_deadlock(struct draw *d)
{
	if (d->n_ranks < 6)
		d->n_ranks = d->per_node = 6;
	d->culprit %= d->n_ranks;
	put_head(d, "order", 60);
	put(d, "comm main all\ncomm side all\nprogram\nloop\nwork %ums\n", pick(d, 20, 90));
	put(d, "%s main\n%s side\nsync\nend\nend\n", d->kind, kinds[pick(d, 0, 7)]);
	put(d, "fault %u at %us on main swap\nexpect deadlock %u\n", d->culprit, d->at_s,
	    d->culprit);
}

static void draw_p2p(struct draw *d)
{
	put_head(d, "point to point", 150);
	put(d,
	    "comm main all\nprogram\nloop\nwork %ums\ngroup\nsend main 512 to ring-next\n"
	    "recv main 512 from ring-prev\nend\n%s main 64\nsync\nend\nend\n",
	    pick(d, 20, 90), d->kind);
	put(d, "fault %u at %us on main %s block\n", d->culprit, d->at_s,
	    pick(d, 0, 1) ? "send" : "recv");
	/* Its neighbours wait for it in the ring, those further away in the collective. */
	put(d, "expect p2p_unmatched %u or never_entered %u\n", d->culprit, d->culprit);
}

static void draw_init(struct draw *d)
{
	static const char *const calls[] = { "init late", "split main into half", "finalize main" };

	put_head(d, "making comms", 420);
	put(d, "comm main all\ncomm late all by init\ncomms half size %u by split\nprogram\n",
	    d->n_ranks / 2);
	put(d, "loop %u\nwork %ums\n%s main\nsync\nend\nonly %u\nsleep 10h\nend\n%s\n",
	    pick(d, 10, 200), pick(d, 10, 60), d->kind, d->culprit, calls[pick(d, 0, 2)]);
	put(d, "loop\nsleep 1s\nend\nend\nexpect init_stuck %u\n", d->culprit);
}

static void draw_device(struct draw *d)
{
	put_job(d, "device stuck", 420);
	put_fault(d, "stuck");
	put(d, "expect device_stalled %u\n", d->culprit);
}

static void draw_wedge(struct draw *d)
{
	put_job(d, "does not complete", 120);
	put_fault(d, "wedge");
	put(d, "expect in_collective nobody\n");
}

static void draw_unknown(struct draw *d)
{
	put_job(d, "cannot be seen", 420);
	put_fault(d, "block");
	put(d, "fault %u at 0s blind\nexpect unknown nobody\n", d->culprit);
}

/* ---- healthy jobs ---- */

static void draw_control(struct draw *d)
{
	static const char *const by[] = { "io", "child", "spin" };
	char action[48];

	put_job(d, "healthy", 200);
	switch (pick(d, 0, 6)) {
	case 0:
		break;
	case 1:
		(void)snprintf(action, sizeof(action), "%s for %us", by[pick(d, 0, 2)],
			       pick(d, 5, 150));
		put_fault(d, action);
		break;
	case 2:
		put(d, "fault %u at %us slow %ums\n", d->culprit, d->at_s, pick(d, 20, 5000));
		break;
	case 3:
		put(d, "fault %u at %us trace for %us\n", d->culprit, d->at_s, pick(d, 5, 150));
		break;
	case 4:
		put(d, "node %u at %us goodbye for %us\n", pick(d, 0, 1), d->at_s, pick(d, 5, 90));
		break;
	case 5:
		put(d, "job at %us %s\n", d->at_s, pick(d, 0, 1) ? "cancel" : "restart");
		break;
	default:
		(void)snprintf(action, sizeof(action), "block for %us", pick(d, 2, 45));
		put_fault(d, action);
		break;
	}
	put(d, "expect silence\n");
}

/* ---- all of them ---- */

int suite_generate(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user, struct cw_err *err)
{
	static void (*const hangs[])(struct draw *) = {
		draw_never_entered, draw_process_dead, draw_node_unreachable,
		draw_mismatch,      draw_deadlock,     draw_p2p,
		draw_init,          draw_device,       draw_wedge,
		draw_unknown,
	};
	char file[64];
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i++) {
		struct draw d = { .state = cw_hash_mix64(seed) ^ cw_hash_mix64(i + 1) };

		draw_sizes(&d);
		if (i % 2)
			draw_control(&d);
		else
			hangs[i / 2 % (sizeof(hangs) / sizeof(*hangs))](&d);
		put(&d, "end\n");
		(void)snprintf(file, sizeof(file), "seed-%llu-%llu", (unsigned long long)seed,
			       (unsigned long long)i);
		r = suite_read_text(d.text, d.n, file, MAX_LINES, fn, user, err);
	}
	return r;
}
