/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/config/config.h"

/* Loads text as a configuration file; the file's name is always "conf". */
static int load(const char *text, struct cw_config **ret, struct cw_err *err)
{
	char dir[] = "/tmp/cw-config-XXXXXX";
	FILE *f;
	int r;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	f = fopen("conf", "w");
	cr_assert_not_null(f);
	cr_assert_geq(fputs(text, f), 0);
	cr_assert_eq(fclose(f), 0);
	err->text[0] = '\0';
	r = cw_config_load("conf", ret, err);
	cr_assert_eq(unlink("conf"), 0);
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(rmdir(dir), 0);
	return r;
}

Test(config, without_a_file_every_key_has_its_documented_default)
{
	struct cw_config *c = NULL;
	struct cw_err err;
	char host[65] = "";

	cr_assert_eq(cw_config_load(NULL, &c, &err), 0, "%s", err.text);
	cr_assert_eq(gethostname(host, sizeof(host) - 1), 0);
	cr_assert_str_eq(c->node_name, host);
	cr_assert_str_eq(c->agent_socket, "/run/collwatch/agent.sock");
	cr_assert_str_eq(c->state_dir, "/var/lib/collwatch");
	cr_assert_str_eq(c->listen, "");
	cr_assert_str_eq(c->webhook_url, "");
	cr_assert_eq(c->log_level, CW_LOG_NOTICE);
	cr_assert_eq(c->state_max_bytes, INT64_C(1) << 30);
	cr_assert_eq(c->state_max_age_ns, 30 * 86400 * CW_NS_PER_S);
	cr_assert_eq(c->stall_min_ns, 10 * CW_NS_PER_S);
	cr_assert_eq(c->stall_max_ns, 120 * CW_NS_PER_S);
	cr_assert_eq(c->no_progress_after_ns, 60 * CW_NS_PER_S);
	cr_assert_eq(c->first_op_after_ns, 120 * CW_NS_PER_S);
	cr_assert_eq(c->sample_interval_ns, 250 * CW_NS_PER_MS);
	cr_assert_eq(c->n_peers, 0);
	cw_config_free(c);
}

Test(config, every_default_passes_its_own_check_when_written_into_a_file)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];
		struct cw_config *c = NULL;
		struct cw_err err;
		char text[256];
		bool is_list = key->type == CW_CONFIG_PEERS;

		(void)snprintf(text, sizeof(text), "%s = %s%s%s\n", key->name, is_list ? "{" : "\"",
			       key->initial, is_list ? "}" : "\"");
		cr_assert_eq(load(text, &c, &err), 0, "%s: %s", key->name, err.text);
		cw_config_free(c);
	}
}

Test(config, every_range_is_enforced_at_both_ends)
{
	unsigned checked = 0;

	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];
		struct cw_config *c = NULL;
		struct cw_err err;
		char text[256];

		if (!key->min)
			continue;
		(void)snprintf(text, sizeof(text), "%s = \"%s\"\n", key->name,
			       key->type == CW_CONFIG_BYTES   ? "1KiB"
			       : key->type == CW_CONFIG_COUNT ? "0"
							      : "1ms");
		cr_assert_eq(load(text, &c, &err), -EINVAL, "%s", key->name);
		cr_assert_not_null(strstr(err.text, key->min), "%s", err.text);
		(void)snprintf(text, sizeof(text), "%s = \"%s\"\n", key->name,
			       key->type == CW_CONFIG_BYTES   ? "2048GiB"
			       : key->type == CW_CONFIG_COUNT ? "100000"
							      : "40000d");
		cr_assert_eq(load(text, &c, &err), -EINVAL, "%s", key->name);
		cr_assert_not_null(strstr(err.text, key->max), "%s", err.text);
		checked++;
	}
	cr_assert_geq(checked, 7);
}

Test(config, mistakes_are_refused_with_file_and_line)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "log_level = info\nno_such_key = 1\n", "conf:2: " },
		{ "\n\nstall_min = 10\n", "conf:3: stall_min: '10' is not a duration" },
		{ "state_max = \"5 parsecs\"\n", "conf:1: state_max" },
		{ "alert_burst = many\n", "conf:1: alert_burst: 'many' is not a number" },
		{ "# c\nlog_level = loud\n", "conf:2: log_level: there is no log level 'loud'" },
		{ "log_level = info # x\n// y\n#z \"\nlog_level = loud\n", "conf:4: log_level" },
		{ "agent_socket = \"run/agent.sock\"\n", "conf:1: agent_socket" },
		{ "webhook_url = \"ftp://x/\"\n", "conf:1: webhook_url" },
		{ "notice_webhook_url = \"ftp://x/\"\n", "conf:1: notice_webhook_url" },
		{ "node_name = \"a b\"\n", "conf:1: node_name" },
		{ "listen = \"127.0.0.1\"\n", "conf:1: '127.0.0.1' is not of the form" },
		{ "listen = \"127.0.0.1:70000\"\n", "the port must be" },
		{ "listen = \"0.0.0.0:7411\"\n", "collwatch init-cluster" },
		{ "listen = \"10.0.0.1:7411\"\n", "collwatch init-cluster" },
		{ "peers = {\"b=10.0.0.2:7411\"}\n", "collwatch init-cluster" },
		{ "peers = {\"b=node-b.example.org:7411\"}\n", "collwatch init-cluster" },
		{ "peers = {\"b=10.0.0.300:7411\"}\n", "conf:1: '10.0.0.300:7411': neither" },
		{ "peers = {\"b=[::]:7411\"}\n", "cannot connect" },
		{ "listen = \"node-a:7411\"\n", "give a numeric address" },
		{ "peer_key_file = \"key\"\n", "not an absolute path" },
		{ "peer_ca_file = \"/c\"\npeer_cert_file = \"/d\"\n", "all three or none" },
		{ "peer_ca_file = \"/c\"\npeer_cert_file = \"/d\"\n"
		  "peer_private_key_file = \"/e\"\npeer_key_file = \"/k\"\n",
		  "one of the two" },
		{ "peers = {\"127.0.0.1:7411\"}\n", "name=address:port" },
		{ "peers = {\"b=127.0.0.1:1\",\n \"b=127.0.0.1:2\"}\nlisten=\"127.0.0.1:3\"\n",
		  "named twice" },
		{ "peers = {\"b=127.0.0.1:1\"}\nnode_name = a\n", "neither listen" },
		{ "stall_min = 100s\nstall_max = 50s\n", "stall_min is above stall_max" },
		{ "mode = quiet\n", "conf:1: mode: 'quiet' is not one of alert|shadow" },
		{ "mode = \"\"\n", "conf:1: mode: '' is not one of" },
		{ "mode = shad\n", "conf:1: mode" },
		{ "webhook_format = teams\n", "generic|slack" },
		{ "log_level = \"info\n", "conf" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cw_config *c = NULL;
		struct cw_err err;
		int r = load(cases[i].text, &c, &err);

		cr_assert_eq(r, -EINVAL, "case %zu: %d", i, r);
		cr_assert_null(c);
		cr_assert_not_null(strstr(err.text, cases[i].says), "case %zu: %s", i, err.text);
	}
}

Test(config, the_example_file_is_valid_and_uncommented_too)
{
	static char text[1 << 16], *to = text;
	struct cw_config *c = NULL;
	struct cw_err err;
	char line[512];
	FILE *f = fopen(CW_EXAMPLE_CONF, "r");
	unsigned keys = 0;

	cr_assert_not_null(f, "%s", CW_EXAMPLE_CONF);
	cr_assert_eq(cw_config_load(CW_EXAMPLE_CONF, &c, &err), 0, "%s", err.text);
	cw_config_free(c);
	while (fgets(line, sizeof(line), f)) {
		bool is_key = line[0] == '#' && line[1] != ' ' && strchr(line, '=');

		keys += is_key;
		to = stpcpy(to, is_key ? line + 1 : line);
	}
	(void)fclose(f);
	cr_assert_gt(keys, 8);
	cr_assert_eq(load(text, &c, &err), 0, "%s", err.text);
	cw_config_free(c);
}

Test(config, own_entry_among_the_peers_says_where_to_listen)
{
	struct cw_config *c = NULL;
	struct cw_err err;

	cr_assert_eq(load("node_name = node-b\n"
			  "peers = {\"node-a=127.0.0.1:7411\", \"node-b=127.0.0.2:7412\",\n"
			  "         \"node-c=[::1]:7413\"}\n",
			  &c, &err),
		     0, "%s", err.text);
	cr_assert_eq(c->n_peers, 2);
	cr_assert_str_eq(c->listen, "127.0.0.2:7412");
	for (unsigned i = 0; i < c->n_peers; i++)
		cr_assert_str_neq(c->peers[i].name, "node-b");
	cw_config_free(c);
}

/* As people know lists from TOML and JSON. */
Test(config, peers_may_stand_in_brackets)
{
	static const char *const texts[] = {
		"node_name = a\npeers = [\"a=127.0.0.1:7411\", \"b=127.0.0.1:7412\"]\n",
		"node_name = a\npeers=[ # two ]\n \"a=127.0.0.1:7411\",\n \"b=127.0.0.1:7412\" ]\n",
		"node_name = a\nlisten = [::1]:7411\npeers = [\"b=[::1]:7412\", 'a=[::1]:7411']\n",
		"node_name = a\nlisten = [::1]:7411\npeers = {\"b=[::1]:7412\"}\n",
	};
	struct cw_config *c = NULL;
	struct cw_err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_assert_eq(load(texts[i], &c, &err), 0, "%s: %s", texts[i], err.text);
		cr_expect_eq(c->n_peers, 1, "%s", texts[i]);
		cr_expect_str_eq(c->peers[0].name, "b");
		cw_config_free(c);
	}
	cr_assert_eq(load("listen = [::1]:7411\npeers = []\n", &c, &err), 0, "%s", err.text);
	cr_expect_eq(c->n_peers, 0);
	cw_config_free(c);
	cr_assert_lt(load("peers = [\"1.2.3.4:7411\"]\n", &c, &err), 0);
	cr_expect_not_null(strstr(err.text, "as in peers = {\"a=192.0.2.1:7411\""), "%s", err.text);
}

Test(config, with_a_key_peers_may_be_anywhere_and_have_names)
{
	struct cw_config *c = NULL;
	struct cw_err err;

	cr_assert_eq(load("node_name = a\n"
			  "peers = {\"a=node-a.example.org:7411\", \"b=10.0.0.2:7412\"}\n"
			  "peer_key_file = \"/etc/collwatch/peer.key\"\n",
			  &c, &err),
		     0, "%s", err.text);
	cr_assert_eq(c->n_peers, 1);
	cr_assert_str_eq(c->peer_key_file, "/etc/collwatch/peer.key");
	/*
	 * We do not listen on its own name: /etc/hosts may resolve it differently here than
	 * on the peers.
	 */
	cr_assert_str_eq(c->listen, "[::]:7411");
	cw_config_free(c);
	cr_assert_eq(load("node_name = a\npeer_key_file = \"/k\"\nlisten = \"10.0.0.1:7411\"\n"
			  "peers = {\"a=node-a:7411\", \"b=node-b:7411\"}\n",
			  &c, &err),
		     0, "%s", err.text);
	cr_assert_str_eq(c->listen, "10.0.0.1:7411");
	cw_config_free(c);
	cr_assert_eq(load("node_name = a\npeers = {\"a=node-a:7411\", \"b=node-b:7411\"}\n"
			  "peer_ca_file = \"/c\"\npeer_cert_file = \"/d\"\n"
			  "peer_private_key_file = \"/e\"\n",
			  &c, &err),
		     0, "%s", err.text);
	cw_config_free(c);
}

Test(config, peers_under_a_name_need_a_key_and_listen_on_its_port)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "peers_from = \"c.example.org:7411\"\n", "a shared key or certificates" },
		{ "peers_from = \"10.0.0.1:7411\"\npeer_key_file = \"/k\"\n", "is an address" },
		{ "peers_from = \"c.example.org\"\npeer_key_file = \"/k\"\n", "address:port" },
		{ "peers_from = \"c.example.org:7411\"\npeer_key_file = \"/k\"\n"
		  "peers = {\"a=10.0.0.1:7411\"}\n",
		  "one of the two" },
	};
	struct cw_config *c = NULL;
	struct cw_err err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(load(wrong[i].text, &c, &err), -EINVAL, "%s", wrong[i].text);
		cr_assert_not_null(strstr(err.text, wrong[i].says), "%s", err.text);
	}
	cr_assert_eq(
		load("peers_from = \"c.example.org:7412\"\npeer_key_file = \"/k\"\n", &c, &err), 0,
		"%s", err.text);
	cr_assert(cw_config_has_peers(c));
	cr_assert_str_eq(c->listen, "[::]:7412");
	cw_config_free(c);
}

Test(config, changes_that_cannot_be_reloaded_are_named)
{
	struct cw_config *a = NULL, *b = NULL, *d = NULL;
	struct cw_err err;

	cr_assert_eq(cw_config_load(NULL, &a, &err), 0);
	cr_assert_eq(load("log_level = debug\nno_progress_after = 5s\n", &b, &err), 0);
	cr_assert_null(cw_config_needs_restart(a, b));
	cr_assert_eq(load("state_dir = \"/tmp/x\"\n", &d, &err), 0);
	cr_assert_str_eq(cw_config_needs_restart(a, d), "state_dir");
	cw_config_free(a);
	cw_config_free(b);
	cw_config_free(d);
}

Test(config, a_missing_file_is_not_the_defaults)
{
	struct cw_config *c = NULL;
	struct cw_err err;

	cr_assert_eq(cw_config_load("/nonexistent/collwatchd.conf", &c, &err), -ENOENT);
	cr_assert_not_null(strstr(err.text, "/nonexistent/collwatchd.conf"), "%s", err.text);
}

Test(config, help_names_every_key)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	cw_config_print_help(out);
	cw_config_print_scdoc(out);
	cr_assert_eq(fclose(out), 0);
	for (unsigned i = 0; i < cw_config_n_keys; i++)
		cr_assert_not_null(strstr(text, cw_config_keys[i].name));
	free(text);
}

Test(config, reload_takes_every_key_that_may_change_and_no_other)
{
	struct cw_config *old = NULL, *new = NULL;
	struct cw_err err;

	cr_assert_eq(load("state_max = 2GiB\nstall_min = 20s\nmode = shadow\n", &old, &err), 0);
	cr_assert_eq(
		load("state_max = 3GiB\nstall_min = 30s\nwebhook_format = slack\n", &new, &err), 0);
	cw_config_take_reloadable(old, new);
	cw_config_free(new);
	cr_assert_eq(old->state_max_bytes, INT64_C(2) << 30);
	cr_assert_eq(old->stall_min_ns, 30 * CW_NS_PER_S);
	cr_assert_str_eq(old->mode, "alert");
	cr_assert_str_eq(old->webhook_format, "slack");
	cw_config_free(old);
}
