/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the baselines of a job that never ran, for tests/bench/baseline-check:
 *
 *	baseline_runs DIRECTORY RANKS STEPS CALLS NOISE RANK STEP [operators]
 *
 * Each step has CALLS collectives on three communicators. Each rank's numbers follow from rank,
 * step and call alone, times 1 + NOISE u with u drawn in [-1, 1]. From STEP on RANK's input is
 * twice that; RANK -1: no rank's. With "operators" CALLS are calls of operators of torch in a step,
 * each of a module of its own, and the files are as collwatch.torch would write them.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"
#include "model/signature.h"
#include "numerics/collect/baseline_file.h"

#define ELEMENTS 1048576u
#define SITES 12u
#define GROUP 8u
#define CALLS_A_LINE 256u

struct job {
	const char *dir;
	uint32_t ranks, steps, calls;
	double noise;
	int32_t odd_rank;
	uint32_t odd_step;
};

static uint64_t noise_state = 88172645463325252u;

static double uniform(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

static double noise(double size)
{
	noise_state = cw_hash_mix64(noise_state);
	return 1 + size * (2 * uniform(noise_state) - 1);
}

static void set_side(const struct job *job, struct cw_baseline_row *row, enum cw_baseline_side side,
		     double value)
{
	cw_baseline_row_set_value(row, side, CW_BASELINE_ABSMAX, value * noise(job->noise));
	cw_baseline_row_set_value(row, side, CW_BASELINE_MEAN, value / 1000 * noise(job->noise));
	cw_baseline_row_set_value(row, side, CW_BASELINE_L2, value * 300 * noise(job->noise));
}

static int write_rows(const struct job *job, uint32_t rank, struct cw_baseline_writer *w)
{
	uint32_t seqs[3] = { 0 };
	char site[64];

	for (uint32_t step = 0; step < job->steps; step++)
		for (uint32_t call = 0; call < job->calls; call++) {
			uint32_t comm = call % 3;
			uint64_t bits =
				cw_hash_mix64((uint64_t)rank << 48 | (uint64_t)step << 16 | call);
			bool is_odd = (int32_t)rank == job->odd_rank && step >= job->odd_step;
			struct cw_baseline_row row = {
				.unit = CW_BASELINE_UNIT_ROW | CW_BASELINE_HAS_IN |
					CW_BASELINE_HAS_OUT,
				.kind = comm == 1 ? CW_OP_REDUCE_SCATTER : CW_OP_ALL_REDUCE,
				.dtype = CW_DTYPE_BF16,
				.redop = CW_REDOP_SUM,
				.seq = ++seqs[comm],
				.step_plus_1 = step + 1,
				.comm = (uint16_t)comm,
				.root_or_peer = -1,
			};
			int number;

			(void)snprintf(site, sizeof(site), "train.py:%u in backward", call % SITES);
			number = cw_baseline_writer_site(w, site);
			if (number < 0)
				return number;
			row.site = (uint16_t)number;
			cw_baseline_row_set_count(&row, ELEMENTS);
			set_side(job, &row, CW_BASELINE_IN, (1 + uniform(bits)) * (is_odd ? 2 : 1));
			set_side(job, &row, CW_BASELINE_OUT, 4 + uniform(bits));
			if (cw_baseline_writer_row(w, &row) < 0)
				return -ENOSPC;
		}
	return 0;
}

static int write_rank(const struct job *job, uint32_t rank)
{
	static const char *const names[] = { "world", "tp", "dp" };
	static const uint64_t nothing[CW_BASELINE_COUNTERS];
	struct cw_baseline_head head = { .rank = (int32_t)rank, .world_size = (int32_t)job->ranks };
	struct cw_baseline_writer *w;
	char path[PATH_MAX];
	int r, end;

	(void)snprintf(path, sizeof(path), "%s/rank-%u.baseline", job->dir, rank);
	r = cw_baseline_writer_new(path, &head, &w);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < 3 && r >= 0; i++) {
		struct cw_baseline_comm comm = {
			.id = (uint64_t)i << 32 | (i == 1   ? rank / GROUP
						   : i == 2 ? rank % GROUP
							    : 0),
			.nranks = i == 1   ? GROUP
				  : i == 2 ? job->ranks / GROUP
					   : job->ranks,
			.comm_rank = (int32_t)(i == 1   ? rank % GROUP
					       : i == 2 ? rank / GROUP
							: rank),
		};

		(void)snprintf(comm.name, sizeof(comm.name), "%s", names[i]);
		r = cw_baseline_writer_comm(w, &comm);
	}
	if (r >= 0)
		r = write_rows(job, rank, w);
	end = cw_baseline_writer_free(w, nothing);
	return r < 0 ? r : end;
}

/* ---- operators ---- */

static void print_side(const struct job *job, FILE *f, double value)
{
	(void)fprintf(f, ",0,%.13g,%.13g,%.13g", value * noise(job->noise),
		      value / 1000 * noise(job->noise), value * 300 * noise(job->noise));
}

static void print_step(const struct job *job, uint32_t rank, uint32_t step, FILE *f)
{
	for (uint32_t call = 0; call < job->calls; call++) {
		uint64_t bits = cw_hash_mix64((uint64_t)rank << 48 | (uint64_t)step << 16 | call);
		bool is_odd = (int32_t)rank == job->odd_rank && step >= job->odd_step;

		if (call % CALLS_A_LINE == 0)
			(void)fprintf(f, "{\"line\":\"calls\",\"step\":%u,\"calls\":[", step);
		(void)fprintf(f, "%s[%u", call % CALLS_A_LINE ? "," : "", call);
		print_side(job, f, (1 + uniform(bits)) * (is_odd ? 2 : 1));
		print_side(job, f, 4 + uniform(bits));
		(void)fprintf(f, "]%s",
			      (call + 1) % CALLS_A_LINE && call + 1 < job->calls ? "" : "]}\n");
	}
}

static int write_lines(const struct job *job, uint32_t rank)
{
	char path[PATH_MAX];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/collwatch-tensors-rank%u.jsonl", job->dir, rank);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	(void)fprintf(f,
		      "{\"line\":\"head\",\"schema\":\"collwatch.tensors/1\",\"rank\":%u,"
		      "\"world_size\":%u,\"denied\":[\"view\"]}\n",
		      rank, job->ranks);
	for (uint32_t call = 0; call < job->calls; call++)
		(void)fprintf(
			f,
			"{\"line\":\"operator\",\"operator\":%u,\"phase\":\"forward\",\"module\":"
			"\"blocks.%u.ffn.up\",\"class\":\"Linear\",\"op\":\"addmm\",\"dtype\":"
			"\"bfloat16\",\"inputs\":%u,\"outputs\":%u}\n",
			call, call, 2 * ELEMENTS, ELEMENTS);
	for (uint32_t step = 0; step < job->steps; step++)
		print_step(job, rank, step, f);
	return fclose(f) == 0 ? 0 : -errno;
}

int main(int argc, char **argv)
{
	struct job job = { .dir = argv[1] };

	if (argc != 8 && (argc != 9 || strcmp(argv[8], "operators") != 0)) {
		(void)fprintf(stderr, "usage: baseline_runs DIR RANKS STEPS CALLS NOISE RANK STEP "
				      "[operators]\n");
		return 2;
	}
	job.ranks = (uint32_t)strtoul(argv[2], NULL, 10);
	job.steps = (uint32_t)strtoul(argv[3], NULL, 10);
	job.calls = (uint32_t)strtoul(argv[4], NULL, 10);
	job.noise = strtod(argv[5], NULL);
	job.odd_rank = (int32_t)strtol(argv[6], NULL, 10);
	job.odd_step = (uint32_t)strtoul(argv[7], NULL, 10);
	noise_state += strlen(job.dir) + (uint64_t)argv[1][strlen(argv[1]) - 1];
	for (uint32_t rank = 0; rank < job.ranks; rank++) {
		int r = argc == 9 ? write_lines(&job, rank) : write_rank(&job, rank);

		if (r < 0) {
			(void)fprintf(stderr, "baseline_runs: rank %u: %s\n", rank, strerror(-r));
			return 1;
		}
	}
	return 0;
}
