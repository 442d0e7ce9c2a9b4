/* SPDX-License-Identifier: Apache-2.0 */
/* Scores the engine's verdicts on jobs that proxy_draw.h has drawn. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "lab/proxies/proxy_draw.h"

struct proxy_score {
	struct {
		/*
		 * right: verdicts that name the right connection, GPU or rank; node: the right node
		 */
		uint32_t n, right, node;
		/* verdicts that name the right GPU and no other GPU of its node */
		uint32_t alone;
		uint32_t certain, wrong_certain, early_certain;
	} of[PROXY_FAULT__MAX];
	/* seed of the first wrong verdict, to reproduce it; 0 = none */
	uint64_t first_wrong[PROXY_FAULT__MAX];
};

/* Draws and scores the case of a seed. Returns 0 or -ENOMEM. */
int proxy_score_add(struct proxy_score *s, uint64_t seed, enum proxy_fault fault);

/*
 * Prints a row per fault, and the rates. Returns true if all of these goals are reached:
 *
 *  - The connection or the GPU is right in 95 % of the cases.
 *  - The node of a hang is right in 99 % of the cases.
 *  - No wrong verdict is certain.
 *  - No healthy job gets a culprit.
 *  - The connections overrule no other cause.
 */
bool proxy_score_print(const struct proxy_score *s, FILE *out);
