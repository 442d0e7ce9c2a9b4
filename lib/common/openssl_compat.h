/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines names of OpenSSL 3.0 for OpenSSL 1.1.1. Version 1.1.1 has all features that we need, too
 * (TLS 1.3 with our own keys).
 */
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L

#define X509_VERSION_3 2
/*
 * The number of this reason in OpenSSL 3.0. OpenSSL 1.1.1 never returns it, and reports
 * SSL_ERROR_SYSCALL without a reason instead.
 */
#define SSL_R_UNEXPECTED_EOF_WHILE_READING 294
#define EVP_PKEY_get_base_id EVP_PKEY_base_id

static inline int SSL_CTX_load_verify_file(SSL_CTX *ctx, const char *path)
{
	return SSL_CTX_load_verify_locations(ctx, path, NULL);
}

/* Returns the peer's certificate, borrowed from the session of ssl. */
static inline X509 *SSL_get0_peer_certificate(const SSL *ssl)
{
	X509 *cert = SSL_get_peer_certificate(ssl);

	X509_free(cert);
	return cert;
}

static inline EVP_PKEY *EVP_EC_gen(const char *curve)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
	int nid = EC_curve_nist2nid(curve);
	EVP_PKEY *key = NULL;

	if (ctx && nid != NID_undef && EVP_PKEY_keygen_init(ctx) == 1 &&
	    EVP_PKEY_CTX_set_ec_paramgen_curve_nid(ctx, nid) == 1 &&
	    EVP_PKEY_CTX_set_ec_param_enc(ctx, OPENSSL_EC_NAMED_CURVE) == 1)
		(void)EVP_PKEY_keygen(ctx, &key); /* key stays NULL on failure */
	EVP_PKEY_CTX_free(ctx);
	return key;
}

#endif
