/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables that map the structs of proto/messages.h to the generated structs. With them, every field
 * of every message goes through the same few checked lines of encode.c. Private to the codec.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

enum cw_field_kind {
	CW_FIELD_UINT,
	CW_FIELD_INT,
	CW_FIELD_STRING,  /* const char * */
	CW_FIELD_MESSAGE, /* pointer to one struct, NULL = absent */
	CW_FIELD_LIST,    /* array of structs */
	CW_FIELD_STRINGS, /* array of const char * */
	CW_FIELD_U64S,    /* array of uint64_t */
	CW_FIELD_JOB_KEY, /* struct cw_job_key; all zero = absent */
};

enum { /* cw_field.flags */
       /* String: the encoder refuses NULL. Without this flag the encoder sends NULL as "". */
       CW_FIELD_REQUIRED = 1,
       /*
	* Number: a number above max is a value of a later version, and the decoder stores 0
	* instead.
	*/
       CW_FIELD_KNOWN_ONLY = 2,
       CW_FIELD_AGE = 4, /* number: an age, which the decoder clamps */
};

struct cw_field {
	uint8_t kind; /* enum cw_field_kind */
	uint8_t flags;
	/* Size of a number in our struct, and in the generated struct. */
	uint8_t c_bytes, pb_bytes;
	uint16_t c_offset, pb_offset;
	/*
	 * Offset of the array's length, which is uint32_t in our struct and size_t in the generated
	 * one.
	 */
	uint16_t c_n_offset, pb_n_offset;
	/* Limit of an array's elements, or the largest number that this version knows. */
	uint32_t max;
	const struct cw_map *sub;
};

struct cw_map {
	const ProtobufCMessageDescriptor *pb;
	uint16_t c_bytes;
	uint16_t n_fields;
	const struct cw_field *fields;
};

struct cw_body {
	const char *name;
	uint32_t number; /* number in the envelope's oneof */
	const struct cw_map *map;
};

/* The maps by enum cw_message_type. CW_MSG_NONE has no map. */
extern const struct cw_body cw_bodies[CW_MSG__MAX];

/* Stores the low bytes of v. In two's complement they are right for signed numbers, too. */
static inline void cw_field_store(void *p, size_t bytes, uint64_t v)
{
	switch (bytes) {
	case 1:
		*(uint8_t *)p = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)p = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)p = (uint32_t)v;
		break;
	default:
		*(uint64_t *)p = v;
		break;
	}
}
