/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random scenarios, as text and then as any other: class, layout, sizes, kinds of call, culprits,
 * instants and rhythms are drawn. Every second one is healthy.
 */
#pragma once

#include "lab/suite/scenario/scenario.h"

/* Bytes that the text of a drawn scenario fits in. */
#define SUITE_DRAWN_BYTES 8192u

/* The text of the index-th scenario of a seed, from 0; its length is returned. */
size_t cw_suite_draw(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES]);

/*
 * Hands n scenarios to fn. The i-th of a seed is the same whatever n is. Returns as
 * cw_suite_read_text().
 */
int cw_suite_generate(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user,
		      struct cw_err *err);

/* The same of healthy jobs in which some wait for long; *ret_n: how often, about. */
size_t cw_suite_draw_waits(uint64_t seed, uint64_t index, char ret[SUITE_DRAWN_BYTES],
			   uint32_t *ret_n);
/* As many as have n waits. */
int cw_suite_generate_waits(uint64_t n, uint64_t seed, suite_scenario_fn fn, void *user,
			    struct cw_err *err);
