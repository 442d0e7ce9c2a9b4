/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates of the peers, instead of one key for all: each node has its own private key and a
 * certificate that names it (subjectAltName, DNS:<node_name>), signed by the cluster's authority,
 * and both sides of a connection show theirs. So a node cannot pose as another, and one that is
 * lost can be left out by renewing the others.
 *
 * All of it is checked when the daemon starts, with the reason and what to do about it, so that
 * mistakes do not show as failing handshakes hours later. Reads files; else does not block.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

#include "common/err.h"

struct cw_peer_cert_files {
	const char *ca, *cert, *private_key; /* PEM */
};

/*
 * Sets both contexts up to show our certificate, and to ask for and check the other side's.
 * -EACCES: the private key is open to others; -EKEYREJECTED: the files do not go together, or are
 * not for this node; -EINVAL: not PEM; or the errno of reading. err says which and what to do.
 */
int cw_peer_cert_use(SSL_CTX *const ctx[2], const struct cw_peer_cert_files *of,
		     const char *node_name, struct cw_err *err);

/* Until it expires. 0, or -errno: it cannot be read. */
int cw_peer_cert_days_left(const char *path, int *ret);
/* After the handshake: the other side has a certificate of our authority. */
bool cw_peer_cert_is_good(SSL *ssl);
/* And does the other side's certificate name this node? No wildcards. */
bool cw_peer_cert_names(SSL *ssl, const char *node);
