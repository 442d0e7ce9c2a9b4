/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a daemon to itself: a bounded queue of encoded frames. Loop thread only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cw_local_frame {
	struct cw_local_frame *next, *prev;
	size_t len;
	uint8_t *frame; /* with its header */
};

struct cw_local_queue {
	struct cw_local_frame *frames;
	size_t bytes;
};

/* Takes the frame on success. -ENOBUFS above CW_TRANSPORT_MAX_LOCAL_BYTES, -ENOMEM. */
int cw_local_push(struct cw_local_queue *q, uint8_t *frame, size_t len);
/* Oldest frame (cw_local_frame_free()), NULL = empty. */
struct cw_local_frame *cw_local_pop(struct cw_local_queue *q);
void cw_local_frame_free(struct cw_local_frame *f);
void cw_local_fini(struct cw_local_queue *q);
