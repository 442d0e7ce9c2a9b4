/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Successive readings of a record's network connections. A digest states since when all readings of
 * a connection have had the same counts. With one digest, its receiver can therefore compare two
 * readings.
 *
 * Pure except for reads of the record. The time comes with each reading.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/record_reader.h"

/*
 * The last reading of one connection, and what we computed from all readings during its present op.
 */
struct cw_connection_sample {
	struct cw_record_connection now;
	/* When we first read this op, and when we first read the present counts. */
	int64_t first_ns, same_since_ns;
	uint32_t first_done;
	uint64_t first_bytes;
	/* Integral of the number of steps between ready and done, over the time of the readings. */
	uint64_t held_step_ns;
};

struct cw_connection_samples {
	struct cw_connection_sample *v;
	size_t n, n_foreign; /* n_foreign: number of connections with an op of another process */
	/* Parts of ops that `v` lacks: no free slot, unreadable, or impossible. */
	uint64_t lost;
	int64_t taken_ns; /* time of the last reading */
	/* private: memory of the previous reading, and of the record's rows */
	struct cw_connection_sample *spare;
	struct cw_record_connection *rows;
};

/*
 * Reads all connections of the record. Returns 0 or -errno. After an error the samples of the
 * earlier reading stay.
 */
int cw_connection_samples_take(struct cw_connection_samples *s, const struct cw_record *record,
			       int64_t now_ns);
/* Forgets all readings. The memory stays for later readings. */
void cw_connection_samples_clear(struct cw_connection_samples *s);
void cw_connection_samples_fini(struct cw_connection_samples *s);

/*
 * Returns the mean time in ns that a step of the op waited between ready and done; 0 = unknown. By
 * Little's law it is the mean number of waiting steps, divided by the rate of steps. If no step has
 * been done, it is the time that all of them have waited so far.
 */
uint64_t cw_connection_sample_held_ns(const struct cw_connection_sample *c);
/* Returns the rate of the op in bytes per second; 0 = unknown. */
uint64_t cw_connection_sample_bytes_per_s(const struct cw_connection_sample *c, int64_t taken_ns);
