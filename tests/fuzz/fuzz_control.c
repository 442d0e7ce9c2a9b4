/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on the control socket: verb, NUL, arguments. Anybody on the node can send these. The
 * verb "status" looks at no argument and needs a whole daemon: left out.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/control.h"
#include "tests/fuzz/fuzz.h"

static char dir[] = "/tmp/cw-fuzz-control-XXXXXX";

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
	(void)atexit(remove_dir);
	return store;
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
	static struct cw_store *store;
	struct cw_control_source source = { .node_name = "fuzz" };
	char text[4096];
	size_t verb_len;

	if (size > sizeof(text) - 2)
		return 0;
	if (!store)
		store = open_store();
	source.store = store;
	memcpy(text, data, size);
	text[size] = text[size + 1] = '\0';
	verb_len = strlen(text);
	if (strcmp(text, "status") == 0)
		return 0;
	for (int sees_all = 0; sees_all < 2; sees_all++)
		ask(&source, text, verb_len < size ? text + verb_len + 1 : "", sees_all);
	return 0;
}
