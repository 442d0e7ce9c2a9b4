/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/node/store_fixture.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char root[] = "/tmp/collwatch-store-XXXXXX";
int64_t now_ns = INT64_C(1790000000) * CW_NS_PER_S;

static int64_t fake_now(void *user)
{
	return now_ns;
}

int64_t wall_step_ns;
const struct cw_store_query list_all = { .is_of_all = true };

static int64_t fake_wall(void *user)
{
	return now_ns + wall_step_ns;
}

static const struct cw_clock clock_fake = { fake_now, fake_wall, NULL };

void store_setup(void)
{
	cr_assert_not_null(mkdtemp(root));
}

void store_teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", root);
	cr_assert_eq(system(command), 0);
}

struct cw_store *open_store(uint64_t max_bytes, int64_t max_age_ns)
{
	struct cw_store_config config = { .max_bytes = max_bytes,
					  .max_age_ns = max_age_ns,
					  .clock = &clock_fake };
	struct cw_store *store = NULL;
	struct cw_err err = { 0 };
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/lib/state", root);
	config.state_dir = path;
	cr_assert_eq(cw_store_open(&config, &store, &err), 0, "%s", err.text);
	return store;
}

static int put_padded(int uid, const char *job, struct cw_store *store, const char *id, size_t pad,
		      char *ret_path)
{
	char *text = malloc(pad + 1);
	struct cw_bundle bundle = { 0 };
	int r;

	memset(text, 'x', pad);
	text[pad] = '\0';
	bundle.incident =
		json_pack("{s:s,s:s,s:i,s:s,s:s,s:s,s:{s:s}}", "schema", "collwatch.incident/1",
			  "id", id, "uid", uid, "job", job, "class", "never_entered", "summary",
			  "rank 3 sleeps", "times", "confirmed", "2026-11-21T07:53:33.123Z");
	bundle.snapshot =
		json_sprintf("{\"schema\":\"collwatch.snapshot/1\",\"pad\":\"%s\"}", text);
	bundle.evidence = json_pack("[{s:s}]", "schema", "collwatch.evidence/1");
	r = cw_store_put(store, &bundle, ret_path, ret_path ? PATH_MAX : 0);
	cw_bundle_fini(&bundle);
	free(text);
	now_ns += CW_NS_PER_S;
	return r;
}

int put_for(int uid, struct cw_store *store, const char *id, size_t pad, char *ret_path)
{
	return put_padded(uid, "4711", store, id, pad, ret_path);
}

int put_job(int uid, const char *job, struct cw_store *store, const char *id)
{
	return put_padded(uid, job, store, id, 10, NULL);
}

int put(struct cw_store *store, const char *id, size_t pad, char *ret_path)
{
	return put_for(1000, store, id, pad, ret_path);
}

const char *listed_id(json_t *list, size_t i)
{
	const char *id = json_string_value(json_object_get(json_array_get(list, i), "id"));

	return id ? id : "";
}

bool is_listed(struct cw_store *store, const char *id)
{
	json_t *list = cw_store_list(store, &list_all, NULL);
	bool found = false;

	for (size_t i = 0; i < json_array_size(list); i++)
		found |= strcmp(listed_id(list, i), id) == 0;
	json_decref(list);
	return found;
}

size_t list_len(struct cw_store *store)
{
	json_t *list = cw_store_list(store, &list_all, NULL);
	size_t n = json_array_size(list);

	json_decref(list);
	return n;
}
