/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on the control socket: verb, NUL, arguments. Any user on the node can send these. One
 * job is muted, so that requests about a job can mean one.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/alerts/mutes.h"
#include "daemon/control/control.h"
#include "daemon/control/status_doc.h"
#include "leader/election.h"
#include "leader/leader.h"
#include "tests/fuzz/fuzz.h"
#include "transport/transport.h"

static char dir[] = "/dev/shm/cw-fuzz-control-XXXXXX"; /* a sync there costs nothing */

static void remove_dir(void)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/incidents", dir);
	(void)rmdir(path);
	(void)rmdir(dir);
}

static struct cw_store *open_store(void)
{
	struct cw_store_config config = {
		.state_dir = dir,
		.max_bytes = 1 << 20,
		.max_age_ns = 3600 * CW_NS_PER_S,
		.clock = &cw_clock_system,
	};
	struct cw_store *store = NULL;

	FUZZ_CHECK(mkdtemp(dir));
	FUZZ_CHECK(cw_store_open(&config, &store, NULL) == 0);
	return store;
}

/* ---- a daemon without peers and ranks ---- */

static struct {
	struct cw_store *store;
	struct cw_mutes *mutes;
	struct cw_transport *transport;
	struct cw_election *members;
	struct cw_leader *leader;
} d;

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	/* Not taken: the transport frees it. */
}

static void stop(void)
{
	char path[64];

	cw_leader_free(d.leader);
	cw_election_free(d.members);
	cw_transport_free(d.transport);
	cw_mutes_close(d.mutes);
	cw_store_close(d.store);
	(void)snprintf(path, sizeof(path), "%s/mutes", dir);
	(void)unlink(path);
	remove_dir();
}

static void start(void)
{
	struct cw_transport_config transport = {
		.clock = &cw_clock_system,
		.self = "fuzz",
		.on_message = on_message,
	};
	static const struct cw_leader_effects none; /* it hears of no job */
	struct cw_leader_config leader = {
		.clock = &cw_clock_system,
		.self = "fuzz",
		.effects = &none,
		.thresholds = cw_thresholds_default(),
	};

	d.store = open_store();
	FUZZ_CHECK(cw_mutes_open(dir, &cw_clock_system, &d.mutes) == 0);
	FUZZ_CHECK(cw_transport_new(&transport, &d.transport) == 0);
	FUZZ_CHECK(cw_election_new(&cw_clock_system, "fuzz", &none, &d.members) == 0);
	leader.members = d.members;
	FUZZ_CHECK(cw_leader_new(&leader, &d.leader) == 0);
	(void)atexit(stop);
}

static void on_status(struct cw_status_source *ret, void *user)
{
	*ret = (struct cw_status_source){
		.clock = &cw_clock_system,
		.transport = d.transport,
		.members = d.members,
		.leader = d.leader,
		.mutes = d.mutes,
	};
}

static void ask(const struct cw_control_source *source, const char *verb, const char *arguments,
		bool sees_all)
{
	struct cw_caller caller = { .uid = 1000, .sees_all = sees_all };
	struct cw_control_answer answer;

	cw_control_handle(source, &caller, verb, arguments, &answer);
	FUZZ_CHECK(answer.code ? answer.error[0] != '\0' : answer.json != NULL);
	FUZZ_CHECK(memchr(answer.error, '\0', sizeof(answer.error)));
	cw_control_answer_fini(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_control_source source = { .node_name = "fuzz", .status = on_status };
	char text[4096];
	size_t verb_len;

	if (size > sizeof(text) - 2)
		return 0;
	if (!d.store)
		start();
	(void)cw_mutes_set(d.mutes, 1000, "name:fuzz", CW_MUTE_FOR_EVER);
	source.store = d.store;
	source.mutes = d.mutes;
	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	verb_len = strlen(text);
	for (int sees_all = 0; sees_all < 2; sees_all++)
		ask(&source, text, verb_len < size ? text + verb_len + 1 : "", sees_all);
	return 0;
}
