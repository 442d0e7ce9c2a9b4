/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/cluster/control_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "numerics/node/numerics_extension.h"

struct cluster c;
char control_dir[] = "/tmp/cw-control-XXXXXX";

static struct cw_store *store;

static void on_status(struct cw_status_source *ret, void *user)
{
	unsigned leader = cluster_leader(&c) < 0 ? 0 : (unsigned)cluster_leader(&c);

	*ret = (struct cw_status_source){ .clock = c.nodes[0].clock,
					  .transport = c.nodes[leader].transport,
					  .members = c.nodes[leader].election,
					  .leader = c.nodes[leader].leader };
}

struct cw_control_source source = { .status = on_status,
				    .extension = &cw_numerics_extension,
				    .node_name = "node-a" };

void control_put(const char *id, int uid, const char *job)
{
	struct cw_bundle b = {
		.incident = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:{s:s}, s:s}", "schema",
				      "collwatch.incident/1", "id", id, "job", job, "class",
				      "never_entered", "summary", "s", "uid", uid, "times",
				      "confirmed", "2026-11-21T07:53:33.123Z", "bundle", "/b"),
		.snapshot = json_object(),
		.evidence = json_array(),
	};
	char path[256];

	cr_assert_eq(cw_store_put(store, &b, path, sizeof(path)), 0);
	cw_bundle_fini(&b);
}

void control_setup(void)
{
	struct cw_store_config config = { .max_bytes = 1 << 24,
					  .max_age_ns = 86400 * 365 * 20 * CW_NS_PER_S,
					  .clock = &cw_clock_system };

	cr_assert_not_null(mkdtemp(control_dir));
	config.state_dir = control_dir;
	cr_assert_eq(cw_store_open(&config, &store, NULL), 0);
	source.store = store;
	cluster_init(&c, 2, 4);
	cluster_run(&c, 5);
	control_put("00000000000000aa", 1000, "j");
	control_put("00000000000000bb", 1001, "j");
}

void control_teardown(void)
{
	char command[128];

	cluster_fini(&c);
	cw_store_close(store);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", control_dir);
	cr_assert_eq(system(command), 0);
}
