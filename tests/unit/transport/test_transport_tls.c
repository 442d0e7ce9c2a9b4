/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons' ends with keys, right and wrong, and the attempts of strangers. */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/openssl_compat.h"
#include "proto/codec.h"
#include "tests/support/cluster/tls_ends.h"

static char right_path[64], wrong_path[64];
static struct cw_tls_files right_files = { .key = right_path }, wrong_files = { .key = wrong_path };
static struct cw_tls_files *const right_key = &right_files, *const wrong_key = &wrong_files;

static void write_key(char *path, size_t len, const char *name, char digit)
{
	FILE *f;

	(void)snprintf(path, len, "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_neq(fputc(digit, f), EOF);
	cr_assert_eq(fputc('\n', f), '\n');
	cr_assert_eq(fchmod(fileno(f), 0600), 0);
	cr_assert_eq(fclose(f), 0);
}

static void setup(void)
{
	ends_setup();
	write_key(right_path, sizeof(right_path), "right", 'a');
	write_key(wrong_path, sizeof(wrong_path), "wrong", 'b');
}

static void teardown(void)
{
	(void)unlink(right_path);
	(void)unlink(wrong_path);
	ends_teardown();
}

TestSuite(transport_tls, .init = setup, .fini = teardown);

Test(transport_tls, same_key_connects_and_carries_messages_of_all_sizes)
{
	struct cw_message m = { .type = CW_MSG_DIGEST,
				.digest = { .job_hash = 1, .node = "a", .policy = "" } };
	char *label = calloc(1, 700001);
	uint64_t bytes = 0;
	unsigned n = 0;

	open_tcp(&a, right_key); /* dials, no listener: tries again */
	open_tcp(&b, right_key);
	run_until(both_connected());
	cr_assert_eq(peer_of(&a)->refusal, CW_PEER_NOT_REFUSED);
	memset(label, 'x', 700000);
	for (size_t len = 1; len <= 700000; len = len * 3 + 1) {
		m.digest.label = label + 700000 - len;
		for (unsigned i = 0; i < 8; i++, n++, bytes += len)
			cr_assert_eq(cw_transport_send(a.transport, "b", &m), 0);
	}
	cr_assert_gt(bytes, 3000000); /* more than sockets hold */
	run_until(b.digests == n);
	cr_assert_eq(b.label_bytes, bytes);
	free(label);
}

Test(transport_tls, goodbye_is_told_from_loss_under_tls_too)
{
	open_tcp(&a, right_key);
	open_tcp(&b, right_key);
	run_until(both_connected());
	b.tcp = cw_tcp_free(b.tcp);
	run_until(peer_of(&a)->state == CW_PEER_GOODBYE);
	open_tcp(&b, right_key);
	run_until(both_connected());
}

Test(transport_tls, different_keys_are_named_on_both_sides_and_heal)
{
	open_tcp(&a, right_key);
	open_tcp(&b, wrong_key);
	run_until(is_refused(&a, CW_PEER_KEY_DIFFERS) && is_refused(&b, CW_PEER_KEY_DIFFERS));
	cr_assert_geq(stats_of(&a).key_differs, 1);
	cr_assert_geq(stats_of(&b).key_differs, 1);
	cr_assert_eq(peer_of(&a)->state, CW_PEER_NEVER);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
	cr_assert_eq(a.digests + b.digests, 0);
	b.tcp = cw_tcp_free(b.tcp);
	open_tcp(&b, right_key);
	run_until(both_connected());
	cr_assert_eq(peer_of(&a)->refusal, CW_PEER_NOT_REFUSED);
	cr_assert_eq(peer_of(&b)->refusal, CW_PEER_NOT_REFUSED);
}

Test(transport_tls, key_here_and_none_there_never_connect)
{
	open_tcp(&a, right_key);
	open_tcp(&b, NULL);
	run_until(is_refused(&a, CW_PEER_NO_KEY));
	cr_assert_geq(stats_of(&a).tls_errors, 1);
	a.tcp = cw_tcp_free(a.tcp);
	b.tcp = cw_tcp_free(b.tcp);
	open_tcp(&b, right_key);
	open_tcp(&a, NULL);
	run_until(is_refused(&b, CW_PEER_NO_KEY));
	cr_assert_eq(peer_of(&a)->state, CW_PEER_NEVER);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
}

Test(transport_tls, machines_beyond_this_one_need_a_key)
{
	struct cw_err err = { "" };

	(void)snprintf(b.address, sizeof(b.address), "0.0.0.0:7");
	cr_assert_eq(try_tcp(&b, NULL, &err), -EACCES);
	make_transport(&a, "a", "b", "10.1.2.3:7411");
	cr_assert_eq(try_tcp(&a, NULL, &err), -EACCES);
	make_transport(&a, "a", "b", "localhost:7411");
	cr_assert_eq(try_tcp(&a, NULL, &err), -EACCES);
}

Test(transport_tls, peers_given_as_host_names_are_found)
{
	char name[64], any[64];

	(void)snprintf(name, sizeof(name), "localhost:%s", strchr(b.address, ':') + 1);
	(void)snprintf(any, sizeof(any), "[::]:%s", strchr(b.address, ':') + 1);
	memcpy(b.address, any, sizeof(b.address));
	make_transport(&a, "a", "b", name);
	open_tcp(&b, right_key);
	open_tcp(&a, right_key);
	run_until(both_connected());
}

Test(transport_tls, look_up_that_is_in_progress_ends_with_the_daemon)
{
	make_transport(&a, "a", "b", "no-such-host.invalid:7411");
	open_tcp(&a, right_key);
	a.tcp = cw_tcp_free(a.tcp);
	cr_assert_eq(peer_of(&a)->state, CW_PEER_NEVER);
}

/* ---- strangers ---- */

static int dial_from(const char *address, uint32_t source)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
				  .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)) };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(source) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

Test(transport_tls, plain_hello_and_noise_get_nothing_but_an_end)
{
	struct cw_message m = { .type = CW_MSG_PEER_HELLO,
				.peer_hello = { .node = "a",
						.version_min = CW_WIRE_VERSION_MIN,
						.version_max = CW_WIRE_VERSION,
						.epoch = 1 } };
	char noise[4096];
	uint8_t *frame;
	size_t len;
	int fds[4];

	open_tcp(&b, right_key);
	for (unsigned i = 0; i < 4; i++)
		fds[i] = dial_from(b.address, INADDR_LOOPBACK);
	run_until(stats_of(&b).accepted == 4);
	cr_assert_eq(cw_message_encode(&m, &frame, &len), 0);
	cr_assert_eq(write(fds[0], frame, len), (ssize_t)len);
	free(frame);
	cr_assert_eq(write(fds[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
	srand(17);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)rand();
	cr_assert_eq(write(fds[2], noise, sizeof(noise)), (ssize_t)sizeof(noise));
	/* A record header of TLS, then nonsense. */
	memcpy(noise, "\x16\x03\x01\x02\x00\x01", 6);
	cr_assert_eq(write(fds[3], noise, sizeof(noise)), (ssize_t)sizeof(noise));
	run_until(stats_of(&b).connections == 0);
	cr_assert_geq(stats_of(&b).refused, 4);
	cr_assert_geq(stats_of(&b).tls_errors, 4);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
	for (unsigned i = 0; i < 4; i++)
		(void)close(fds[i]);
}

Test(transport_tls, handshake_that_dribbles_ends_at_its_deadline)
{
	int fd;

	open_tcp(&b, right_key);
	fd = dial_from(b.address, INADDR_LOOPBACK);
	run_until(stats_of(&b).accepted == 1);
	for (unsigned i = 0; i < 4; i++) { /* always something new, never the end of it */
		cr_assert_eq(write(fd, &"\x16\x03\x01\x02"[i], 1), 1);
		skipped_ns += CW_NS_PER_S;
		cr_assert_geq(event_base_loop(base, EVLOOP_ONCE), 0);
		cr_assert_eq(stats_of(&b).connections, 1);
	}
	skipped_ns += 2 * CW_NS_PER_S;
	run_until(stats_of(&b).too_slow == 1);
	cr_assert_eq(stats_of(&b).connections, 0);
	(void)close(fd);
}

Test(transport_tls, one_address_cannot_take_all_places_of_strangers)
{
	int fds[CW_TCP_MAX_STRANGERS_PER_ADDRESS + 2];
	size_t n = sizeof(fds) / sizeof(fds[0]);

	open_tcp(&b, right_key);
	for (size_t i = 0; i + 1 < n; i++)
		fds[i] = dial_from(b.address, INADDR_LOOPBACK);
	run_until(stats_of(&b).too_many == 1);
	cr_assert_eq(stats_of(&b).connections, CW_TCP_MAX_STRANGERS_PER_ADDRESS);
	fds[n - 1] = dial_from(b.address, INADDR_LOOPBACK + 41);
	run_until(stats_of(&b).accepted == CW_TCP_MAX_STRANGERS_PER_ADDRESS + 1);
	cr_assert_eq(stats_of(&b).too_many, 1);
	for (size_t i = 0; i < n; i++)
		(void)close(fds[i]);
}

/* ---- impostors that speak TLS ---- */

static SSL_CTX *impostor;

static X509 *self_signed(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	cr_assert_eq(X509_set_version(cert, X509_VERSION_3), 1);
	cr_assert_eq(ASN1_INTEGER_set(X509_get_serialNumber(cert), 1), 1);
	cr_assert_not_null(X509_gmtime_adj(X509_getm_notBefore(cert), 0));
	cr_assert_not_null(X509_gmtime_adj(X509_getm_notAfter(cert), 3600));
	cr_assert_eq(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
						(const unsigned char *)"b", -1, -1, 0),
		     1);
	cr_assert_eq(X509_set_issuer_name(cert, name), 1);
	cr_assert_eq(X509_set_pubkey(cert, key), 1);
	cr_assert_gt(X509_sign(cert, key, EVP_sha256()), 0);
	return cert;
}

static void on_impostor_accept(struct evconnlistener *listener, evutil_socket_t fd,
			       struct sockaddr *from, int len, void *user)
{
	struct bufferevent *bev = bufferevent_openssl_socket_new(
		base, fd, SSL_new(impostor), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	struct bufferevent **slot = user;

	if (*slot)
		bufferevent_free(*slot);
	*slot = bev;
}

Test(transport_tls, server_with_a_certificate_but_no_key_is_not_believed)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
				  .sin_port = htons((uint16_t)atoi(strchr(b.address, ':') + 1)) };
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = self_signed(key);
	struct bufferevent *bev = NULL;
	struct evconnlistener *listener;

	impostor = SSL_CTX_new(TLS_server_method());
	cr_assert_eq(SSL_CTX_use_certificate(impostor, cert), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(impostor, key), 1);
	listener = evconnlistener_new_bind(base, on_impostor_accept, &bev,
					   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 4,
					   (struct sockaddr *)&in, sizeof(in));
	cr_assert_not_null(listener);
	open_tcp(&a, right_key);
	run_until(is_refused(&a, CW_PEER_CERTIFICATE));
	cr_assert_eq(peer_of(&a)->state, CW_PEER_NEVER);
	evconnlistener_free(listener);
	if (bev)
		bufferevent_free(bev);
	SSL_CTX_free(impostor);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static unsigned psk_client(SSL *ssl, const char *hint, char *id, unsigned id_len,
			   unsigned char *psk, unsigned psk_len)
{
	(void)snprintf(id, id_len, "somebody");
	memset(psk, 0xaa, 32); /* the right key, under another identity */
	return 32;
}

static void try_client(int max_version, bool has_psk)
{
	uint64_t refused = stats_of(&b).refused;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct bufferevent *bev;

	cr_assert_eq(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
	if (has_psk)
		SSL_CTX_set_psk_client_callback(ctx, psk_client);
	bev = bufferevent_openssl_socket_new(base, dial_from(b.address, INADDR_LOOPBACK),
					     SSL_new(ctx), BUFFEREVENT_SSL_CONNECTING,
					     BEV_OPT_CLOSE_ON_FREE);
	cr_assert_not_null(bev);
	cr_assert_eq(evutil_make_socket_nonblocking(bufferevent_getfd(bev)), 0);
	run_until(stats_of(&b).refused == refused + 1);
	cr_assert_eq(stats_of(&b).connections, 0);
	bufferevent_free(bev);
	SSL_CTX_free(ctx);
}

Test(transport_tls, clients_without_the_key_or_of_older_tls_are_not_let_in)
{
	open_tcp(&b, right_key);
	try_client(TLS1_3_VERSION, false);
	try_client(TLS1_2_VERSION, false);
	try_client(TLS1_3_VERSION, true);
	try_client(TLS1_2_VERSION, true);
	cr_assert_eq(peer_of(&b)->state, CW_PEER_NEVER);
}
