/* SPDX-License-Identifier: Apache-2.0 */
#include "leader/incident/incident_id.h"

#include <endian.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

/*
 * Every hash begins with this text. It makes these hashes differ from all other kinds of hashes,
 * and from those of a later version.
 */
#define DOMAIN "collwatch incident 1"

static int add(EVP_MD_CTX *ctx, const void *field, size_t len)
{
	uint64_t prefix = htobe64(len);

	return EVP_DigestUpdate(ctx, &prefix, sizeof(prefix)) == 1 &&
			       EVP_DigestUpdate(ctx, field, len) == 1
		       ? 0
		       : -ENOMEM;
}

static int add_number(EVP_MD_CTX *ctx, uint64_t n)
{
	n = htobe64(n);
	return add(ctx, &n, sizeof(n));
}

static int add_all(EVP_MD_CTX *ctx, const struct cw_incident_matter *m)
{
	const uint64_t numbers[] = {
		m->uid,        m->key.comm_id, m->key.instance, m->key.seq,     m->key.is_waited,
		m->key.has_op, m->key.op_kind, m->key.p2p_seq,  m->start_ticks,
	};
	int r = add(ctx, DOMAIN, strlen(DOMAIN));

	if (r == 0)
		r = add(ctx, m->job, strlen(m->job));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && r == 0; i++)
		r = add_number(ctx, numbers[i]);
	return r;
}

int cw_incident_id_make(const struct cw_incident_matter *m, char ret[CW_INCIDENT_ID_LEN])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	unsigned char hash[EVP_MAX_MD_SIZE];
	int r = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;

	if (r == 0)
		r = add_all(ctx, m);
	if (r == 0 && EVP_DigestFinal_ex(ctx, hash, NULL) != 1)
		r = -ENOMEM;
	for (size_t i = 0; i < (CW_INCIDENT_ID_LEN - 1) / 2 && r == 0; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", hash[i]);
	EVP_MD_CTX_free(ctx);
	return r;
}

bool cw_incident_id_is_valid(const char *id)
{
	size_t len = strspn(id, "0123456789abcdef-");

	return len > 0 && len <= CW_INCIDENT_ID_MAX && id[len] == '\0' && id[0] != '-';
}
