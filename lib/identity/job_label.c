/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/job_label.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "model/signature.h"
#include "record/pod.h"

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
	struct cw_pod pod;
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
	pod = cw_record_pod(header);
	(void)snprintf(buf, CW_JOB_LABEL_BYTES, "comm:%s%s0x%016" PRIx64, pod.ns,
		       pod.ns[0] ? "/" : "", comm_id); /* fits */
	return true;
}

/*
 * Domain separation: no other hash of ours begins with these bytes, so no other hash can equal a
 * key.
 */
#define KEY_DOMAIN "collwatch job 1"

static uint8_t *put(uint8_t *to, const void *part, size_t len)
{
	for (unsigned i = 0; i < 4; i++)
		*to++ = (uint8_t)(len >> (24 - 8 * i));
	memcpy(to, part, len);
	return to + len;
}

int cw_job_key_make(uint32_t uid, const char *label, struct cw_job_key *ret)
{
	const uint8_t be_uid[4] = { (uint8_t)(uid >> 24), (uint8_t)(uid >> 16), (uint8_t)(uid >> 8),
				    (uint8_t)uid };
	uint8_t text[sizeof(KEY_DOMAIN) + sizeof(be_uid) + CW_JOB_LABEL_BYTES + 3 * 4], *end = text;
	uint8_t digest[EVP_MAX_MD_SIZE];
	size_t len = strnlen(label, CW_JOB_LABEL_BYTES);

	if (len == CW_JOB_LABEL_BYTES)
		return -EINVAL;
	end = put(end, KEY_DOMAIN, strlen(KEY_DOMAIN));
	end = put(end, be_uid, sizeof(be_uid));
	end = put(end, label, len);
	if (EVP_Digest(text, (size_t)(end - text), digest, NULL, EVP_sha256(), NULL) != 1)
		return -ENOMEM; /* -ENOMEM is the only possible error */
	memcpy(ret->bytes, digest, sizeof(ret->bytes));
	return 0;
}

/*
 * An attacker can construct collisions of this hash. identity/job_label.h says which uses are safe.
 */
uint64_t cw_job_hash(const char *label, uid_t uid)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, uid);

	for (const char *p = label; *p; p++)
		h = cw_hash_step(h, (unsigned char)*p);
	return h ? h : 1;
}
