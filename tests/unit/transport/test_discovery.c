/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that find each other under a name: "localhost" stands for the one on 127.0.0.1, so the
 * other one finds it there, and it finds the other when that comes. Real answers of DNS servers,
 * good and bad, are in tests/e2e/test_dns.py.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cluster/tls_ends.h"
#include "transport/discovery.h"

static char key_path[64], other_path[64], under[40];
static const struct cw_tls_files key_files = { .key = key_path };
static const struct cw_tls_files other_files = { .key = other_path };

static void write_key(char *path, size_t len, const char *name, char digit)
{
	FILE *f;

	(void)snprintf(path, len, "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_neq(fputc(digit, f), EOF);
	cr_assert_eq(fchmod(fileno(f), 0600), 0);
	cr_assert_eq(fclose(f), 0);
}

/* Both listen on one port, of two addresses; the name has that port. */
static void setup(void)
{
	const char *port;

	ends_setup();
	port = strchr(a.address, ':');
	(void)snprintf(b.address, sizeof(b.address), "127.0.0.2%s", port);
	(void)snprintf(under, sizeof(under), "localhost%s", port);
	write_key(key_path, sizeof(key_path), "key", 'a');
	write_key(other_path, sizeof(other_path), "other", 'b');
}

static void teardown(void)
{
	(void)unlink(key_path);
	(void)unlink(other_path);
	ends_teardown();
}

TestSuite(found, .init = setup, .fini = teardown);

static void open_found(struct end *e, const char *self, uint64_t epoch,
		       const struct cw_tls_files *files, const char *name)
{
	struct cw_tcp_config config = { .base = base,
					.clock = ends_clock,
					.transport = e->transport,
					.epoch = epoch,
					.listen = e->address,
					.tls = *files,
					.find_under = name };
	struct cw_err err = { "" };

	make_finder(e, self);
	config.transport = e->transport;
	cr_assert_eq(cw_tcp_new(&config, &e->tcp, &err), 0, "%s", err.text);
}

static unsigned n_peers(const struct end *e)
{
	unsigned n;

	(void)cw_transport_peers(e->transport, &n);
	return n;
}

static bool is_connected_to(const struct end *e, const char *name)
{
	const struct cw_peer *p = cw_transport_peer(e->transport, name);

	return p && p->state == CW_PEER_CONNECTED;
}

static bool note_says(const struct end *e, const char *text)
{
	char note[320];

	return strstr(cw_tcp_note(e->tcp, note, sizeof(note)), text) != NULL;
}

Test(found, daemons_meet_that_nobody_listed_and_nobody_meets_itself)
{
	open_found(&a, "a", 1, &key_files, under);
	open_found(&b, "b", 2, &key_files, under);
	run_until(is_connected_to(&a, "b") && is_connected_to(&b, "a"));
	cr_assert_eq(n_peers(&a), 1, "itself is no peer");
	cr_assert_eq(n_peers(&b), 1);
	cr_assert_eq(stats_of(&a).refused, 0);
	cr_assert_eq(stats_of(&b).refused, 0);
}

Test(found, who_is_gone_is_lost_first_and_forgotten_after_ten_minutes_of_answers_without_it)
{
	int64_t lost_ns;

	open_found(&a, "a", 1, &key_files, under);
	open_found(&b, "b", 2, &key_files, under);
	run_until(is_connected_to(&a, "b"));
	lost_ns = skipped_ns;
	b.tcp = cw_tcp_free(b.tcp);
	run_until(!is_connected_to(&a, "b"));
	cr_assert_eq(n_peers(&a), 1, "its loss is news");
	while (n_peers(&a)) { /* a look-up of "localhost" happens in between, or waits for its turn
			       */
		skipped_ns += 60 * CW_NS_PER_S;
		(void)event_base_loop(base, EVLOOP_ONCE);
		cr_assert_lt(skipped_ns - lost_ns, 10 * CW_DISCOVERY_FORGET_NS);
	}
	cr_assert_gt(skipped_ns - lost_ns, CW_DISCOVERY_FORGET_NS);
	open_found(&b, "b", 3, &key_files, under);
	run_until(is_connected_to(&a, "b"));
}

Test(found, a_key_that_differs_and_a_name_without_address_are_told)
{
	open_found(&a, "a", 1, &key_files, under);
	open_found(&b, "b", 2, &other_files, under);
	run_until(note_says(&b, "127.0.0.1: key differs"));
	cr_assert_eq(n_peers(&a) + n_peers(&b), 0);
	b.tcp = cw_tcp_free(b.tcp);
	open_found(&b, "b", 3, &key_files, "no-such-host.invalid:7411");
	run_until(note_says(&b, "no-such-host.invalid:7411 cannot be looked up"));
	cr_assert_eq(n_peers(&b), 0);
}

Test(found, two_daemons_of_one_name_are_told)
{
	open_found(&a, "a", 1, &key_files, under);
	open_found(&b, "a", 2, &key_files, under);
	run_until(note_says(&b, "127.0.0.1: it has the name of this node"));
	cr_assert_eq(n_peers(&a) + n_peers(&b), 0);
}

Test(found, needs_a_key)
{
	struct cw_tcp_config config = {
		.base = base, .clock = ends_clock, .listen = a.address, .find_under = under
	};
	struct cw_err err = { "" };

	make_finder(&a, "a");
	config.transport = a.transport;
	cr_assert_eq(cw_tcp_new(&config, &a.tcp, &err), -EACCES);
	cr_assert_not_null(strstr(err.text, "no key"), "%s", err.text);
}
