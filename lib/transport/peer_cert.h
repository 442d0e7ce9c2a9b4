/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates for the peers, instead of one key for all. Each node has its own private key and a
 * certificate that names it (subjectAltName, DNS:<node_name>), signed by the cluster's authority.
 * Both sides of a connection show their certificate. A node therefore cannot pose as another, and
 * we can exclude a compromised node by renewing the others' certificates.
 *
 * We check everything when the daemon starts, and report the reason and the remedy. Otherwise a
 * mistake would appear hours later as a failed handshake. Reads files; otherwise it does not block.
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
 * Returns 0 or -errno. -EACCES: other users can read the private key. -EKEYREJECTED: the files do
 * not match each other or this node. -EINVAL: not PEM. Other errors are those of reading. err has
 * the reason and the remedy.
 */
int cw_peer_cert_use(SSL_CTX *const ctx[2], const struct cw_peer_cert_files *of,
		     const char *node_name, struct cw_err *err);

/*
 * Stores the days until the certificate expires. Returns 0, or -errno if we cannot read the file.
 */
int cw_peer_cert_days_left(const char *path, int *ret);
/*
 * Call this after the handshake. Returns true if the other side has a certificate of our authority.
 */
bool cw_peer_cert_is_good(SSL *ssl);
/*
 * Like cw_peer_cert_is_good(), but the other side's certificate must also name `node`. Wildcards do
 * not count.
 */
bool cw_peer_cert_names(SSL *ssl, const char *node);
