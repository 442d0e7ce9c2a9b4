/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawn jobs of up to 512 ranks with tensor, data and pipeline parallelism. In 300 jobs one rank
 * has another stack than its peers, and nothing else shows which one. In 300 jobs no rank differs,
 * or ranks differ only by their roles, or because the job makes progress. Noise: lines, library
 * frames, helper threads, thread pools, missing stacks, hosts that are idle or busy.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/stacks/different.h"
#include "analysis/stacks/peers.h"
#include "report/stacks/stack_signature.h"

#define JOBS 300u
#define NOW (INT64_C(5000) * 1000000000)
#define MAX_RANKS 512u
#define MAX_SAMPLES (MAX_RANKS * CW_STACK_SIGNATURES_MAX)
#define MAX_OWN 9u
#define MAX_STAGES 32u

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % below;
}

static bool chance(uint32_t percent)
{
	return draw(100) < percent;
}

static uint32_t one_of(const uint32_t *list, uint32_t n)
{
	return list[draw(n)];
}

#define ONE_OF(...)                                                                                \
	one_of((const uint32_t[]){ __VA_ARGS__ },                                                  \
	       sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* ---- jobs ---- */

enum kind { ODD_RANK, SYMMETRIC, ROLES, MOVES, BEFORE_COMMS };

struct job {
	enum kind kind;
	uint32_t tp, dp, pp, n;
	bool has_pair_comms, has_embedding, has_names;
	uint32_t idle_percent; /* share of hosts that are idle; the rest is busy */
	bool are_hosts_known;
	uint32_t odd;
	struct cw_snapshot *snap;
	/* The own functions of each stage's main thread, outermost first, as numbers of names. */
	uint32_t own[MAX_STAGES][MAX_OWN], n_own[MAX_STAGES], entry[MAX_STAGES];
	bool are_stages_equal; /* apart from the first and the last one */
	uint32_t shared;       /* frames that the stages have in common */
	bool do_lines_vary;
	uint32_t n_helpers, pool;
};

/* Ranks are numbered with tensor parallelism innermost and pipeline stages outermost. */
static uint32_t rank_at(const struct job *j, uint32_t p, uint32_t d, uint32_t t)
{
	return (p * j->dp + d) * j->tp + t;
}

static uint32_t stage_of(const struct job *j, uint32_t rank)
{
	return rank / (j->dp * j->tp);
}

static uint32_t add_comm(const struct job *j, const char *name, uint32_t n)
{
	static uint64_t id;
	struct cw_snap_comm comm = { .id = ++id, .nranks = n, .name = j->has_names ? name : NULL };
	uint32_t index;

	cr_assert_eq(cw_snapshot_add_comm(j->snap, &comm, &index), 0);
	return index;
}

/* When its counters last moved. */
static int64_t progress(const struct job *j)
{
	return NOW - (j->kind == MOVES ? 10 + draw(900) : 40000 + draw(900000)) * INT64_C(1000000);
}

static void set_collective(const struct job *j, uint32_t comm, uint32_t m, uint32_t rank,
			   uint64_t calls)
{
	struct cw_snap_member member = { .rank = rank,
					 .coll_entered = calls,
					 .interval_ns = draw(2000) * INT64_C(1000000),
					 .progress_ns = progress(j) };

	cr_assert_eq(cw_snapshot_set_member(j->snap, comm, m, &member), 0);
}

static void set_messages(const struct job *j, uint32_t comm, uint32_t m, uint32_t n, uint32_t rank)
{
	struct cw_p2p_peer p2p[2];
	struct cw_snap_member member = { .rank = rank,
					 .p2p = p2p,
					 .interval_ns = draw(900) * INT64_C(1000000),
					 .progress_ns = progress(j) };

	for (int step = -1; step <= 1; step += 2)
		if ((int)m + step >= 0 && m + step < n)
			p2p[member.n_p2p++] = (struct cw_p2p_peer){ .peer = m + (uint32_t)step,
								    .sends = 1 + draw(1000),
								    .recvs = 1 + draw(1000) };
	member.sends = member.recvs = 5;
	cr_assert_eq(cw_snapshot_set_member(j->snap, comm, m, &member), 0);
}

static void add_pipelines(const struct job *j)
{
	for (uint32_t d = 0; d < j->dp; d++) {
		for (uint32_t t = 0; t < j->tp; t++) {
			uint32_t comm;

			if (!j->has_pair_comms) {
				comm = add_comm(j, "mesh_pp", j->pp);
				for (uint32_t p = 0; p < j->pp; p++)
					set_messages(j, comm, p, j->pp, rank_at(j, p, d, t));
			}
			for (uint32_t p = 0; j->has_pair_comms && p + 1 < j->pp; p++) {
				comm = add_comm(j, NULL, 2);
				set_messages(j, comm, 0, 2, rank_at(j, p, d, t));
				set_messages(j, comm, 1, 2, rank_at(j, p + 1, d, t));
			}
			if (j->has_embedding) {
				comm = add_comm(j, "embedding", 2);
				set_collective(j, comm, 0, rank_at(j, 0, d, t), 7);
				set_collective(j, comm, 1, rank_at(j, j->pp - 1, d, t), 7);
			}
		}
	}
}

static void add_comms(const struct job *j)
{
	uint64_t calls = chance(80) ? 1 + draw(5000) : 0;
	uint32_t comm = add_comm(j, "default_pg", j->n);

	for (uint32_t i = 0; i < j->n; i++)
		set_collective(j, comm, i, i, j->pp == 1 ? calls + 1 : calls);
	for (uint32_t p = 0; p < j->pp && j->tp > 1; p++)
		for (uint32_t d = 0; d < j->dp; d++) {
			comm = add_comm(j, "tp", j->tp);
			for (uint32_t t = 0; t < j->tp; t++)
				set_collective(j, comm, t, rank_at(j, p, d, t), 1 + draw(99));
		}
	for (uint32_t p = 0; p < j->pp && (j->pp > 1 || j->tp > 1); p++)
		for (uint32_t t = 0; t < j->tp; t++) {
			comm = add_comm(j, "dp", j->dp);
			for (uint32_t d = 0; d < j->dp; d++)
				set_collective(j, comm, d, rank_at(j, p, d, t), 1 + draw(99));
		}
	if (j->pp > 1)
		add_pipelines(j);
}

static void add_ranks(const struct job *j)
{
	uint32_t index;

	j->snap->now_ns = NOW;
	cr_assert_eq(cw_snapshot_add_node(j->snap, "node", &index), 0);
	for (uint32_t i = 0; i < j->n; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)i, .liveness = CW_LIVE_ALIVE };

		cr_assert_eq(cw_snapshot_add_rank(j->snap, &rank, &index), 0);
	}
}

/* ---- stacks ---- */

static void draw_programs(struct job *j)
{
	uint32_t depth = 2 + draw(MAX_OWN - 3);

	j->shared = 1 + draw(depth - 1);
	for (uint32_t p = 0; p < j->pp; p++) {
		bool is_as_before = p > 0 && (j->are_stages_equal || chance(40));

		j->n_own[p] = is_as_before ? j->n_own[p - 1] : depth;
		j->entry[p] = is_as_before ? j->entry[p - 1] : draw(40);
		for (uint32_t i = 0; i < MAX_OWN; i++)
			j->own[p][i] = is_as_before || (p > 0 && i < j->shared) ? j->own[p - 1][i]
										: draw(5000);
	}
	/* The first and the last stage do more than the others. */
	for (uint32_t k = 0; j->kind != SYMMETRIC && j->pp > 2 && k < 2; k++) {
		uint32_t p = k ? j->pp - 1 : 0;

		j->own[p][j->n_own[p]++] = 6000 + k;
	}
}

static json_t *frame(const char *directory, const char *word, uint32_t number, uint32_t line)
{
	char file[96], function[64];

	(void)snprintf(file, sizeof(file), "%s/%s%u.py", directory, word, number % 11);
	(void)snprintf(function, sizeof(function), "%s_%u", word, number);
	return json_pack("{s:s, s:i, s:s}", "file", file, "line", (int)line, "function", function);
}

/* Appends library frames below the entry: how many, and which, differs between ranks. */
static void add_library(json_t *outer, uint32_t entry)
{
	(void)json_array_append_new(outer,
				    frame("/usr/lib/python3.11/site-packages/torch/distributed",
					  "entry", entry, 100 + entry));
	for (uint32_t i = draw(6); i > 0; i--)
		(void)json_array_append_new(
			outer, frame("/usr/lib/python3.11", "inner", draw(90), draw(900)));
}

/* Frames outermost first. is_odd: elsewhere than its peers. */
static json_t *draw_main(const struct job *j, uint32_t rank, bool is_odd)
{
	uint32_t p = stage_of(j, rank), n = j->n_own[p], entry = j->entry[p];
	uint32_t other = is_odd ? draw(3) : 9, cut = n;
	json_t *outer = json_array();

	if (j->kind == MOVES) { /* anywhere in the program */
		n = 1 + draw(n);
		cut = n;
		entry = draw(40);
	}
	if (other == 0) /* deeper in another function */
		cut = draw(n);
	for (uint32_t i = 0; i < cut; i++)
		(void)json_array_append_new(outer,
					    frame("/home/u/run", "f", j->own[p][i],
						  10 * i + (j->do_lines_vary ? draw(4) : 0) + 1));
	for (uint32_t i = 0; other == 0 && i <= draw(3); i++)
		(void)json_array_append_new(outer, frame("/home/u/run", "odd", draw(900), 3));
	if (other == 1) /* the same function calls another library */
		entry += 50 + draw(20);
	if (other == 2) /* it has not come that far, or has gone on */
		(void)json_array_append_new(outer, frame("/home/u/run", "other", draw(900), 7));
	add_library(outer, entry);
	return outer;
}

static json_t *reversed(json_t *outer)
{
	json_t *inner = json_array();

	for (size_t i = json_array_size(outer); i > 0; i--)
		(void)json_array_append(inner, json_array_get(outer, i - 1));
	json_decref(outer);
	return inner;
}

static void add_thread(json_t *threads, int tid, const char *name, json_t *outer)
{
	(void)json_array_append_new(threads, json_pack("{s:i, s:s, s:o}", "tid", tid, "name", name,
						       "frames", reversed(outer)));
}

static json_t *draw_evidence(const struct job *j, uint32_t rank, bool is_odd, bool is_idle)
{
	int pid = 1000 + (int)draw(60000), tid = pid;
	json_t *threads = json_array();
	char name[32];

	/* Helpers run loops of their own; one of 20 is outside its wait, unless the host is idle.
	 */
	for (uint32_t i = 0; i < j->n_helpers; i++) {
		json_t *outer = json_array();

		(void)snprintf(name, sizeof(name), "helper-%c", 'a' + (int)i);
		(void)json_array_append_new(
			outer,
			frame("/home/u/run", "loop", !is_idle && chance(5) ? 50 + draw(90) : i, 3));
		add_thread(threads, ++tid, name, outer);
	}
	for (uint32_t i = 0; i < j->pool; i++) {
		json_t *outer = json_array();

		(void)snprintf(name, sizeof(name), "pool_%u", i);
		(void)json_array_append_new(outer, frame("/home/u/run", "work", draw(30), 3));
		add_thread(threads, ++tid, name, outer);
	}
	add_thread(threads, pid, "python3", draw_main(j, rank, is_odd));
	return json_pack("{s:i, s:{s:s, s:o}}", "pid", pid, "python", "status", "ok", "threads",
			 threads);
}

/* ---- the comparison ---- */

static uint32_t draw_host(const struct job *j)
{
	if (!j->are_hosts_known)
		return CW_STACK_HOST_UNKNOWN;
	return chance(j->idle_percent) ? CW_STACK_HOST_IDLE : CW_STACK_HOST_BUSY;
}

/* Returns the number of named ranks. *ret_right: the odd rank is one of them. */
static size_t compare(const struct job *j, bool *ret_right)
{
	struct cw_stack_sample *samples = calloc(MAX_SAMPLES, sizeof(*samples));
	struct cw_stack_signature signatures[CW_STACK_SIGNATURES_MAX];
	struct cw_stack_difference *list;
	uint32_t peers[MAX_RANKS];
	size_t n = 0, n_found;

	cr_assert_eq(cw_peers_find(j->snap, peers), 0);
	for (uint32_t i = 0; i < j->n; i++) {
		bool is_odd = j->kind == ODD_RANK && i == j->odd;
		uint32_t host = draw_host(j);
		json_t *evidence;

		if (!is_odd && chance(2))
			continue; /* its stacks are missing */
		evidence = draw_evidence(j, i, is_odd, host == CW_STACK_HOST_IDLE);
		for (size_t k = cw_stack_signatures_read(evidence, signatures); k-- > 0;)
			samples[n++] = (struct cw_stack_sample){
				.rank = i,
				.peers = peers[i],
				.role = signatures[k].role,
				.is_main = signatures[k].is_main,
				.functions = signatures[k].functions,
				.lines = signatures[k].lines,
				.host = host,
			};
		json_decref(evidence);
	}
	cr_assert_eq(cw_stack_differences_find(samples, n, j->kind == MOVES, &list, &n_found), 0);
	*ret_right = false;
	for (size_t i = 0; i < n_found; i++) {
		cr_expect_leq(list[i].confidence, 1, "never certain");
		*ret_right |= samples[list[i].sample].rank == j->odd;
	}
	free(list);
	free(samples);
	return n_found;
}

static struct job draw_job(enum kind kind)
{
	struct job j = {
		.kind = kind,
		.tp = ONE_OF(1, 1, 2, 4, 8),
		.dp = ONE_OF(5, 6, 8, 12, 16),
		.pp = ONE_OF(1, 1, 2, 4),
		.are_stages_equal = kind == SYMMETRIC || chance(50),
		.has_pair_comms = chance(50),
		.has_embedding = chance(50),
		.has_names = chance(50),
		.idle_percent = ONE_OF(0, 0, 100, 100),
		.are_hosts_known = chance(80),
		.do_lines_vary = chance(50),
		.n_helpers = draw(4),
		.pool = ONE_OF(0, 0, 2, 3),
		.snap = cw_snapshot_new(),
	};

	if (kind == MOVES)
		j.idle_percent = 0;
	if (kind == ROLES || kind == BEFORE_COMMS) {
		j.pp = ONE_OF(2, 3, 4, 8, 16, 32);
		j.dp = ONE_OF(1, 2, 4, 8);
	}
	while (j.tp * j.dp * j.pp > MAX_RANKS)
		*(j.tp > 1 ? &j.tp : &j.dp) /= 2;
	j.n = j.tp * j.dp * j.pp;
	j.has_embedding &= j.pp > 2;
	j.odd = draw(j.n);
	draw_programs(&j);
	add_ranks(&j);
	if (kind != BEFORE_COMMS)
		add_comms(&j);
	return j;
}

Test(different_drawn, names_the_rank_that_differs_in_its_stack_alone)
{
	uint32_t right = 0, others = 0;

	state = UINT64_C(0x9d5c1f3a77e10b25);
	for (uint32_t i = 0; i < JOBS; i++) {
		struct job j = draw_job(ODD_RANK);
		bool is_right;
		size_t n = compare(&j, &is_right);

		right += is_right;
		others += (uint32_t)n - is_right;
		cw_snapshot_free(j.snap);
	}
	fprintf(stderr, "%u of %u named, and %u others\n", right, JOBS, others);
	cr_expect_geq(right * 100, JOBS * 95, "%u of %u", right, JOBS);
	cr_expect_eq(others, 0);
}

Test(different_drawn, names_no_rank_where_none_differs_but_by_role)
{
	static const enum kind kinds[] = { SYMMETRIC, ROLES, MOVES, BEFORE_COMMS };
	uint32_t named = 0;

	state = UINT64_C(0x2b6f0d4418c3e9a7);
	for (uint32_t i = 0; i < JOBS; i++) {
		struct job j = draw_job(kinds[i % 4]);
		bool is_right;
		size_t n = compare(&j, &is_right);

		cr_expect_eq(n, 0, "job %u of kind %u: tp %u, dp %u, pp %u", i, kinds[i % 4], j.tp,
			     j.dp, j.pp);
		named += n > 0;
		cw_snapshot_free(j.snap);
	}
	fprintf(stderr, "an accusation in %u of %u\n", named, JOBS);
}
