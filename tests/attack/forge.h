/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the communicator that gives a hang a chosen incident id, for versions that make ids by a
 * chain of cw_hash_step(). Each step is a bijection of the 64 bits it hashes, so we walk the chain
 * backwards from the id to the communicator.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "model/signature.h"

/* Odd a: x -> a * x is a bijection; its inverse by Newton. */
static inline uint64_t forge_inverse(uint64_t a)
{
	uint64_t x = a;

	for (int i = 0; i < 6; i++)
		x *= 2 - a * x;
	return x;
}

/* y = x ^ x >> n */
static inline uint64_t forge_unshift(uint64_t y, unsigned n)
{
	uint64_t x = y;

	for (unsigned done = n; done < 64; done += n)
		x = y ^ x >> n;
	return x;
}

/* Of cw_hash_mix64(). */
static inline uint64_t forge_unmix(uint64_t y)
{
	uint64_t x = forge_unshift(y, 31);

	x = forge_unshift(x * forge_inverse(UINT64_C(0x94d049bb133111eb)), 27);
	x = forge_unshift(x * forge_inverse(UINT64_C(0xbf58476d1ce4e5b9)), 30);
	return x - UINT64_C(0x9e3779b97f4a7c15);
}

/* h of cw_hash_step(h, v) */
static inline uint64_t forge_step_back(uint64_t stepped, uint64_t v)
{
	return forge_unmix(stepped) ^ cw_hash_mix64(v);
}

/* v of cw_hash_step(h, v) */
static inline uint64_t forge_value(uint64_t stepped, uint64_t h)
{
	return forge_unmix(forge_unmix(stepped) ^ h);
}

/* The identity of the attacker's own job, and the id to forge for it. */
struct forged {
	uint64_t id;
	const char *label;
	uint32_t uid, instance;
	uint64_t seq;
	int is_waited;
	uint64_t start_ticks;
};

static inline uint64_t forge_comm_id(const struct forged *f)
{
	uint64_t job_hash = cw_hash_step(CW_HASH_INIT, f->uid), key;

	for (const char *p = f->label; *p; p++)
		job_hash = cw_hash_step(job_hash, (unsigned char)*p);
	key = forge_step_back(f->id, f->start_ticks);
	key = forge_value(key, cw_hash_step(CW_HASH_INIT, job_hash ? job_hash : 1));
	key = forge_step_back(key, (uint64_t)f->is_waited);
	key = forge_step_back(key, f->seq);
	key = forge_step_back(key, f->instance);
	return forge_value(key, CW_HASH_INIT);
}
