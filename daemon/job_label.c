/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/job_label.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/signature.h"

static uint64_t first_root_comm(const struct cw_rec_header *header,
				const struct cw_record_comm *comms, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (comms[i].entry.parent_id == 0 && comms[i].entry.comm_id != 0)
			return comms[i].entry.comm_id;
	return header->host_call_kind ? header->host_call_comm_id : 0;
}

bool cw_job_label(const struct cw_rec_header *header, const struct cw_record_comm *comms, size_t n,
		  char *buf)
{
	uint64_t comm_id;

	if (header->job_label[0]) {
		(void)snprintf(buf, CW_JOB_LABEL_BYTES, "%s", header->job_label); /* fits */
		return true;
	}
	if (header->master[0]) {
		(void)snprintf(buf, CW_JOB_LABEL_BYTES, "master:%s", header->master); /* fits */
		return true;
	}
	comm_id = first_root_comm(header, comms, n);
	if (!comm_id)
		return false;
	(void)snprintf(buf, CW_JOB_LABEL_BYTES, "comm:0x%016" PRIx64, comm_id); /* fits */
	return true;
}

uint64_t cw_job_route(const char *label, uid_t uid)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, uid);

	for (const char *p = label; *p; p++)
		h = cw_hash_step(h, (unsigned char)*p);
	return h ? h : 1;
}
