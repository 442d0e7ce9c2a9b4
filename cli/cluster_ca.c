/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster_ca.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/openssl_compat.h"

#define CA_CERT "ca.crt"
#define CA_KEY "ca.key"
/*
 * RFC 5280, 4.1.2.2 demands at most 20 bytes and a positive number. With 127 random bits, serials
 * never collide.
 */
#define SERIAL_BYTES 16
/* Certificates begin an hour in the past, because the nodes' clocks may differ. */
#define BACKDATE_S (-3600L)

struct cw_cluster_ca {
	X509 *cert;
	EVP_PKEY *key;
};

struct extension {
	int nid;
	const char *value;
};

static int complain(const char *dir, const char *name)
{
	int e = errno;

	fprintf(stderr, "collwatch: %s/%s: %s%s\n", dir, name, strerror(e),
		e == EEXIST ? "; no file is overwritten: give a new directory" : "");
	return -1;
}

static void complain_openssl(const char *what)
{
	fprintf(stderr, "collwatch: %s: OpenSSL failed\n", what);
}

/* ---- files ---- */

static FILE *create(const char *dir, int dir_fd, const char *name, mode_t mode)
{
	_cleanup_(closep) int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	FILE *f = fd >= 0 && fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;

	if (!f)
		(void)complain(dir, name);
	else
		(void)steal_fd(&fd);
	return f;
}

/* Closes f. f NULL: create() failed and has printed the error. Returns 0 or -1. */
static int finish(FILE *f, bool is_written, const char *dir, const char *name)
{
	if (!f)
		return -1;
	is_written = is_written && fflush(f) == 0 && fsync(fileno(f)) == 0;
	if (fclose(f) == 0 && is_written)
		return 0;
	return complain(dir, name);
}

static int write_cert(const char *dir, int dir_fd, const char *name, X509 *cert)
{
	FILE *f = create(dir, dir_fd, name, 0644);

	return finish(f, f && PEM_write_X509(f, cert) == 1, dir, name);
}

static int write_key(const char *dir, int dir_fd, const char *name, EVP_PKEY *key)
{
	FILE *f = create(dir, dir_fd, name, 0600);

	return finish(f, f && PEM_write_PKCS8PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) == 1,
		      dir, name);
}

/* ---- certificates ---- */

static bool set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *number;
	bool ok;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] &= 0x7f;
	number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
	BN_free(number);
	return ok;
}

static bool set_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC,
					  (const unsigned char *)"collwatch", -1, -1, 0) == 1 &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)text,
					  -1, -1, 0) == 1;
}

static bool add_extension(X509 *cert, X509 *issuer, const struct extension *e)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;
	bool ok;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, e->nid, e->value);
	ok = extension && X509_add_ext(cert, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return ok;
}

/*
 * Makes a certificate that ca signs; ca NULL: the certificate signs itself. `extensions` end with
 * nid 0. Returns NULL if it failed.
 */
static X509 *make_cert(const struct cw_cluster_ca *ca, EVP_PKEY *key, const char *name, int days,
		       const struct extension *extensions)
{
	X509 *cert = X509_new(), *issuer = ca ? ca->cert : cert;
	bool ok;

	ok = cert && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
	     set_name(X509_get_subject_name(cert), name) &&
	     X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
	     X509_gmtime_adj(X509_getm_notBefore(cert), BACKDATE_S) &&
	     X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, NULL) &&
	     X509_set_pubkey(cert, key) == 1;
	for (const struct extension *e = extensions; ok && e->nid; e++)
		ok = add_extension(cert, issuer, e);
	if (ok && X509_sign(cert, ca ? ca->key : key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	complain_openssl("cannot make a certificate");
	return NULL;
}

static EVP_PKEY *make_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	if (!key)
		complain_openssl("cannot make a key");
	return key;
}

/* ---- the authority ---- */

struct cw_cluster_ca *cw_cluster_ca_free(struct cw_cluster_ca *ca)
{
	if (!ca)
		return NULL;
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	free(ca);
	return NULL;
}

struct cw_cluster_ca *cw_cluster_ca_make(const char *dir, int dir_fd, int days)
{
	static const struct extension extensions[] = {
		{ NID_basic_constraints, "critical,CA:TRUE,pathlen:0" },
		{ NID_key_usage, "critical,keyCertSign,cRLSign" },
		{ NID_subject_key_identifier, "hash" },
		{ 0 },
	};
	struct cw_cluster_ca *ca = calloc(1, sizeof(*ca));

	if (!ca)
		return NULL;
	ca->key = make_key();
	ca->cert = ca->key ? make_cert(NULL, ca->key, "collwatch cluster", days, extensions) : NULL;
	if (ca->cert && write_key(dir, dir_fd, CA_KEY, ca->key) == 0 &&
	    write_cert(dir, dir_fd, CA_CERT, ca->cert) == 0)
		return ca;
	return cw_cluster_ca_free(ca);
}

/*
 * Opens a file for reading. Returns NULL and sets errno if it failed. Does not wait for the other
 * end of a FIFO.
 */
static FILE *open_file(int dir_fd, const char *name)
{
	_cleanup_(closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	FILE *f;

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return NULL;
	}
	f = fdopen(fd, "r");
	if (f)
		(void)steal_fd(&fd);
	return f;
}

struct cw_cluster_ca *cw_cluster_ca_load(const char *dir)
{
	_cleanup_(closep) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cw_cluster_ca *ca = calloc(1, sizeof(*ca));
	FILE *cert = dir_fd < 0 ? NULL : open_file(dir_fd, CA_CERT);
	FILE *key = cert ? open_file(dir_fd, CA_KEY) : NULL;

	if (!cert || !key)
		(void)complain(dir, !cert ? CA_CERT : CA_KEY);
	if (ca && cert && key) {
		ca->cert = PEM_read_X509(cert, NULL, NULL, NULL);
		ca->key = PEM_read_PrivateKey(key, NULL, NULL, NULL);
		if (!ca->cert || !ca->key || X509_check_private_key(ca->cert, ca->key) != 1) {
			fprintf(stderr, "collwatch: %s: not an authority made by init-cluster\n",
				dir);
			ca = cw_cluster_ca_free(ca);
		}
	} else {
		ca = cw_cluster_ca_free(ca);
	}
	if (cert)
		(void)fclose(cert);
	if (key)
		(void)fclose(key);
	return ca;
}

int cw_cluster_ca_copy(const struct cw_cluster_ca *ca, const char *dir, int dir_fd)
{
	return write_cert(dir, dir_fd, CA_CERT, ca->cert);
}

int cw_cluster_ca_issue(const struct cw_cluster_ca *ca, const char *dir, int dir_fd,
			const char *node, int days)
{
	char name[512], dns[512];
	const struct extension extensions[] = {
		{ NID_basic_constraints, "critical,CA:FALSE" },
		{ NID_key_usage, "critical,digitalSignature" },
		{ NID_ext_key_usage, "serverAuth,clientAuth" },
		{ NID_subject_key_identifier, "hash" },
		{ NID_authority_key_identifier, "keyid" },
		{ NID_subject_alt_name, dns },
		{ 0 },
	};
	EVP_PKEY *key = make_key();
	X509 *cert = NULL;
	int r = -1;

	(void)snprintf(dns, sizeof(dns), "DNS:%s", node); /* node has only letters, digits, ".-_" */
	if (key)
		cert = make_cert(ca, key, node, days, extensions);
	if (cert) {
		(void)snprintf(name, sizeof(name), "%s/peer.key", node);
		r = write_key(dir, dir_fd, name, key);
	}
	if (cert && r == 0) {
		(void)snprintf(name, sizeof(name), "%s/peer.crt", node);
		r = write_cert(dir, dir_fd, name, cert);
	}
	X509_free(cert);
	EVP_PKEY_free(key);
	return r;
}
