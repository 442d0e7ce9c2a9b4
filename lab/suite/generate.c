/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/generate.h"

#include <stdio.h>

#include "lab/suite/builder.h"
#include "model/signature.h"

#define MAX_LINES 1000u
/* One in RECORDED_OF scenarios goes through flight records. This does not change its text. */
#define RECORDED_OF 8u
/* In one of CLUSTER_OF scenarios, a fault strikes the daemons. */
#define CLUSTER_OF 6u

/*
 * In one of DEVICES_OF scenarios, each process drives several devices, if the size of the job and
 * the kind of scenario allow it.
 */
#define DEVICES_OF 8u

size_t cw_suite_draw(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES])
{
	struct builder d = builder_begin(seed, index, ret);

	draw_sizes(&d);
	d.has_devices = cw_hash_mix64(index ^ seed) % DEVICES_OF == 2;
	if (index % 2)
		draw_control(&d);
	else
		draw_hang(&d, (uint32_t)(index / 2 % DRAW_HANGS));
	if (cw_hash_mix64(index) % RECORDED_OF == 0)
		builder_put(&d, "recorded\n");
	if (cw_hash_mix64(index) % CLUSTER_OF == 1)
		draw_cluster(&d);
	builder_put(&d, "end\n");
	return d.n;
}

static int hand_over(const char *text, size_t len, const char *what, uint64_t seed, uint64_t i,
		     suite_scenario_fn fn, void *user, struct cw_err *err)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s-%llu-%llu", what, (unsigned long long)seed,
		       (unsigned long long)i);
	return cw_suite_read_text(text, len, file, MAX_LINES, fn, user, err);
}

int cw_suite_generate(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user,
		      struct cw_err *err)
{
	char text[SUITE_DRAWN_BYTES];
	int r = 0;

	for (uint64_t i = 0; i < n && r == 0; i++) {
		size_t len = cw_suite_draw(seed, i, text);

		r = hand_over(text, len, "seed", seed, i, fn, user, err);
	}
	return r;
}

int cw_suite_generate_waits(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user,
			    struct cw_err *err)
{
	char text[SUITE_DRAWN_BYTES];
	uint32_t n_of = 0;
	int r = 0;

	for (uint64_t i = 0, have = 0; have < n && r == 0; i++, have += n_of) {
		size_t len = cw_suite_draw_waits(seed, i, text, &n_of);

		r = hand_over(text, len, "waits", seed, i, fn, user, err);
	}
	return r;
}
