/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a verdict: `verdict-bench --ranks N --comms N --scenario S --json`.
 *
 * Every rank is a member of --comms communicators: one over the whole job in four, the rest in turn
 * over blocks of 8 neighbours (tensor parallel) and over every 8th rank (data parallel), as a large
 * training job has them. The first 256 ranks have windows. In the scenarios with a culprit all
 * other ranks wait for it in all communicators over the whole job. Ends with 1 when the verdict
 * differs, or took no time or an absurd one.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "analysis/verdict.h"
#include "model/signature.h"
#include "model/snapshot.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"

#define S INT64_C(1000000000)
#define NOW (1000 * S)
#define GROUP 8
#define WINDOW 64
#define SUSPECTS 256
#define DONE 1000
#define ABSURD_NS (600 * S)

enum scenario { HEALTHY, NEVER_ENTERED, WRONG_COUNT, SCENARIO__MAX };

static const char *const scenario_names[SCENARIO__MAX] = { "healthy", "never-entered",
							   "wrong-count" };

struct bench {
	uint32_t n_ranks, n_comms;
	enum scenario scenario;
	uint32_t culprit;
	struct cw_snapshot *snap;
};

static int64_t clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * S + t.tv_nsec;
}

/* Written in place, not returned by value: this is most of the load's work besides the pages. */
static void make_op(uint64_t seq, bool is_pending, struct cw_op *ret)
{
	static const struct cw_op usual = { .kind = CW_OP_ALL_REDUCE,
					    .dtype = CW_DTYPE_BF16,
					    .redop = CW_REDOP_SUM,
					    .progress = CW_PROGRESS_COMPLETED,
					    .flags = CW_OPF_RETURNED,
					    .root = CW_PEER_NONE,
					    .peer = CW_PEER_NONE,
					    .count = 1 << 20,
					    .bytes = 2 << 20 };

	*ret = usual;
	if (is_pending)
		ret->progress = CW_PROGRESS_REACHED;
	ret->coll_seq = seq;
	ret->op_index = seq;
	ret->enter_ns = NOW - (is_pending ? 12 * S : 13 * S);
}

static int set_member(struct bench *b, uint32_t comm, uint32_t member, uint32_t rank)
{
	bool waits = b->scenario != HEALTHY && b->snap->comms[comm].nranks == b->n_ranks &&
		     (rank != b->culprit || b->scenario == WRONG_COUNT);
	uint64_t entered = DONE + waits;
	struct cw_op last, window[WINDOW];
	struct cw_snap_member m = {
		.rank = rank,
		.state = CW_COMM_READY,
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_REACHED |
			 CW_KNOWN_COMPLETED | CW_KNOWN_HASH,
		.coll_entered = entered,
		.coll_returned = entered,
		.coll_reached = entered,
		.coll_completed = DONE,
		.op_index = entered,
		.hash_seq = DONE,
		.hash = cw_hash_mix64(DONE),
		.pending = waits ? &last : NULL,
		.last = &last,
		.progress_ns = NOW - 12 * S,
	};

	make_op(entered, waits, &last);
	for (unsigned k = 0; k < CW_SNAP_CHECKPOINTS; k++)
		m.checkpoints[k] = (struct cw_checkpoint){ 960 - 64 * k, cw_hash_mix64(k) };
	if (b->scenario == WRONG_COUNT && rank == b->culprit && comm == 0)
		last.count--;
	if (rank < SUSPECTS) {
		for (uint32_t i = 0; i < WINDOW; i++)
			make_op(entered + 1 + i - WINDOW, waits && i == WINDOW - 1, &window[i]);
		window[WINDOW - 1] = last;
		m.window = window;
		m.n_window = WINDOW;
		m.window_ns = NOW;
	}
	return cw_snapshot_set_member(b->snap, comm, member, &m);
}

/* One communicator: first, first + stride, … */
static int add_comm(struct bench *b, uint32_t first, uint32_t n, uint32_t stride)
{
	struct cw_snap_comm comm = { .id = b->snap->n_comms + 1, .nranks = n };
	uint32_t index;
	int r = cw_snapshot_add_comm(b->snap, &comm, &index);

	for (uint32_t m = 0; r == 0 && m < n; m++)
		r = set_member(b, index, m, first + m * stride);
	return r;
}

static int load(struct bench *b)
{
	uint32_t node, index;
	int r = 0;

	b->snap = cw_snapshot_new();
	if (!b->snap)
		return -ENOMEM;
	b->snap->now_ns = NOW;
	for (uint32_t i = 0; r == 0 && i < b->n_ranks; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)i,
					     .node = i / GROUP,
					     .pid = 1000 + (int32_t)i,
					     .liveness = CW_LIVE_ALIVE,
					     .flags = CW_RANKF_HAS_RECORD,
					     .sampled_ns = NOW,
					     .host_activity_ns = NOW - 12 * S };
		char name[24];

		(void)snprintf(name, sizeof(name), "node-%" PRIu32, i / GROUP);
		if (i % GROUP == 0)
			r = cw_snapshot_add_node(b->snap, name, &node);
		if (r == 0)
			r = cw_snapshot_add_rank(b->snap, &rank, &index);
	}
	for (uint32_t c = 0; r == 0 && c < b->n_comms; c++) {
		uint32_t groups = b->n_ranks / GROUP;

		if (c % 4 == 0)
			r = add_comm(b, 0, b->n_ranks, 1);
		else if (c % 2)
			for (uint32_t g = 0; r == 0 && g < groups; g++)
				r = add_comm(b, g * GROUP, GROUP, 1);
		else
			for (uint32_t g = 0; r == 0 && g < GROUP; g++)
				r = add_comm(b, g, groups, GROUP);
	}
	return r;
}

static int report(const struct bench *b, int64_t load_ns, int64_t verdict_ns,
		  const struct cw_verdict *v, bool json)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	if (!json) {
		(void)printf("%" PRIu32 " ranks x %" PRIu32 " comms: verdict in %.1f ms (%s)\n",
			     b->n_ranks, b->n_comms, (double)verdict_ns / 1e6, said_text(&v->said));
		return 0;
	}
	(void)printf("{\"ranks\":%" PRIu32 ",\"comms\":%" PRIu32
		     ",\"scenario\":\"%s\",\"load_ms\":%.1f,\"verdict_ms\":%.1f,"
		     "\"peak_rss_mib\":%ld,\"class\":\"%s\",\"culprits\":[",
		     b->n_ranks, b->n_comms, scenario_names[b->scenario], (double)load_ns / 1e6,
		     (double)verdict_ns / 1e6, usage.ru_maxrss / 1024,
		     cw_class_name(v->verdict_class));
	for (uint32_t i = 0; i < v->n_culprits; i++)
		(void)printf("%s%" PRId32, i ? "," : "", b->snap->ranks[v->culprits[i].rank].rank);
	(void)printf("]}\n");
	return 0;
}

static bool is_real(const struct bench *b, const struct cw_verdict *v, int64_t verdict_ns)
{
	static const enum cw_class classes[] = { CW_CLASS_HEALTHY, CW_CLASS_NEVER_ENTERED,
						 CW_CLASS_MISMATCH };
	bool has_culprit = b->scenario == HEALTHY;

	for (uint32_t i = 0; i < v->n_culprits; i++)
		has_culprit |= v->culprits[i].rank == b->culprit;
	if (v->verdict_class == classes[b->scenario] && has_culprit && verdict_ns > 0 &&
	    verdict_ns < ABSURD_NS)
		return true;
	(void)fprintf(stderr, "verdict-bench: %s in %" PRId64 " ns is not what was asked for\n",
		      cw_class_name(v->verdict_class), verdict_ns);
	return false;
}

static int usage_error(const char *what)
{
	(void)fprintf(stderr,
		      "verdict-bench: %s\nusage: verdict-bench [--ranks N] [--comms N] "
		      "[--scenario healthy|never-entered|wrong-count] [--json]\n",
		      what);
	return 1;
}

static int find_scenario(const char *name)
{
	for (int i = 0; i < SCENARIO__MAX; i++)
		if (strcmp(scenario_names[i], name) == 0)
			return i;
	return -1;
}

static int parse_count(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > CW_SNAP_MAX_RANKS)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "ranks", required_argument, NULL, 'r' },
						 { "comms", required_argument, NULL, 'c' },
						 { "scenario", required_argument, NULL, 's' },
						 { "json", no_argument, NULL, 'j' },
						 { 0 } };
	struct bench b = { .n_ranks = 4096, .n_comms = 20, .scenario = NEVER_ENTERED };
	struct cw_verdict v = { 0 };
	int64_t start, loaded, done;
	bool json = false;
	int opt, r;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r' && parse_count(optarg, &b.n_ranks) < 0)
			return usage_error("--ranks is not a number");
		if (opt == 'c' && parse_count(optarg, &b.n_comms) < 0)
			return usage_error("--comms is not a number");
		if (opt == 's') {
			r = find_scenario(optarg);
			if (r < 0)
				return usage_error("unknown scenario");
			b.scenario = (enum scenario)r;
		}
		if (opt == 'j')
			json = true;
		if (opt == '?')
			return usage_error("unknown option");
	}
	if (b.n_ranks < GROUP)
		return usage_error("--ranks is below 8");
	b.culprit = b.n_ranks / 2 + 1;
	start = clock_ns();
	r = load(&b);
	loaded = clock_ns();
	if (r == 0)
		r = cw_verdict_compute(b.snap, &v);
	done = clock_ns();
	if (r == 0)
		r = report(&b, loaded - start, done - loaded, &v, json);
	if (r == 0)
		r = is_real(&b, &v, done - loaded) ? 0 : -EPROTO;
	else
		(void)fprintf(stderr, "verdict-bench: %s\n", strerror(-r));
	cw_verdict_fini(&v);
	b.snap = cw_snapshot_free(b.snap);
	return r < 0;
}
