/* SPDX-License-Identifier: Apache-2.0 */
/* The binary layout of a baseline's units, except for rows (baseline_file.h). */
#pragma once

#include <stdint.h>

#include "numerics/collect/baseline_file.h"
#include "numerics/compare/baseline_row.h"

/* "CWBASEL1" as a little-endian number. A file in another byte order has another number. */
#define BASELINE_MAGIC UINT64_C(0x314c455341425743)
#define BASELINE_VERSION 1u

enum baseline_unit {
	BASELINE_ROW = CW_BASELINE_UNIT_ROW,
	BASELINE_COMM = 2,
	BASELINE_TEXT = 3,
	BASELINE_END = 4,
	BASELINE_DENIED = 5,
};

#define BASELINE_TEXT_BYTES 60u

struct baseline_head_unit {
	uint64_t magic;
	uint32_t version, unit_bytes;
	int32_t rank, world_size;
	uint32_t pid, part;
	uint64_t created_wall_ns;
	uint64_t reserved[3];
};

struct baseline_comm_unit {
	uint8_t unit, reserved0[3];
	uint32_t index;
	uint64_t id;
	uint32_t nranks;
	int32_t comm_rank;
	char name[CW_BASELINE_NAME];
	uint64_t reserved;
};

/* A piece of a text. The pieces of one text are adjacent. For denied names, index is 0. */
struct baseline_text_unit {
	uint8_t unit, n_bytes;
	uint16_t index; /* number of the call site, from 1 */
	char text[BASELINE_TEXT_BYTES];
};

struct baseline_end_unit {
	uint8_t unit, reserved[7];
	uint64_t counters[CW_BASELINE_COUNTERS];
};

_Static_assert(sizeof(struct baseline_head_unit) == 64, "unit");
_Static_assert(sizeof(struct baseline_comm_unit) == 64, "unit");
_Static_assert(sizeof(struct baseline_text_unit) == 64, "unit");
_Static_assert(sizeof(struct baseline_end_unit) == 64, "unit");
