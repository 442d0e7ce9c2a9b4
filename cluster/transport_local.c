/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/transport_local.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "cluster/transport.h"

int cw_local_push(struct cw_local_queue *q, uint8_t *frame, size_t len)
{
	struct cw_local_frame *f;

	if (q->bytes + len > CW_TRANSPORT_MAX_LOCAL_BYTES)
		return -ENOBUFS;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->frame = frame;
	f->len = len;
	q->bytes += len;
	DL_APPEND(q->frames, f);
	return 0;
}

struct cw_local_frame *cw_local_pop(struct cw_local_queue *q)
{
	struct cw_local_frame *f = q->frames;

	if (!f)
		return NULL;
	DL_DELETE(q->frames, f);
	q->bytes -= f->len;
	return f;
}

void cw_local_frame_free(struct cw_local_frame *f)
{
	free(f->frame);
	free(f);
}

void cw_local_fini(struct cw_local_queue *q)
{
	struct cw_local_frame *f;

	while ((f = cw_local_pop(q)))
		cw_local_frame_free(f);
}
