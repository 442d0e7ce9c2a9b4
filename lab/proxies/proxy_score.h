/* SPDX-License-Identifier: Apache-2.0 */
/* Scores the engine's verdicts on drawn cases of the proxies' model. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "lab/proxies/proxy_draw.h"

struct proxy_score {
	struct {
		uint32_t n, right, node; /* right: the connection, the GPU or the rank */
		uint32_t alone;          /* of a GPU: named without others of its node */
		uint32_t certain, wrong_certain, early_certain;
	} of[PROXY_FAULT__MAX];
	uint64_t first_wrong[PROXY_FAULT__MAX]; /* seeds, to look at; 0 = none */
};

/* Draws and scores the case of a seed. Returns 0 or -ENOMEM. */
int proxy_score_add(struct proxy_score *s, uint64_t seed, enum proxy_fault fault);

/*
 * Prints a row per fault, and the rates. Returns true if they are reached: right connection and GPU
 * 95 %, right node of hangs 99 %, nothing wrongly certain, no healthy job accused, no other cause
 * overruled.
 */
bool proxy_score_print(const struct proxy_score *s, FILE *out);
