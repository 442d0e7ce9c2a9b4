/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the certificate files at the start, so that no handshake fails later because of them. The
 * files must have safe modes and valid dates. The private key must belong to the certificate. The
 * authority must have signed the certificate, and the certificate must name this node. Each error
 * message names the file and the remedy.
 */
#include "transport/peer_cert.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/openssl_compat.h"
#include "transport/secret_file.h"
#include "transport/secret_heap.h"

/* The daemon warns at each start if the certificate expires in fewer days than this. */
#define WARN_DAYS 30
/* Accept only names that the certificate lists in full as subjectAltName. */
#define HOST_FLAGS (X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

static void x509_freep(X509 **cert)
{
	X509_free(*cert);
}

static void pkey_freep(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}

static void store_ctx_freep(X509_STORE_CTX **ctx)
{
	X509_STORE_CTX_free(*ctx);
}

static int refuse(struct cw_err *err, int code, const char *path, const char *what)
{
	ERR_clear_error();
	return cw_err_set(err, code, "%s: %s", path, what);
}

static FILE *open_file(const char *path, bool is_secret, int *ret, struct cw_err *err)
{
	/* Use O_NONBLOCK, because open() would block on a FIFO. */
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	FILE *f;

	if (fd < 0 || fstat(fd, &st) < 0) {
		*ret = cw_err_set(err, errno, "%s: %m", path);
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		*ret = cw_err_set(err, EINVAL, "%s is not a regular file", path);
		return NULL;
	}
	*ret = is_secret ? cw_secret_file_check(fd, path, CW_SECRET_FILE_KEY, err) : 0;
	if (*ret < 0)
		return NULL;
	f = fdopen(fd, "r");
	if (!f)
		*ret = cw_err_set(err, errno, "%s: %m", path);
	else
		(void)steal_fd(&fd);
	return f;
}

/* Checks a file that OpenSSL itself will open. OpenSSL would block on a FIFO. */
static int check_file(const char *path, struct cw_err *err)
{
	int r;
	FILE *f = open_file(path, false, &r, err);

	if (f)
		(void)fclose(f); /* cannot fail: we wrote nothing */
	return f ? 0 : r;
}

static int load_cert(const char *path, X509 **ret, struct cw_err *err)
{
	int r;
	FILE *f = open_file(path, false, &r, err);

	if (!f)
		return r;
	*ret = PEM_read_X509(f, NULL, NULL, NULL);
	(void)fclose(f);
	return *ret ? 0 : refuse(err, EINVAL, path, "no certificate in PEM form");
}

/*
 * Gives OpenSSL no pass phrase, because a daemon has no user who could type it. OpenSSL then
 * refuses a private key that needs one.
 */
static int no_password(char *buf, int size, int is_writing, void *user)
{
	return -1;
}

static int load_key(const char *path, EVP_PKEY **ret, struct cw_err *err)
{
	int r;
	FILE *f = open_file(path, true, &r, err);

	if (!f)
		return r;
	/* Unbuffered, so that the heap gets no copy of the key. */
	(void)setvbuf(f, NULL, _IONBF, 0);
	*ret = PEM_read_PrivateKey(f, NULL, no_password, NULL);
	(void)fclose(f);
	if (!*ret)
		return refuse(err, EINVAL, path,
			      "no private key in PEM form, or one with a pass phrase");
	if (EVP_PKEY_get_base_id(*ret) != EVP_PKEY_EC &&
	    EVP_PKEY_get_base_id(*ret) != EVP_PKEY_ED25519)
		return refuse(err, EKEYREJECTED, path,
			      "not a key on an elliptic curve (EC or Ed25519): others cannot be "
			      "kept from child processes");
	return 0;
}

/* ---- do the files match? ---- */

static int check_dates(X509 *cert, const char *path, struct cw_err *err)
{
	int days = 0, seconds = 0;

	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		return refuse(err, EKEYREJECTED, path,
			      "not valid yet: is the clock of this machine right?");
	if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		return refuse(err, EKEYREJECTED, path,
			      "expired: make a new one (collwatch init-cluster --certificates "
			      "--ca)");
	if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) && days < WARN_DAYS)
		log_warn("%s expires in %d day%s: make a new one (collwatch init-cluster "
			 "--certificates --ca)",
			 path, days, days == 1 ? "" : "s");
	return 0;
}

static int check_signed(SSL_CTX *ctx, X509 *cert, const struct cw_peer_cert_files *files,
			struct cw_err *err)
{
	_cleanup_(store_ctx_freep) X509_STORE_CTX *check = X509_STORE_CTX_new();
	char text[256];

	if (!check || !X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(ctx), cert, NULL))
		return refuse(err, ENOMEM, files->cert, "out of memory");
	if (X509_verify_cert(check) == 1)
		return 0;
	(void)snprintf(text, sizeof(text), "does not hold against %s: %s", files->ca,
		       X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
	return refuse(err, EKEYREJECTED, files->cert, text);
}

static bool names(X509 *cert, const char *node)
{
	return X509_check_host(cert, node, strlen(node), HOST_FLAGS, NULL) == 1;
}

static int check(SSL_CTX *ctx, X509 *cert, const struct cw_peer_cert_files *files,
		 const char *node_name, struct cw_err *err)
{
	char text[256];
	int r = check_dates(cert, files->cert, err);

	if (r == 0)
		r = check_signed(ctx, cert, files, err);
	if (r < 0)
		return r;
	if (names(cert, node_name))
		return 0;
	(void)snprintf(text, sizeof(text),
		       "not for this node: it must name DNS:%s (node_name) as subjectAltName",
		       node_name);
	return refuse(err, EKEYREJECTED, files->cert, text);
}

static int use(SSL_CTX *ctx, EVP_PKEY *key, const struct cw_peer_cert_files *files,
	       struct cw_err *err)
{
	/*
	 * Load the whole chain, because the file may also contain certificates of intermediate
	 * authorities.
	 */
	if (SSL_CTX_use_certificate_chain_file(ctx, files->cert) != 1 ||
	    SSL_CTX_use_PrivateKey(ctx, key) != 1)
		return refuse(err, EKEYREJECTED, files->cert, "cannot be used for TLS");
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

int cw_peer_cert_use(SSL_CTX *const ctx[2], const struct cw_peer_cert_files *of,
		     const char *node_name, struct cw_err *err)
{
	char where[3][CW_SECRET_FILE_PATH_BYTES];
	const struct cw_peer_cert_files here = {
		.cert = cw_secret_file_where(of->cert, where[0]),
		.private_key = cw_secret_file_where(of->private_key, where[1]),
		.ca = cw_secret_file_where(of->ca, where[2]),
	};
	const struct cw_peer_cert_files *files = &here;
	_cleanup_(pkey_freep) EVP_PKEY *key = NULL;
	_cleanup_(x509_freep) X509 *cert = NULL;
	int r = cw_secret_heap_open(err);

	if (r == 0)
		r = load_cert(files->cert, &cert, err);
	if (r == 0)
		r = load_key(files->private_key, &key, err);
	if (r == 0)
		r = check_file(files->ca, err);
	if (r < 0)
		return r;
	if (X509_check_private_key(cert, key) != 1)
		return refuse(err, EKEYREJECTED, files->private_key,
			      "not the key of the certificate in peer_cert_file");
	if (SSL_CTX_load_verify_file(ctx[0], files->ca) != 1 ||
	    SSL_CTX_load_verify_file(ctx[1], files->ca) != 1)
		return refuse(err, EINVAL, files->ca, "no certificates in PEM form");
	r = check(ctx[0], cert, files, node_name, err);
	if (r == 0)
		r = use(ctx[0], key, files, err);
	return r == 0 ? use(ctx[1], key, files, err) : r;
}

int cw_peer_cert_days_left(const char *path, int *ret)
{
	_cleanup_(x509_freep) X509 *cert = NULL;
	int days = 0, seconds = 0, r = load_cert(path, &cert, NULL);

	if (r < 0)
		return r;
	if (!ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)))
		return -EINVAL;
	*ret = days;
	return 0;
}

bool cw_peer_cert_is_good(SSL *ssl)
{
	return SSL_get0_peer_certificate(ssl) && SSL_get_verify_result(ssl) == X509_V_OK;
}

bool cw_peer_cert_names(SSL *ssl, const char *node)
{
	return cw_peer_cert_is_good(ssl) && names(SSL_get0_peer_certificate(ssl), node);
}
