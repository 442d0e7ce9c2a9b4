/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates for the peers, instead of one key for all. Each node has its own private key and a
 * certificate that names it (subjectAltName, DNS:<node_name>), signed by the cluster's authority.
 * Both sides of a connection show their certificate. A node therefore cannot pose as another, and
 * we can exclude a compromised node by renewing the others' certificates.
 *
 * We check everything when the daemon starts, and report the reason and the remedy. Otherwise a
 * mistake would appear hours later as a failed handshake. Reads files; else does not block.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

#include "common/err.h"

struct cw_peer_cert_files {
	const char *ca, *cert, *private_key; /* PEM */
};

/*
 * Sets up both contexts to show our certificate, and to request and verify the other side's.
 * -EACCES: other users can read the private key; -EKEYREJECTED: the files do not match each other
 * or this node; -EINVAL: not PEM; or the errno of reading. err says which and what to do.
 */
int cw_peer_cert_use(SSL_CTX *const ctx[2], const struct cw_peer_cert_files *of,
		     const char *node_name, struct cw_err *err);

/* Days until the certificate expires. 0, or -errno: we cannot read it. */
int cw_peer_cert_days_left(const char *path, int *ret);
/* After the handshake: true if the other side has a certificate of our authority. */
bool cw_peer_cert_is_good(SSL *ssl);
/* The same, and the other side's certificate also names `node`. No wildcards. */
bool cw_peer_cert_names(SSL *ssl, const char *node);
