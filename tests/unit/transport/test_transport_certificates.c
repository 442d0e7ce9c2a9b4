/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons' ends with certificates as init-cluster makes them, and possible defects of those. */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cluster_ca.h"
#include "proto/codec.h"
#include "tests/support/cluster/tls_ends.h"

#define PATH_BYTES 96
#define DAYS 10

struct identity {
	char ca[PATH_BYTES], cert[PATH_BYTES], key[PATH_BYTES];
	struct cw_tls_files files;
};

static struct cw_cluster_ca *authority, *stranger;
static struct identity as_a, as_b, as_c;

static struct cw_cluster_ca *make_authority(const char *name, int *ret_fd)
{
	char path[PATH_BYTES];
	struct cw_cluster_ca *ca;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	cr_assert_eq(mkdir(path, 0700), 0);
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ca = cw_cluster_ca_make(path, *ret_fd, DAYS);
	cr_assert_not_null(ca);
	return ca;
}

static void issue(const struct cw_cluster_ca *ca, int ca_fd, const char *ca_name, const char *node,
		  struct identity *ret)
{
	(void)mkdirat(ca_fd, node, 0700);
	cr_assert_eq(cw_cluster_ca_issue(ca, ca_name, ca_fd, node, DAYS), 0);
	(void)snprintf(ret->ca, PATH_BYTES, "%s/%s/ca.crt", dir, ca_name);
	(void)snprintf(ret->cert, PATH_BYTES, "%s/%s/%s/peer.crt", dir, ca_name, node);
	(void)snprintf(ret->key, PATH_BYTES, "%s/%s/%s/peer.key", dir, ca_name, node);
	ret->files =
		(struct cw_tls_files){ .ca = ret->ca, .cert = ret->cert, .private_key = ret->key };
}

static void setup(void)
{
	int fd;

	ends_setup();
	authority = make_authority("ours", &fd);
	issue(authority, fd, "ours", "a", &as_a);
	issue(authority, fd, "ours", "b", &as_b);
	issue(authority, fd, "ours", "c", &as_c);
	close(fd);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void teardown(void)
{
	cw_cluster_ca_free(authority);
	cw_cluster_ca_free(stranger);
	cr_assert_eq(nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
	cr_assert_eq(mkdir(dir, 0700), 0);
	ends_teardown();
}

TestSuite(transport_certificates, .init = setup, .fini = teardown);

Test(transport_certificates, nodes_of_one_authority_meet_and_talk)
{
	struct cw_message m = { .type = CW_MSG_DIGEST,
				.digest = {
					.job_hash = 1, .node = "a", .policy = "", .label = "x" } };

	open_tcp(&a, &as_a.files);
	open_tcp(&b, &as_b.files);
	run_until(both_connected());
	cr_assert_eq(cw_transport_send(a.transport, "b", &m), 0);
	run_until(b.digests == 1);
	b.tcp = cw_tcp_free(b.tcp);
	run_until(peer_of(&a)->state == CW_PEER_GOODBYE);
}

/* A client of our making: shows that certificate, and says that name. */
static struct bufferevent *say_hello(const struct identity *identity, const char *node)
{
	struct cw_message hello = { .type = CW_MSG_PEER_HELLO,
				    .peer_hello = { .node = node,
						    .version_min = CW_WIRE_VERSION_MIN,
						    .version_max = CW_WIRE_VERSION,
						    .epoch = 9 } };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
				  .sin_port = htons((uint16_t)atoi(strchr(b.address, ':') + 1)) };
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct bufferevent *bev;
	uint8_t *frame;
	size_t len;

	cr_assert_eq(SSL_CTX_use_certificate_file(ctx, identity->cert, SSL_FILETYPE_PEM), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey_file(ctx, identity->key, SSL_FILETYPE_PEM), 1);
	bev = bufferevent_openssl_socket_new(base, -1, SSL_new(ctx), BUFFEREVENT_SSL_CONNECTING,
					     BEV_OPT_CLOSE_ON_FREE);
	SSL_CTX_free(ctx);
	cr_assert_eq(bufferevent_socket_connect(bev, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(cw_message_encode(&hello, &frame, &len), 0);
	cr_assert_eq(bufferevent_write(bev, frame, len), 0);
	free(frame);
	return bev;
}

Test(transport_certificates, node_cannot_pose_as_another)
{
	struct bufferevent *bev;

	open_tcp(&b, &as_b.files);
	bev = say_hello(&as_c, "a");
	run_until(stats_of(&b).refused == 1 && stats_of(&b).connections == 0);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
	cr_assert_eq(stats_of(&b).tls_errors, 0, "it belongs to the cluster");
	bufferevent_free(bev);
	bev = say_hello(&as_a, "a");
	run_until(peer_of(&b)->state == CW_PEER_CONNECTED);
	bufferevent_free(bev);
}

Test(transport_certificates, strangers_of_another_authority_are_told_so_on_both_sides)
{
	struct identity other;
	int fd;

	stranger = make_authority("theirs", &fd);
	issue(stranger, fd, "theirs", "b", &other);
	close(fd);
	open_tcp(&a, &as_a.files);
	open_tcp(&b, &other.files);
	run_until(is_refused(&a, CW_PEER_CERTIFICATE) && is_refused(&b, CW_PEER_CERTIFICATE));
	cr_assert_eq(peer_of(&a)->state, CW_PEER_NEVER);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
	/* And it heals. */
	b.tcp = cw_tcp_free(b.tcp);
	open_tcp(&b, &as_b.files);
	run_until(both_connected());
	cr_assert_eq(peer_of(&a)->refusal, CW_PEER_NOT_REFUSED);
}

Test(transport_certificates, key_and_certificates_do_not_mix)
{
	struct cw_tls_files key = { .key = as_c.key };
	FILE *f = fopen(as_c.key, "w");

	for (unsigned i = 0; i < 64; i++)
		cr_assert_neq(fputc('a', f), EOF);
	cr_assert_eq(fclose(f), 0);
	open_tcp(&a, &as_a.files);
	open_tcp(&b, &key);
	run_until(stats_of(&a).tls_errors >= 1 && stats_of(&b).tls_errors >= 1);
	cr_assert_eq(peer_of(&a)->state, CW_PEER_NEVER);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
}

/* ---- files that do not go together ---- */

static void must_fail(const struct cw_tls_files *files, int code, const char *word)
{
	struct cw_err err = { "" };

	cr_assert_eq(try_tcp(&a, files, &err), -code, "%s", err.text);
	cr_assert(strstr(err.text, word), "'%s' lacks '%s'", err.text, word);
}

Test(transport_certificates, mistakes_are_told_at_the_start)
{
	struct cw_tls_files files = as_b.files;
	struct identity other;
	int fd;

	must_fail(&files, EKEYREJECTED, "DNS:a");
	files = as_a.files;
	files.private_key = as_b.key;
	must_fail(&files, EKEYREJECTED, "not the key of the certificate");
	files = as_a.files;
	files.cert = as_a.key;
	must_fail(&files, EINVAL, "no certificate");
	files = as_a.files;
	files.private_key = as_a.cert;
	cr_assert_eq(chmod(as_a.cert, 0600), 0);
	must_fail(&files, EINVAL, "no private key");
	files = as_a.files;
	files.ca = "/nonexistent/ca";
	must_fail(&files, ENOENT, "/nonexistent/ca");
	cr_assert_eq(chmod(as_a.key, 0644), 0);
	must_fail(&as_a.files, EACCES, "chmod 600");
	cr_assert_eq(chmod(as_a.key, 0600), 0);
	stranger = make_authority("theirs", &fd);
	issue(stranger, fd, "theirs", "a", &other);
	close(fd);
	other.files.ca = as_a.ca;
	must_fail(&other.files, EKEYREJECTED, "does not hold against");
}

Test(transport_certificates, fifo_in_the_place_of_a_file_is_not_waited_for)
{
	struct cw_tls_files files = as_a.files;
	char fifo[PATH_BYTES], path[PATH_BYTES];

	(void)alarm(20); /* no process opens its other end */
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	files.ca = fifo;
	must_fail(&files, EINVAL, "fifo is not a regular file");
	files = as_a.files;
	files.cert = fifo;
	must_fail(&files, EINVAL, "fifo is not a regular file");
	files = as_a.files;
	files.private_key = fifo;
	must_fail(&files, EINVAL, "not a regular file");

	(void)snprintf(path, sizeof(path), "%s/ours/ca.key", dir);
	cr_assert_eq(rename(fifo, path), 0);
	(void)snprintf(path, sizeof(path), "%s/ours", dir);
	cr_assert_null(cw_cluster_ca_load(path));
}

Test(transport_certificates, expired_ones_are_named)
{
	struct identity old;
	char path[PATH_BYTES];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/old", dir);
	cr_assert_eq(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(mkdirat(fd, "a", 0700), 0);
	cr_assert_eq(cw_cluster_ca_issue(authority, "old", fd, "a", -1), 0);
	close(fd);
	old = as_a;
	(void)snprintf(old.cert, PATH_BYTES, "%s/old/a/peer.crt", dir);
	(void)snprintf(old.key, PATH_BYTES, "%s/old/a/peer.key", dir);
	old.files =
		(struct cw_tls_files){ .ca = as_a.ca, .cert = old.cert, .private_key = old.key };
	must_fail(&old.files, EKEYREJECTED, "expired");
}

Test(transport_certificates, keys_that_children_would_inherit_are_not_taken)
{
	EVP_PKEY *rsa = EVP_RSA_gen(2048);
	FILE *f = fopen(as_a.key, "w");

	cr_assert_eq(PEM_write_PKCS8PrivateKey(f, rsa, NULL, NULL, 0, NULL, NULL), 1);
	cr_assert_eq(fclose(f), 0);
	EVP_PKEY_free(rsa);
	must_fail(&as_a.files, EKEYREJECTED, "elliptic curve");
}

/* ---- children ---- */

/* The private number, as it lies in memory: OpenSSL's words, least significant first. */
static void read_secret(const char *path, unsigned char secret[32])
{
	FILE *f = fopen(path, "r");
	EVP_PKEY *key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
	BIGNUM *number = NULL;

	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(EVP_PKEY_get_bn_param(key, "priv", &number), 1);
	cr_assert_eq(BN_bn2lebinpad(number, secret, 32), 32);
	BN_clear_free(number);
	EVP_PKEY_free(key);
}

/* How often the number is found in this process's memory; masked, so as not to find the copy. */
static int count_in_memory(const unsigned char masked[32])
{
	unsigned char first = (unsigned char)~masked[0];
	FILE *maps = fopen("/proc/self/maps", "r");
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC), n = 0;
	unsigned long start, end;
	char line[512], perms[8];

	while (maps && fgets(line, sizeof(line), maps)) {
		/* A sanitizer's shadow memory has terabytes. */
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) != 3 || perms[1] != 'w' ||
		    end - start > 1ul << 30)
			continue;
		for (unsigned long at = start; at < end; at += 4096) {
			unsigned char page[4096 + 31];
			ssize_t got =
				pread(mem, page, at + sizeof(page) <= end ? sizeof(page) : 4096,
				      (off_t)at);

			for (ssize_t i = 0; i + 32 <= got; i++) {
				int same = 0;

				if (page[i] != first)
					continue;
				while (same < 32 && page[i + same] == (unsigned char)~masked[same])
					same++;
				n += same == 32;
			}
			memset(page, 0, sizeof(page));
		}
	}
	fclose(maps);
	close(mem);
	return n;
}

Test(transport_certificates, children_do_not_inherit_the_private_key)
{
	unsigned char masked[32];
	int status, before;
	pid_t child;

	read_secret(as_a.key, masked);
	for (int i = 0; i < 32; i++)
		masked[i] = (unsigned char)~masked[i];
	before = count_in_memory(masked); /* traces of its making in the test, if any */
	open_tcp(&a, &as_a.files);
	cr_assert_gt(count_in_memory(masked), before, "it is in use, so it is somewhere");
	child = fork();
	if (child == 0)
		_exit(count_in_memory(masked) > before);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "a child has the key");
	open_tcp(&b, &as_b.files);
	run_until(both_connected());
}
