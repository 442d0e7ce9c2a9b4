/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/vnet/old_version.h"

#include "proto/codec.h"
#include "proto/frame.h"

/* Removes the parts of a message that the previous version does not know, like its codec. */
static void forget(struct cw_message *m)
{
	static const struct cw_job_key none;

	switch (m->type) {
	case CW_MSG_DIGEST:
	case CW_MSG_DIGEST_COPY:
		m->digest.job_key = none;
		m->digest.untracked = 0;
		m->digest.sent_ns = 0;
		break;
	case CW_MSG_RANK_SEARCH:
		m->rank_search.job_key = none;
		break;
	case CW_MSG_MEMBERS:
		m->members.job_key = none;
		m->members.label = "";
		m->members.standing = 0;
		break;
	case CW_MSG_WINDOW_REQUEST:
		m->window_request.job_key = none;
		m->window_request.label = "";
		break;
	case CW_MSG_EVIDENCE_REQUEST:
		m->evidence_request.job_key = none;
		m->evidence_request.label = "";
		break;
	case CW_MSG_INCIDENT_ANNOUNCE:
		m->incident_announce.job_key = none;
		m->incident_announce.label = "";
		break;
	default:
		break;
	}
}

int network_old_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len)
{
	struct cw_message *m = NULL;
	int r = cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &m);

	if (r < 0)
		return r;
	forget(m);
	r = cw_message_encode(m, ret, ret_len);
	cw_message_free(m);
	return r;
}

void network_old_version_name_job(const struct network_config *config, struct cw_message *m)
{
	const struct network_ranks *ranks = config->ranks;
	uint64_t job_hash = m->type == CW_MSG_MEMBERS             ? m->members.job_hash
			    : m->type == CW_MSG_WINDOW_REQUEST    ? m->window_request.job_hash
			    : m->type == CW_MSG_INCIDENT_ANNOUNCE ? m->incident_announce.job_hash
								  : 0;
	const char *label;
	uint32_t uid;

	if (!job_hash || !ranks || !ranks->job_of_hash ||
	    !ranks->job_of_hash(config->user, job_hash, &uid, &label))
		return;
	if (m->type == CW_MSG_MEMBERS) {
		m->members.label = label;
		m->members.uid = uid;
	} else if (m->type == CW_MSG_WINDOW_REQUEST) {
		m->window_request.label = label;
		m->window_request.uid = uid;
	} else {
		m->incident_announce.label = label;
		m->incident_announce.uid = uid;
	}
}
