/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates for the connections between daemons. They replace the single key that all daemons
 * share. Each node has its own private key and its own certificate, signed by the cluster's
 * authority. The certificate names the node (subjectAltName, DNS:<node_name>). Both sides of a
 * connection show their certificate, so a node cannot pose as another. If a node is compromised, we
 * can exclude it by renewing the certificates of the others.
 *
 * We check the files when the daemon starts, and report each error with its remedy. Otherwise the
 * user would see an error only hours later, as a failed handshake. The check reads files; otherwise
 * nothing here blocks.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

#include "common/err.h"

struct cw_peer_cert_files {
	const char *ca, *cert, *private_key; /* paths of PEM files */
};

/*
 * Makes both contexts show our certificate, and request and verify the other side's certificate.
 * Returns 0 or -errno, with the reason and the remedy in err. -EACCES: other users can read the
 * private key. -EKEYREJECTED: the files do not match each other or this node. -EINVAL: a file is
 * not PEM. Other values come from reading the files.
 */
int cw_peer_cert_use(SSL_CTX *const ctx[2], const struct cw_peer_cert_files *of,
		     const char *node_name, struct cw_err *err);

/*
 * Stores in *ret the days until the certificate expires. Returns 0, or -errno if we cannot read the
 * file.
 */
int cw_peer_cert_days_left(const char *path, int *ret);
/*
 * Returns whether our authority signed the other side's certificate. Call this after the handshake.
 */
bool cw_peer_cert_is_good(SSL *ssl);
/*
 * Returns whether our authority signed the other side's certificate and the certificate names
 * `node`. A wildcard in the certificate matches no name.
 */
bool cw_peer_cert_names(SSL *ssl, const char *node);
