/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/json_util.h"
#include "tests/support/node/store_fixture.h"

TestSuite(store, .init = store_setup, .fini = store_teardown);

Test(store, gives_back_what_was_put_also_after_a_restart)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char path[PATH_MAX], expected[PATH_MAX];
	struct cw_bundle bundle = { 0 };
	struct stat st;

	cr_assert_eq(put(store, "aa11", 10, path), 0);
	(void)snprintf(expected, sizeof(expected), "%s/lib/state/incidents/aa11", root);
	cr_assert_str_eq(path, expected);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0750);
	for (int round = 0; round < 2; round++) {
		json_t *list = cw_store_list(store, &list_all, NULL);
		json_t *first = json_array_get(list, 0);

		cr_assert_eq(json_array_size(list), 1);
		cr_assert_str_eq(json_string_value(json_object_get(first, "job")), "4711");
		cr_assert_str_eq(json_string_value(json_object_get(first, "time")),
				 "2026-11-21T07:53:33.123Z");
		cr_assert_str_eq(json_string_value(json_object_get(first, "path")), expected);
		json_decref(list);
		cr_assert_eq(cw_store_get(store, "aa11", &bundle), 0);
		cr_assert_str_eq(json_string_value(json_object_get(bundle.incident, "class")),
				 "never_entered");
		cr_assert_eq(json_array_size(bundle.evidence), 1);
		cw_bundle_fini(&bundle);
		cw_store_close(store);
		store = open_store(1 << 30, 30 * DAY_NS);
	}
	cw_store_close(store);
}

Test(store, lists_newest_first_and_replaces_a_bundle_of_the_same_id)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	json_t *list;

	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(put(store, "a2", 10, NULL), 0);
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	list = cw_store_list(store, &list_all, NULL);
	cr_assert_eq(json_array_size(list), 2);
	cr_assert_str_eq(listed_id(list, 0), "a1");
	cr_assert_str_eq(listed_id(list, 1), "a2");
	json_decref(list);
	cw_store_close(store);
}

static void put_confirmed(struct cw_store *store, const char *id, const char *confirmed)
{
	struct cw_bundle b = { .incident =
				       json_pack("{s:s, s:s, s:i, s:{s:s}}", "id", id, "job", "j",
						 "uid", 7, "times", "confirmed", confirmed) };

	cr_assert_eq(cw_store_put(store, &b, NULL, 0), 0);
	cw_bundle_fini(&b);
	now_ns += CW_NS_PER_S;
}

Test(store, lists_by_confirmation_whatever_was_written_last)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	json_t *list;

	put_confirmed(store, "a2", "2026-11-28T12:00:00.000Z");
	put_confirmed(store, "a1", "2026-11-28T11:00:00.000Z");
	list = cw_store_list(store, &list_all, NULL);
	cr_expect_str_eq(listed_id(list, 0), "a2");
	cr_expect_str_eq(listed_id(list, 1), "a1");
	json_decref(list);
	cw_store_close(store);
}

Test(store, lists_no_more_than_is_asked_for_and_counts_the_rest)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	struct cw_store_query query = { .uid = 1000, .max = 3 };
	size_t omitted = 77;
	char id[16];
	json_t *list;

	for (unsigned i = 0; i < 10; i++) {
		(void)snprintf(id, sizeof(id), "a%u", i);
		cr_assert_eq(put_for(i < 8 ? 1000 : 1001, store, id, 10, NULL), 0);
	}
	list = cw_store_list(store, &query, &omitted);
	cr_expect_eq(json_array_size(list), 3);
	cr_expect_str_eq(listed_id(list, 0), "a7", "the newest of this user");
	cr_expect_eq(omitted, 5, "of this user alone");
	query.max = 8;
	query.max_bytes = json_dumpb(list, NULL, 0, JSON_COMPACT);
	json_decref(list);
	list = cw_store_list(store, &query, &omitted);
	cr_expect_eq(json_array_size(list), 3, "as many as fit");
	cr_expect_eq(omitted, 5);
	json_decref(list);
	query.extra_bytes = 1;
	list = cw_store_list(store, &query, &omitted);
	cr_expect_eq(json_array_size(list), 2);
	json_decref(list);
	query = (struct cw_store_query){ .is_of_all = true, .filter.job = "4712" };
	list = cw_store_list(store, &query, &omitted);
	cr_expect_eq(json_array_size(list), 0);
	cr_expect_eq(omitted, 0, "who is not wanted is not left out");
	json_decref(list);
	cw_store_close(store);
}

/* id of the only incident that a client has open */
static bool is_open(uint32_t uid, const char *job, const char *id, void *user)
{
	cr_assert_eq(uid, 1000);
	cr_assert_str_eq(job, "4711");
	return !strcmp(id, user);
}

static bool close_unseen(struct cw_store *store, const char *open_id)
{
	char id[16];

	(void)snprintf(id, sizeof(id), "%s", open_id);
	return cw_store_close_unseen(store, is_open, id);
}

/* "" = it is open */
static void expect_closed_as(struct cw_store *store, const char *id, const char *closed_as)
{
	json_t *list = cw_store_list(store, &list_all, NULL), *one;
	struct cw_bundle bundle = { 0 };
	const char *said;
	size_t i;

	cr_assert_eq(cw_store_get(store, id, &bundle), 0);
	said = json_string_value(json_object_get(bundle.incident, "closed_as"));
	cr_assert_str_eq(said ? said : "", closed_as);
	cr_assert_eq(json_array_size(bundle.evidence), 1, "the rest stays");
	cw_bundle_fini(&bundle);
	json_array_foreach (list, i, one) {
		if (strcmp(listed_id(list, i), id) != 0)
			continue;
		said = json_string_value(json_object_get(one, "closed_as"));
		cr_assert_str_eq(said ? said : "", closed_as, "in the list");
	}
	json_decref(list);
}

Test(store, closes_what_nobody_has_had_open_for_a_while_as_unseen)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(put(store, "a2", 10, NULL), 0);
	cr_assert_not(close_unseen(store, "a1"));
	now_ns += CW_STORE_UNSEEN_NS - CW_NS_PER_S;
	cr_assert_not(close_unseen(store, "a1"));
	expect_closed_as(store, "a2", "");
	now_ns += CW_NS_PER_S;
	cr_assert(close_unseen(store, "a1"));
	cr_assert_not(close_unseen(store, "a1"));
	expect_closed_as(store, "a1", "");
	expect_closed_as(store, "a2", "unseen");
	cw_store_close(store);

	/* After a restart everything has its time to be found again. */
	store = open_store(1 << 30, 30 * DAY_NS);
	now_ns += 2 * CW_STORE_UNSEEN_NS;
	cr_assert_not(close_unseen(store, ""));
	expect_closed_as(store, "a1", "");
	expect_closed_as(store, "a2", "unseen");
	now_ns += CW_STORE_UNSEEN_NS;
	cr_assert_not(close_unseen(store, "a1"), "it was found again");
	now_ns += CW_STORE_UNSEEN_NS;
	cr_assert_not(close_unseen(store, ""), "its time begins anew");
	now_ns += CW_STORE_UNSEEN_NS;
	cr_assert(close_unseen(store, ""));
	expect_closed_as(store, "a1", "unseen");
	cw_store_close(store);
}

Test(store, comes_to_each_bundle_that_nobody_has_open_however_many_there_are)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	unsigned n = 0, calls = 0;
	char id[16];

	for (unsigned i = 0; i < 600; i++) {
		(void)snprintf(id, sizeof(id), "%x", 0xa000 + i);
		cr_assert_eq(put(store, id, 10, NULL), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		cr_assert_not(close_unseen(store, ""));
	now_ns += CW_STORE_UNSEEN_NS;
	while (n < 600 && calls++ < 700)
		n += close_unseen(store, "");
	cr_assert_eq(n, 600);
	cw_store_close(store);
}

Test(store, refuses_ids_that_name_other_files)
{
	static const char *const bad[] = { "",
					   ".",
					   "..",
					   "../aa",
					   "aa/bb",
					   "AB",
					   "-a",
					   "a\n",
					   "a b",
					   "aa.new",
					   "g",
					   "/",
					   ("00000000000000000000000000000000000000000"
					    "000000000000000000000000") };
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	struct cw_bundle bundle = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_eq(put(store, bad[i], 1, NULL), -EINVAL, "put \"%s\"", bad[i]);
		cr_assert_eq(cw_store_get(store, bad[i], &bundle), -ENOENT, "get \"%s\"", bad[i]);
		cr_assert_eq(cw_store_mark_sent(store, 1000, bad[i], ""), -EINVAL, "sent \"%s\"",
			     bad[i]);
	}
	cr_assert_eq(list_len(store), 0);
	cw_store_close(store);
}

Test(store, removes_the_oldest_when_over_its_bytes)
{
	struct cw_store *store = open_store(30000, 30 * DAY_NS);
	struct cw_store_stats stats;
	char path[PATH_MAX];

	cr_assert_eq(put(store, "a1", 12000, path), 0);
	cr_assert_eq(put(store, "a2", 12000, NULL), 0);
	cr_assert(is_listed(store, "a1"));
	cr_assert_eq(put(store, "a3", 12000, NULL), 0);
	cr_assert_not(is_listed(store, "a1"));
	cr_assert(is_listed(store, "a2"));
	cr_assert(is_listed(store, "a3"));
	cr_assert_eq(access(path, F_OK), -1);
	cw_store_stats(store, &stats);
	cr_assert_eq(stats.removed, 1);
	cw_store_close(store);
}

Test(store, room_is_made_by_whoever_takes_the_most_of_it)
{
	struct cw_store *store = open_store(100000, 30 * DAY_NS);
	char id[16];

	cr_assert_eq(put_for(1001, store, "a1", 10000, NULL), 0);
	for (unsigned i = 0; i < 30; i++) {
		(void)snprintf(id, sizeof(id), "b%02x", i);
		cr_assert_eq(put_for(1000, store, id, 10000, NULL), 0);
	}
	cr_assert(is_listed(store, "a1"));
	cr_assert_not(is_listed(store, "b14"));
	cr_assert(is_listed(store, "b1d"));
	/* After a restart as well. */
	cw_store_close(store);
	store = open_store(30000, 30 * DAY_NS);
	cr_assert(is_listed(store, "a1"));
	cr_assert_eq(list_len(store), 2);
	cw_store_close(store);
}

Test(store, keeps_a_bundle_that_is_larger_than_all_the_room)
{
	struct cw_store *store = open_store(1000, 30 * DAY_NS);

	cr_assert_eq(put(store, "a1", 5000, NULL), 0);
	cr_assert(is_listed(store, "a1"));
	cw_store_close(store);
}

Test(store, removes_what_is_older_than_the_limit)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	now_ns += 31 * DAY_NS;
	cr_assert_eq(put(store, "a2", 10, NULL), 0);
	cr_assert_not(is_listed(store, "a1"));
	cr_assert(is_listed(store, "a2"));
	cw_store_close(store);
}

Test(store, a_clock_set_a_month_ahead_makes_nothing_older)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

	now_ns += DAY_NS; /* long enough for the clock to be believed */
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	wall_step_ns = 31 * DAY_NS;
	cr_assert_eq(put(store, "a2", 10, NULL), 0);
	cr_assert(is_listed(store, "a1"));
	cw_store_close(store);
	store = open_store(1 << 30, 30 * DAY_NS);
	now_ns += DAY_NS;
	cr_assert_eq(put(store, "a3", 10, NULL), 0);
	cr_assert(is_listed(store, "a1"), "nor after a restart");
	cw_store_close(store);
}

/* Files carry the wall clock's time: there, fake time must be near it. */
Test(store, a_machine_that_comes_up_with_a_wrong_clock_has_an_hour_to_put_it_right)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char path[PATH_MAX];

	now_ns = cw_clock_wall_ns(&cw_clock_system);
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cw_store_close(store);
	(void)snprintf(path, sizeof(path), "%s/lib/state/clock", root);
	(void)unlink(path); /* another boot */
	wall_step_ns = 31 * DAY_NS;
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(put(store, "a2", 10, NULL), 0);
	cr_assert(is_listed(store, "a1"));
	wall_step_ns = 0;
	now_ns += 2 * CW_STORE_CLOCK_SETTLES_NS;
	cr_assert_eq(put(store, "a3", 10, NULL), 0);
	cr_assert(is_listed(store, "a1"));
	now_ns += 31 * DAY_NS;
	cr_assert_eq(put(store, "a4", 10, NULL), 0);
	cr_assert_not(is_listed(store, "a1"), "in the end it is old");
	cw_store_close(store);
}

/* Puts files under our names, as an earlier daemon, a backup or a user may leave them. */
static void plant(const char *name, const char *kind)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/lib/state/%s", root, name);
	(void)unlink(path);
	if (!strcmp(kind, "fifo"))
		cr_assert_eq(mkfifo(path, 0600), 0);
	else if (!strcmp(kind, "directory"))
		cr_assert_eq(mkdir(path, 0700), 0);
	else
		cr_assert_eq(symlink("../../elsewhere", path), 0);
}

Test(store, what_is_no_file_of_ours_neither_holds_it_up_nor_leads_it_elsewhere)
{
	static const char *const kinds[] = { "fifo", "directory", "link" };
	static const char *const names[] = { "clock", ".clock.new", "sent", ".sent.new" };
	char elsewhere[PATH_MAX], path[PATH_MAX];
	struct stat st;

	(void)alarm(20); /* a FIFO's other end never comes */
	cw_store_close(open_store(1 << 30, 30 * DAY_NS));
	(void)snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", root);
	for (size_t k = 0; k < 3; k++) {
		struct cw_store *store;

		(void)close(open(elsewhere, O_WRONLY | O_CREAT | O_TRUNC, 0600));
		for (size_t i = 0; i < 4; i++)
			plant(names[i], kinds[k]);
		store = open_store(1 << 30, 30 * DAY_NS);
		now_ns += 2 * CW_STORE_CLOCK_SETTLES_NS;
		cr_assert_eq(put(store, "a1", 10, NULL), 0, "%s", kinds[k]);
		/* rename() does not replace a directory: an administrator has to remove it. */
		cr_assert_eq(cw_store_mark_sent(store, 1000, "a1", ""),
			     !strcmp(kinds[k], "directory") ? -EISDIR : 0, "%s", kinds[k]);
		cw_store_close(store);
		cr_assert_eq(stat(elsewhere, &st), 0);
		cr_assert_eq(st.st_size, 0, "%s: written through", kinds[k]);
		if (!strcmp(kinds[k], "directory")) {
			for (size_t i = 0; i < 4; i++) {
				(void)snprintf(path, sizeof(path), "%s/lib/state/%s", root,
					       names[i]);
				(void)rmdir(path);
			}
			continue;
		}
		for (size_t i = 0; i < 4; i += 2) {
			(void)snprintf(path, sizeof(path), "%s/lib/state/%s", root, names[i]);
			cr_assert_eq(lstat(path, &st), 0);
			cr_assert(S_ISREG(st.st_mode), "%s is still a %s", names[i], kinds[k]);
		}
	}
}

Test(store, bundle_that_is_a_link_is_not_followed)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char from[PATH_MAX], to[PATH_MAX];

	cr_assert_eq(put(store, "aa11", 10, NULL), 0);
	cw_store_close(store);
	(void)snprintf(from, sizeof(from), "%s/lib/state/incidents/aa11", root);
	(void)snprintf(to, sizeof(to), "%s/elsewhere", root);
	cr_assert_eq(rename(from, to), 0);
	cr_assert_eq(symlink(to, from), 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(list_len(store), 0);
	cw_store_close(store);
}

Test(store, clears_what_a_killed_writer_left_and_ignores_foreign_files)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char command[512];

	cw_store_close(store);
	(void)snprintf(command, sizeof(command),
		       "cd %s/lib/state/incidents && mkdir .ab12.new cc .keep abc && "
		       "echo half >.ab12.new/incident.json && echo '{' >abc/incident.json",
		       root);
	cr_assert_eq(system(command), 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_eq(list_len(store), 0);
	(void)snprintf(command, sizeof(command),
		       "cd %s/lib/state/incidents && test ! -e .ab12.new && test -d .keep && "
		       "test -d abc",
		       root);
	cr_assert_eq(system(command), 0);
	cw_store_close(store);
}

static void expect_unsent(struct cw_store *store, const char *id)
{
	json_t *doc = cw_store_next_unsent(store);
	const char *found = json_string_value(json_object_get(doc, "id"));

	cr_assert_str_eq(found ? found : "none", id);
	json_decref(doc);
}

Test(store, remembers_sent_ids_across_restarts)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char command[256];

	cr_assert_not(cw_store_was_sent(store, 1000, "ab-12"));
	cr_assert_eq(cw_store_mark_sent(store, 1000, "ab-12", ""), 0);
	cr_assert(cw_store_was_sent(store, 1000, "ab-12"));
	cw_store_close(store);
	(void)snprintf(command, sizeof(command),
		       "printf 'garbage\\n../x 1\\nff 12 sent 1000\\n' >>%s/lib/state/sent", root);
	cr_assert_eq(system(command), 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert(cw_store_was_sent(store, 1000, "ab-12"));
	cr_assert(cw_store_was_sent(store, 1000, "ff"));
	cr_assert_not(cw_store_was_sent(store, 1000, "../x"));
	cw_store_close(store);
}

Test(store, a_sent_id_says_nothing_about_another_user)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

	for (unsigned restart = 0; restart < 2; restart++) {
		cr_assert_eq(cw_store_mark_sent(store, 1001, "ab", "muted"), 0);
		cr_assert(cw_store_was_sent(store, 1001, "ab"));
		cr_assert_str_eq(cw_store_sent_how(store, 1001, "ab"), "muted");
		cr_assert_not(cw_store_was_sent(store, 1000, "ab"));
		cr_assert_str_eq(cw_store_sent_how(store, 1000, "ab"), "");
		cw_store_close(store);
		store = open_store(1 << 30, 30 * DAY_NS);
	}
	cr_assert_eq(cw_store_mark_sent(store, 1000, "ab", ""), 0);
	cr_assert(cw_store_was_sent(store, 1000, "ab"));
	cr_assert_str_eq(cw_store_sent_how(store, 1001, "ab"), "muted");
	cw_store_close(store);
}

Test(store, a_bundle_is_not_replaced_by_another_user_or_job)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	struct cw_store_stats stats;
	struct cw_bundle bundle = { 0 };

	cr_assert_eq(put_for(1000, store, "ab", 10, NULL), 0);
	for (unsigned restart = 0; restart < 2; restart++) {
		cr_assert_eq(put_for(1001, store, "ab", 10, NULL), -EPERM);
		cr_assert_eq(put_job(1000, "4712", store, "ab"), -EPERM);
		cw_store_stats(store, &stats);
		cr_assert_eq(stats.refused, 2);
		cr_assert_eq(stats.waiting, 0, "nor is it kept in memory");
		cr_assert_eq(cw_store_get(store, "ab", &bundle), 0);
		cr_assert_eq(json_integer_value(json_object_get(bundle.incident, "uid")), 1000);
		cr_assert_str_eq(json_string_value(json_object_get(bundle.incident, "job")),
				 "4711");
		cw_bundle_fini(&bundle);
		cr_assert_null(cw_store_job(store, 1001, "ab"));
		cr_assert_str_eq(cw_store_job(store, 1000, "ab"), "4711");
		cw_store_close(store);
		store = open_store(1 << 30, 30 * DAY_NS);
	}
	cr_assert_eq(put_for(1000, store, "ab", 20, NULL), 0);
	cw_store_close(store);
}

Test(store, an_incident_is_amended_and_all_else_stays)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	struct cw_bundle bundle = { 0 };
	bool is_whole = true;
	json_t *incident;

	cr_assert_eq(put_for(1000, store, "ab", 1000, NULL), 0);
	cr_assert_null(cw_store_incident(store, 1001, "4711", "ab", &is_whole));
	cr_assert_null(cw_store_incident(store, 1000, "4712", "ab", &is_whole));
	cr_assert_null(cw_store_incident(store, 1000, "4711", "cd", &is_whole));
	incident = cw_store_incident(store, 1000, "4711", "ab", &is_whole);
	cr_assert_not_null(incident);
	cr_assert_not(is_whole, "it has no stacks");
	(void)json_object_set_new(incident, "closed_as", json_string("slow"));
	cr_assert_eq(cw_store_update_incident(store, incident), 0);
	(void)json_object_set_new(incident, "uid", json_integer(1001));
	cr_assert_eq(cw_store_update_incident(store, incident), -ENOENT);
	json_decref(incident);
	for (unsigned restart = 0; restart < 2; restart++) {
		cr_assert_eq(list_len(store), 1);
		cr_assert_eq(cw_store_get(store, "ab", &bundle), 0);
		cr_assert_str_eq(json_string_value(json_object_get(bundle.incident, "closed_as")),
				 "slow");
		cr_assert_eq(json_array_size(bundle.evidence), 1);
		cr_assert_not_null(bundle.snapshot);
		cw_bundle_fini(&bundle);
		cw_store_close(store);
		store = open_store(1 << 30, 30 * DAY_NS);
	}
	cw_store_close(store);
}

Test(store, gives_out_unsent_alerts_in_turn_until_they_are_sent_or_stale)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(put(store, "a2", 10, NULL), 0);
	cr_assert_eq(cw_store_mark_sent(store, 1000, "a1", ""), 0);
	expect_unsent(store, "a2");
	expect_unsent(store, "none"); /* not again at once */
	cw_store_close(store);
	store = open_store(1 << 30, 30 * DAY_NS);
	expect_unsent(store, "a2");
	now_ns += 600 * CW_NS_PER_S;
	cr_assert_eq(put(store, "a3", 10, NULL), 0);
	expect_unsent(store, "a3"); /* never tried before */
	expect_unsent(store, "a2");
	expect_unsent(store, "none");
	now_ns += 365 * DAY_NS; /* also after the files' real times */
	expect_unsent(store, "none");
	cw_store_close(store);
}

/* The owner of the bundles is user 1000, and -1 is every user. */
Test(store, resends_nothing_when_it_has_forgotten_what_was_sent)
{
	static const char *const forgotten[] = { "1000", "-1", "1001", "4294968296" };
	static const char *const first[] = { "none", "none", "aa", "aa" };
	char command[256];

	for (size_t i = 0; i < sizeof(forgotten) / sizeof(forgotten[0]); i++) {
		struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);

		cw_store_close(store);
		(void)snprintf(command, sizeof(command),
			       "echo '# forgotten %s %lld' >%s/lib/state/sent", forgotten[i],
			       (long long)now_ns, root);
		cr_assert_eq(system(command), 0);
		store = open_store(1 << 30, 30 * DAY_NS);
		cr_assert_eq(put(store, "aa", 10, NULL), 0);
		expect_unsent(store, first[i]);
		now_ns += DAY_NS + 600 * CW_NS_PER_S; /* the forgotten ones are stale by now */
		cr_assert_eq(put(store, "ab", 10, NULL), 0);
		expect_unsent(store, "ab");
		cw_store_close(store);
		(void)snprintf(command, sizeof(command), "rm -r %s/lib/state/incidents", root);
		cr_assert_eq(system(command), 0);
	}
}

/* A file lies where its directory should be made. */
Test(store, runs_without_its_directory_and_uses_it_once_it_can)
{
	char blocker[PATH_MAX], path[PATH_MAX];
	struct cw_store_stats stats;
	struct cw_store *store;
	FILE *f;

	(void)snprintf(blocker, sizeof(blocker), "%s/lib", root);
	f = fopen(blocker, "w");
	cr_assert(f && fclose(f) == 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cw_store_stats(store, &stats);
	cr_assert_eq(stats.error, ENOTDIR);
	cr_assert_eq(put(store, "a1", 10, path), -ENOTDIR);
	cr_assert(is_listed(store, "a1"));
	cr_assert_lt(cw_store_mark_sent(store, 1000, "a1", ""), 0);
	cr_assert(cw_store_was_sent(store, 1000, "a1"));
	cr_assert_eq(cw_store_retry(store), 1);
	cr_assert_eq(unlink(blocker), 0);
	cr_assert_eq(cw_store_retry(store), 0);
	cw_store_stats(store, &stats);
	cr_assert_eq(stats.error, 0);
	cr_assert_eq(put(store, "a2", 10, path), 0);
	cr_assert_eq(access(path, F_OK), 0);
	cw_store_close(store);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert(is_listed(store, "a1"));
	cr_assert(cw_store_was_sent(store, 1000, "a1"));
	cw_store_close(store);
}

/* Entries from before the directory went away survive, and so do newer ones. */
Test(store, joins_what_it_finds_with_what_it_kept)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char dir[PATH_MAX], away[PATH_MAX];
	FILE *f;

	(void)snprintf(dir, sizeof(dir), "%s/lib", root);
	(void)snprintf(away, sizeof(away), "%s/away", root);
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(cw_store_mark_sent(store, 1000, "a1", ""), 0);
	cw_store_close(store);
	cr_assert_eq(rename(dir, away), 0);
	f = fopen(dir, "w");
	cr_assert(f && fclose(f) == 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_not(cw_store_was_sent(store, 1000, "a1"));
	cr_assert_lt(put(store, "a2", 10, NULL), 0);
	cr_assert_lt(cw_store_mark_sent(store, 1000, "a2", "muted"), 0);
	cr_assert(unlink(dir) == 0 && rename(away, dir) == 0);
	cr_assert_eq(cw_store_retry(store), 0);
	for (unsigned restart = 0; restart < 2; restart++) {
		cr_assert(is_listed(store, "a1") && is_listed(store, "a2"));
		cr_assert(cw_store_was_sent(store, 1000, "a1"));
		cr_assert_str_eq(cw_store_sent_how(store, 1000, "a2"), "muted");
		cw_store_close(store);
		store = open_store(1 << 30, 30 * DAY_NS);
	}
	cw_store_close(store);
}

Test(store, reads_no_more_lines_of_sent_alerts_than_are_ever_written)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	struct cw_store_stats stats;
	char command[256];

	cw_store_close(store);
	(void)snprintf(
		command, sizeof(command),
		"for i in $(seq 9999); do printf '%%x 1 sent 1000\\n' $i; done >%s/lib/state/sent",
		root);
	cr_assert_eq(system(command), 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cw_store_stats(store, &stats);
	cr_assert_eq(stats.refused, 1);
	cw_store_close(store);
}

static json_t *postmortem_of(const char *id, int uid, const char *job)
{
	return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:[]}", "schema",
			 "collwatch.incident/1", "id", id, "job", job, "uid", uid, "class",
			 "process_dead", "summary", "rank 4", "severity", "failed", "closed_as",
			 "job_ended", "ending", "rank 4", "ends");
}

static int put_postmortem(struct cw_store *store, const char *id, int uid, const char *job)
{
	json_t *doc = postmortem_of(id, uid, job);
	int r = cw_store_put_postmortem(store, doc);

	json_decref(doc);
	return r;
}

static const char *ending(struct cw_store *store, const char *id, bool *ret_is_alone)
{
	static char text[64];
	struct cw_bundle bundle = { 0 };

	cr_assert_eq(cw_store_get(store, id, &bundle), 0);
	(void)snprintf(text, sizeof(text), "%s", cw_json_str(bundle.incident, "ending", ""));
	cr_expect_not_null(json_object_get(bundle.incident, "ends"));
	*ret_is_alone = !strcmp(cw_json_str(bundle.incident, "severity", ""), "failed");
	cw_bundle_fini(&bundle);
	return text;
}

Test(store, postmortem_stands_alone_or_joins_its_incident)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	bool is_alone;

	cr_assert_eq(put_postmortem(store, "e1", 1000, "4711"), 0);
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(put_postmortem(store, "a1", 1000, "4711"), 0);
	cr_assert_eq(put_postmortem(store, "a1", 1000, "4711"), -EEXIST, "the first one stays");
	cr_assert_eq(put_postmortem(store, "a1", 1001, "4711"), -EPERM);
	cr_assert_eq(put_postmortem(store, "a1", 1000, "other"), -EPERM);
	cr_assert_eq(put_postmortem(store, "../a", 1000, "4711"), -EINVAL);
	/* More is learnt about the incident: the post-mortem stays. */
	cr_assert_eq(put(store, "a1", 20, NULL), 0);
	for (int restart = 0; restart < 2; restart++) {
		json_t *unsent = cw_store_next_unsent(store);

		cr_expect_str_eq(json_string_value(json_object_get(unsent, "id")), "a1",
				 "a post-mortem alone is no alert");
		json_decref(unsent);
		cr_expect_null(cw_store_next_unsent(store));
		cr_expect_eq(list_len(store), 2);
		cr_expect_str_eq(ending(store, "e1", &is_alone), "rank 4");
		cr_expect(is_alone);
		cr_expect_str_eq(ending(store, "a1", &is_alone), "rank 4");
		cr_expect_not(is_alone);
		cr_expect_eq(put_postmortem(store, "e1", 1000, "4711"), -EEXIST);
		cw_store_close(store);
		store = open_store(1 << 30, 30 * DAY_NS);
	}
	cw_store_close(store);
}

/* The leader's copy of the incident does not say how the job ended. */
Test(store, ending_stays_when_the_incident_is_updated)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	bool is_whole, is_alone;
	json_t *incident;

	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	incident = cw_store_incident(store, 1000, "4711", "a1", &is_whole);
	cr_assert_eq(put_postmortem(store, "a1", 1000, "4711"), 0);
	cr_assert_eq(json_object_set_new(incident, "closed_as", json_string("slow")), 0);
	cr_assert_eq(cw_store_update_incident(store, incident), 0);
	cr_expect_str_eq(ending(store, "a1", &is_alone), "rank 4");
	cr_expect_not(is_alone);
	json_decref(incident);
	incident = cw_store_incident(store, 1000, "4711", "a1", &is_whole);
	cr_expect_str_eq(cw_json_str(incident, "closed_as", ""), "slow");
	json_decref(incident);
	cr_assert_eq(put_postmortem(store, "e1", 1000, "4711"), 0);
	cr_expect_null(cw_store_incident(store, 1000, "4711", "e1", &is_whole), "it is no alert");
	cw_store_close(store);
}

Test(store, postmortem_that_the_disk_refuses_is_kept_in_memory)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	char dir[256], away[256];
	bool is_alone;

	(void)snprintf(dir, sizeof(dir), "%s/lib/state", root);
	(void)snprintf(away, sizeof(away), "%s/away", root);
	cw_store_close(store);
	cr_assert_eq(rename(dir, away), 0);
	cr_assert_eq(symlink("/proc/self/nowhere", dir), 0);
	store = open_store(1 << 30, 30 * DAY_NS);
	cr_assert_lt(put_postmortem(store, "e1", 1000, "4711"), 0);
	cr_assert_lt(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(put_postmortem(store, "a1", 1000, "4711"), 0);
	cr_expect_str_eq(ending(store, "a1", &is_alone), "rank 4");
	cr_assert(unlink(dir) == 0 && rename(away, dir) == 0);
	cr_assert_eq(cw_store_retry(store), 0);
	cr_expect_str_eq(ending(store, "a1", &is_alone), "rank 4");
	cr_expect_not(is_alone);
	cr_expect_str_eq(ending(store, "e1", &is_alone), "rank 4");
	cr_expect(is_alone);
	cw_store_close(store);
}

Test(store, adds_what_other_nodes_gave_to_the_bundle_of_that_user_and_job)
{
	struct cw_store *store = open_store(1 << 30, 30 * DAY_NS);
	json_t *doc = json_string("{\"node\":\"b\"}");
	struct cw_bundle bundle = { 0 };

	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_expect_eq(cw_store_add_remote_summaries(store, 1000, "4711", "a2", 1, doc), -ENOENT);
	cr_expect_eq(cw_store_add_remote_summaries(store, 1001, "4711", "a1", 1, doc), -ENOENT);
	cr_expect_eq(cw_store_add_remote_summaries(store, 1000, "4712", "a1", 1, doc), -ENOENT);
	cr_expect_eq(cw_store_add_remote_summaries(store, 1000, "4711", "a1", 1, doc), 0);
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	cr_assert_eq(cw_store_get(store, "a1", &bundle), 0);
	cr_expect_eq(json_array_size(bundle.remote_summaries), 1);
	cw_bundle_fini(&bundle);
	json_decref(doc);
	cw_store_close(store);
}

/* It may be its user's only bundle, so that others' would go for it. */
Test(store, a_bundle_grows_by_what_other_nodes_gave_to_a_part_of_the_store)
{
	struct cw_store *store = open_store(16 << 20, 30 * DAY_NS);
	char *text = malloc(300 << 10);
	json_t *doc;

	cr_assert_not_null(text);
	(void)memset(text, ' ', 300 << 10);
	(void)memcpy(text, "{}", 2);
	text[(300 << 10) - 1] = '\0';
	doc = json_string(text);
	for (int i = 0; i < 15; i++) {
		char id[8];

		(void)snprintf(id, sizeof(id), "b%d", i);
		cr_assert_eq(put_for(2000, store, id, 1 << 20, NULL), 0);
	}
	cr_assert_eq(put(store, "a1", 10, NULL), 0);
	for (unsigned i = 1; i <= 3; i++)
		cr_expect_eq(cw_store_add_remote_summaries(store, 1000, "4711", "a1", i, doc), 0);
	cr_expect_eq(cw_store_add_remote_summaries(store, 1000, "4711", "a1", 4, doc), -ENOSPC);
	cr_expect_geq(list_len(store), 15, "no bundle of another user had to go");
	json_decref(doc);
	free(text);
	cw_store_close(store);
}
