/* SPDX-License-Identifier: Apache-2.0 */
#include "model/peer.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *words;
} refusals[CW_PEER_REFUSAL__MAX] = {
	[CW_PEER_KEY_DIFFERS] = { "key_differs", "key differs" },
	[CW_PEER_NO_KEY] = { "no_key", "no key there" },
	[CW_PEER_CERTIFICATE] = { "certificate", "certificate refused" },
	[CW_PEER_TLS] = { "tls", "TLS failed" },
};

const char *cw_peer_refusal_name(unsigned refusal)
{
	return refusal < CW_PEER_REFUSAL__MAX ? refusals[refusal].name : NULL;
}

const char *cw_peer_refusal_words(unsigned refusal)
{
	return refusal < CW_PEER_REFUSAL__MAX ? refusals[refusal].words : NULL;
}

int cw_peer_refusal_from_name(const char *name)
{
	for (int i = CW_PEER_NOT_REFUSED + 1; i < CW_PEER_REFUSAL__MAX; i++)
		if (strcmp(refusals[i].name, name) == 0)
			return i;
	return -1;
}
