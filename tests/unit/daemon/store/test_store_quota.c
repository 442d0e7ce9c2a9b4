/* SPDX-License-Identifier: Apache-2.0 */
/* One user's thousands of incidents do nothing to the alerts of others. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/support/node/store_fixture.h"

/* As many ids as are remembered of all users together. */
#define IDS 4096u

TestSuite(store_quota, .init = store_setup, .fini = store_teardown);

/* n ids of this user, all sent a minute ago. */
static void write_sent(int uid, unsigned n)
{
	char path[PATH_MAX];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/lib/state/sent", root);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%x %" PRId64 " sent %d\n", 0x10000 + i, now_ns - 60 * CW_NS_PER_S, uid);
	cr_assert_eq(fclose(f), 0);
}

static struct cw_store *store_with_sent(int uid, unsigned n)
{
	cw_store_close(open_store(1 << 30, 30 * DAY_NS)); /* makes the directories */
	write_sent(uid, n);
	return open_store(1 << 30, 30 * DAY_NS);
}

static void expect_unsent(struct cw_store *store, const char *id)
{
	json_t *doc = cw_store_next_unsent(store);
	const char *found = json_string_value(json_object_get(doc, "id"));

	cr_expect_str_eq(found ? found : "none", id);
	json_decref(doc);
}

Test(store_quota, thousands_of_sent_alerts_of_one_user_do_not_stop_those_of_others)
{
	struct cw_store *store = store_with_sent(2000, IDS + 10);

	cr_assert_eq(put_for(1000, store, "aa", 10, NULL), 0);
	expect_unsent(store, "aa");
	cw_store_close(store);
}

Test(store_quota, as_many_as_fit_stop_nobodys)
{
	struct cw_store *store = store_with_sent(2000, IDS);

	cr_assert_eq(put_for(1000, store, "aa", 10, NULL), 0);
	cr_assert_eq(put_for(2000, store, "bb", 10, NULL), 0);
	expect_unsent(store, "aa");
	expect_unsent(store, "bb");
	cw_store_close(store);
}

Test(store_quota, unsent_alerts_are_given_out_in_turns_by_user)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

	cr_assert_eq(put_for(2000, store, "b1", 10, NULL), 0);
	cr_assert_eq(put_for(2000, store, "b2", 10, NULL), 0);
	cr_assert_eq(put_for(2000, store, "b3", 10, NULL), 0);
	expect_unsent(store, "b1");
	cr_assert_eq(put_for(3000, store, "c1", 10, NULL), 0);
	expect_unsent(store, "c1");
	expect_unsent(store, "b2");
	expect_unsent(store, "b3");
	cw_store_close(store);
}

Test(store_quota, who_had_too_many_is_told_of_twice_by_nobody)
{
	static const char *const ids[] = { "f1", "f2" };
	struct cw_store *store = store_with_sent(2000, IDS + 10);

	cr_assert_eq(put_for(2000, store, "10000", 10, NULL), 0); /* its id was forgotten */
	expect_unsent(store, "none");
	cr_assert_eq(cw_store_mark_all_sent(store, 1000, ids, 2, ""), 0);
	cw_store_close(store);
	store = open_store(1 << 30, 30 * DAY_NS);
	expect_unsent(store, "none");
	cr_expect(cw_store_was_sent(store, 1000, "f1"));
	cr_expect(cw_store_was_sent(store, 1000, "f2"));
	cr_expect_not(cw_store_was_sent(store, 2000, "1000b"), "the oldest of the one with most");
	cr_expect(cw_store_was_sent(store, 2000, "1000c"));
	cr_assert_eq(cw_store_mark_sent(store, 2000, "10000", ""), 0);
	now_ns += 2 * DAY_NS; /* a forgotten one is no news any more */
	cr_assert_eq(put_for(2000, store, "ff", 10, NULL), 0);
	expect_unsent(store, "ff");
	cw_store_close(store);
}
