/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random scenarios. We draw class, layout, sizes, kinds of call, culprits, instants and rhythms. We
 * write them as text, and read this text like that of a file. Every second scenario is healthy.
 */
#pragma once

#include "lab/suite/scenario/scenario.h"

/* The text of a drawn scenario fits into this many bytes. */
#define SUITE_DRAWN_BYTES 8192u

/* Writes the text of the index-th scenario of a seed, from 0 on. Returns its length. */
size_t cw_suite_draw(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES]);

/*
 * Passes n scenarios of the seed to fn. The i-th one does not depend on n. Returns the results of
 * cw_suite_read_text().
 */
int cw_suite_generate(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user,
		      struct cw_err *err);

/*
 * Writes the text of a scenario like cw_suite_draw(). The job is healthy, and some of its ranks
 * wait for long. *ret_n: the approximate number of waits.
 */
size_t cw_suite_draw_waits(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES],
			   uint32_t *ret_n);
/* Passes scenarios of cw_suite_draw_waits() to fn until they have n waits together. */
int cw_suite_generate_waits(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user,
			    struct cw_err *err);
