/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There are two OpenSSL contexts, one for dialing and one for accepting. With a key, both contexts
 * get the cluster's single PSK from a callback, and trust no authority. OpenSSL then marks the
 * session as "resumed", which proves that the session came from the key. With certificates, each
 * side verifies the other's certificate. We map OpenSSL's errors to the few reasons that a user can
 * act on.
 */
#include "transport/tls.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/openssl_compat.h"
#include "transport/peer_cert.h"
#include "transport/peer_key_file.h"

/*
 * The only suite that we offer. RFC 8446, 4.2.11 assigns this suite's hash to an external key that
 * states no hash.
 */
#define SUITE "TLS_AES_128_GCM_SHA256"
static const unsigned char suite_id[] = { 0x13, 0x01 };
static const unsigned char identity[] = "collwatch";
#define IDENTITY_LEN (sizeof(identity) - 1)

struct cw_tls {
	SSL_CTX *dial, *accept;
	struct cw_peer_key *key; /* NULL = we use certificates */
};

/* ---- the key ---- */

static SSL_SESSION *make_session(SSL *ssl)
{
	const struct cw_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, suite_id);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && suite &&
	    SSL_SESSION_set1_master_key(session, tls->key->bytes, tls->key->len) &&
	    SSL_SESSION_set_cipher(session, suite) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int on_dial(SSL *ssl, const EVP_MD *md, const unsigned char **ret_id, size_t *ret_id_len,
		   SSL_SESSION **ret)
{
	*ret = make_session(ssl);
	*ret_id = identity;
	*ret_id_len = IDENTITY_LEN;
	return *ret != NULL;
}

static int on_accept(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **ret)
{
	*ret = NULL;
	/*
	 * Give no session to a client with another identity. There are no certificates either, so
	 * the handshake then fails.
	 */
	if (id_len != IDENTITY_LEN || memcmp(id, identity, IDENTITY_LEN) != 0)
		return 1;
	*ret = make_session(ssl);
	return *ret != NULL;
}

/* ---- contexts ---- */

static SSL_CTX *make_context(struct cw_tls *tls, const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		return NULL;
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_num_tickets(ctx, 0)) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
					       SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_clear_options(ctx, SSL_OP_ALLOW_NO_DHE_KEX);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_max_early_data(ctx, 0);
	SSL_CTX_set_app_data(ctx, tls);
	return ctx;
}

static int out_of_memory(struct cw_err *err)
{
	ERR_clear_error();
	return cw_err_set(err, ENOMEM, "TLS 1.3 with %s cannot be set up", SUITE);
}

static int use_key(struct cw_tls *tls, const char *file, struct cw_err *err)
{
	int r = cw_peer_key_load(file, &tls->key, err);

	if (r < 0)
		return r;
	if (!SSL_CTX_set_ciphersuites(tls->dial, SUITE) ||
	    !SSL_CTX_set_ciphersuites(tls->accept, SUITE))
		return out_of_memory(err);
	/*
	 * Trust no authority. If an impostor shows a certificate instead of the key, the handshake
	 * fails.
	 */
	SSL_CTX_set_verify(tls->dial, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_psk_use_session_callback(tls->dial, on_dial);
	SSL_CTX_set_psk_find_session_callback(tls->accept, on_accept);
	return 0;
}

static int use_certificates(struct cw_tls *tls, const struct cw_tls_files *files,
			    const char *node_name, struct cw_err *err)
{
	struct cw_peer_cert_files cert = { files->ca, files->cert, files->private_key };
	SSL_CTX *const both[] = { tls->dial, tls->accept };

	return cw_peer_cert_use(both, &cert, node_name, err);
}

int cw_tls_new(const struct cw_tls_files *files, const char *node_name, struct cw_tls **ret,
	       struct cw_err *err)
{
	struct cw_tls *tls = calloc(1, sizeof(*tls));
	int r;

	if (!tls)
		return cw_err_set(err, ENOMEM, "out of memory");
	tls->dial = make_context(tls, TLS_client_method());
	tls->accept = make_context(tls, TLS_server_method());
	if (!tls->dial || !tls->accept)
		r = out_of_memory(err);
	else if (files->key)
		r = use_key(tls, files->key, err);
	else
		r = use_certificates(tls, files, node_name, err);
	if (r < 0) {
		cw_tls_free(tls);
		return r;
	}
	*ret = tls;
	return 0;
}

struct cw_tls *cw_tls_free(struct cw_tls *tls)
{
	if (!tls)
		return NULL;
	SSL_CTX_free(tls->dial);
	SSL_CTX_free(tls->accept);
	cw_peer_key_free(tls->key);
	free(tls);
	return NULL;
}

/* ---- connections ---- */

struct bufferevent *cw_tls_bufferevent(struct cw_tls *tls, struct event_base *base, int fd,
				       bool is_dialed)
{
	SSL *ssl = SSL_new(is_dialed ? tls->dial : tls->accept);
	struct bufferevent *bev;

	ERR_clear_error();
	if (!ssl)
		return NULL;
	bev = bufferevent_openssl_socket_new(
		base, fd, ssl, is_dialed ? BUFFEREVENT_SSL_CONNECTING : BUFFEREVENT_SSL_ACCEPTING,
		BEV_OPT_CLOSE_ON_FREE);
	if (!bev) {
		SSL_free(ssl);
		return NULL;
	}
	/*
	 * Accept a connection that ends without TLS's close_notify. Our goodbye message marks the
	 * proper end, and TLS authenticates it.
	 */
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

static bool has_key(SSL *ssl)
{
	const struct cw_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

	return tls->key;
}

bool cw_tls_may_be(struct bufferevent *bev, const char *node)
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);

	return has_key(ssl) || cw_peer_cert_names(ssl, node);
}

bool cw_tls_is_authentic(struct bufferevent *bev)
{
	static const unsigned char nothing[CW_PEER_KEY_MIN_BYTES];
	SSL *ssl = bufferevent_openssl_get_ssl(bev);
	SSL_SESSION *session = SSL_get_session(ssl);

	if (!has_key(ssl))
		return SSL_version(ssl) == TLS1_3_VERSION && cw_peer_cert_is_good(ssl);
	/* OpenSSL calls a session "reused" if it came from our PSK callbacks. */
	if (!session || !SSL_session_reused(ssl) || SSL_version(ssl) != TLS1_3_VERSION)
		return false;
	/*
	 * Overwrite the key in the session, because children inherit this memory. Only session
	 * tickets would still need the key.
	 */
	return SSL_SESSION_set1_master_key(session, nothing, sizeof(nothing)) == 1;
}

static enum cw_tls_failure classify(unsigned long error)
{
	if (ERR_GET_LIB(error) != ERR_LIB_SSL)
		return CW_TLS_LOST;
	switch (ERR_GET_REASON(error)) {
	case SSL_R_BINDER_DOES_NOT_VERIFY:
	/*
	 * A wrong key makes the other side's OpenSSL report illegal_parameter. The RFC names
	 * decrypt_error for this case.
	 */
	case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
		return CW_TLS_KEY_DIFFERS;
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return CW_TLS_NO_KEY;
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
		return CW_TLS_CERTIFICATE;
	case SSL_R_UNEXPECTED_EOF_WHILE_READING:
		return CW_TLS_LOST;
	default:
		return CW_TLS_OTHER;
	}
}

enum cw_tls_failure cw_tls_why(struct bufferevent *bev, char *text, size_t len)
{
	enum cw_tls_failure why = CW_TLS_LOST;
	unsigned long e;

	(void)snprintf(text, len, "connection lost");
	while ((e = bufferevent_get_openssl_error(bev))) {
		const char *reason = ERR_reason_error_string(e);

		if (why != CW_TLS_LOST || classify(e) == CW_TLS_LOST)
			continue;
		why = classify(e);
		if (ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED)
			reason = X509_verify_cert_error_string(
				SSL_get_verify_result(bufferevent_openssl_get_ssl(bev)));
		(void)snprintf(text, len, "the TLS handshake failed: %s", reason ? reason : "?");
	}
	return why;
}

void cw_tls_write_last(struct bufferevent *bev, const uint8_t *data, size_t len)
{
	SSL *ssl = bufferevent_openssl_get_ssl(bev);

	/*
	 * Ignore errors. Without TLS, too, a sender does not learn whether its last message
	 * arrived.
	 */
	if (len <= INT32_MAX && SSL_write(ssl, data, (int)len) > 0)
		(void)SSL_shutdown(ssl);
	ERR_clear_error();
}
