/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts/mutes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/cw-mutes-XXXXXX";
static int64_t now = 1000 * CW_NS_PER_S;
static struct cw_clock clock_;
static struct cw_mutes *m;

static int64_t fake_now(void *user)
{
	return now;
}

static void reopen(void)
{
	m = cw_mutes_close(m);
	cr_assert_eq(cw_mutes_open(dir, &clock_, &m), 0);
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	clock_ = (struct cw_clock){ .monotonic_ns = fake_now, .wall_ns = fake_now };
	reopen();
}

static void teardown(void)
{
	char command[64];

	cw_mutes_close(m);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(mutes, .init = setup, .fini = teardown);

Test(mutes, fifo_in_their_place_holds_nothing_up)
{
	char path[2][64];

	(void)alarm(20); /* no process opens its other end */
	(void)snprintf(path[0], sizeof(path[0]), "%s/mutes", dir);
	(void)snprintf(path[1], sizeof(path[1]), "%s/.mutes.new", dir);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(mkfifo(path[i], 0600), 0);
	reopen();
	cr_assert_eq(cw_mutes_set(m, 7, "for-ever", CW_MUTE_FOR_EVER), 0);
	reopen();
	cr_assert_eq(cw_mutes_until(m, 7, "for-ever"), CW_MUTE_FOR_EVER);
}

Test(mutes, last_over_a_restart_and_end_by_themselves)
{
	cr_assert_eq(cw_mutes_set(m, 7, "name:my job", now + 60 * CW_NS_PER_S), 0);
	cr_assert_eq(cw_mutes_set(m, 7, "for-ever", CW_MUTE_FOR_EVER), 0);
	reopen();
	cr_assert_eq(cw_mutes_until(m, 7, "name:my job"), now + 60 * CW_NS_PER_S);
	cr_assert_eq(cw_mutes_until(m, 8, "name:my job"), 0, "another user's");
	cr_assert_eq(cw_mutes_until(m, 7, "name:my"), 0);
	now += 61 * CW_NS_PER_S;
	cr_assert_eq(cw_mutes_until(m, 7, "name:my job"), 0);
	cr_assert_eq(cw_mutes_until(m, 7, "for-ever"), CW_MUTE_FOR_EVER);
	reopen();
	cr_assert_eq(cw_mutes_until(m, 7, "name:my job"), 0);
	cr_assert_eq(cw_mutes_unset(m, 7, "for-ever"), 0);
	cr_assert_eq(cw_mutes_unset(m, 7, "for-ever"), -ENOENT);
	reopen();
	cr_assert_eq(cw_mutes_until(m, 7, "for-ever"), 0);
}

Test(mutes, of_other_nodes_hold_while_their_digests_say_so)
{
	cw_mutes_merge_remote(m, "node-b", 7, "j", now + 3600 * CW_NS_PER_S);
	cr_assert_neq(cw_mutes_until(m, 7, "j"), 0);
	cr_assert_eq(cw_mutes_own_until(m, 7, "j"), 0);
	cr_assert_str_eq(cw_mutes_where(m, 7, "j"), "node-b");
	reopen(); /* not ours to keep */
	cr_assert_eq(cw_mutes_until(m, 7, "j"), 0);
	cw_mutes_merge_remote(m, "node-b", 7, "j", now + 3600 * CW_NS_PER_S);
	now += CW_MUTES_REMOTE_KEEP_NS + 1;
	cr_assert_eq(cw_mutes_until(m, 7, "j"), 0);
	cw_mutes_merge_remote(m, "node-b", 7, "j", now + 3600 * CW_NS_PER_S);
	cw_mutes_merge_remote(m, "node-c", 7, "j", 0);
	cr_assert_neq(cw_mutes_until(m, 7, "j"), 0, "node-c's word is about node-c");
	cw_mutes_merge_remote(m, "node-b", 7, "j", 0);
	cr_assert_eq(cw_mutes_until(m, 7, "j"), 0);
	cr_assert_null(cw_mutes_where(m, 7, "j"));
}

Test(mutes, one_user_gets_a_share)
{
	char label[32];

	for (unsigned i = 0; i < CW_MUTES_MAX_PER_UID; i++) {
		(void)snprintf(label, sizeof(label), "j%u", i);
		cr_assert_eq(cw_mutes_set(m, 7, label, CW_MUTE_FOR_EVER), 0);
	}
	cr_assert_eq(cw_mutes_refused(m), 0);
	cr_assert_eq(cw_mutes_set(m, 7, "one more", CW_MUTE_FOR_EVER), -EDQUOT);
	cr_assert_eq(cw_mutes_refused(m), 1);
	cr_assert_eq(cw_mutes_set(m, 7, "j1", now + CW_NS_PER_S), 0, "replaced, not added");
	cr_assert_eq(cw_mutes_set(m, 8, "one more", CW_MUTE_FOR_EVER), 0);
	cr_assert_eq(cw_mutes_set(m, 8, "two\nlines", CW_MUTE_FOR_EVER), -EINVAL);
	cr_assert_eq(cw_mutes_set(m, 8, "", CW_MUTE_FOR_EVER), -EINVAL);
}

Test(mutes, damaged_lines_of_the_file_are_skipped)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/mutes", dir);
	f = fopen(path, "w");
	cr_assert_gt(fprintf(f,
			     "7 99999999999999999 good one\nnonsense\n7 5\n7 99999999999999999 \n"
			     "-1 x y\n\n8 99999999999999999 good two"),
		     0);
	cr_assert_eq(fclose(f), 0);
	reopen();
	cr_assert_neq(cw_mutes_until(m, 7, "good one"), 0);
	cr_assert_neq(cw_mutes_until(m, 8, "good two"), 0);
}

Test(mutes, hold_when_the_disk_does_not_take_them)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "mkdir -p '%s/.mutes.new/full'", dir);
	cr_assert_eq(system(command), 0);
	cr_assert_lt(cw_mutes_set(m, 7, "j", CW_MUTE_FOR_EVER), 0);
	cr_assert_neq(cw_mutes_until(m, 7, "j"), 0);
}

Test(mutes, read_no_more_lines_than_are_ever_written)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/mutes", dir);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	for (unsigned i = 0; i < 10 * CW_MUTES_MAX; i++)
		cr_assert_gt(fprintf(f, "%u 9100000000000000000 job\n", i), 0);
	cr_assert_eq(fclose(f), 0);
	reopen();
	cr_assert_eq(cw_mutes_refused(m), 1, "%lu lines were read and refused",
		     (unsigned long)cw_mutes_refused(m));
	cr_assert_eq(cw_mutes_until(m, 0, "job"), INT64_C(9100000000000000000));
}

Test(mutes, are_kept_in_memory_until_the_directory_is_there)
{
	char away[64];

	(void)snprintf(away, sizeof(away), "%s.away", dir);
	cr_assert_eq(cw_mutes_set(m, 7, "of-before", CW_MUTE_FOR_EVER), 0);
	cr_assert_eq(rename(dir, away), 0);
	reopen();
	cr_assert_lt(cw_mutes_set(m, 7, "job", CW_MUTE_FOR_EVER), 0);
	cr_assert_eq(cw_mutes_until(m, 7, "job"), CW_MUTE_FOR_EVER);
	cw_mutes_retry(m);
	cr_assert_eq(rename(away, dir), 0);
	cw_mutes_retry(m);
	cr_assert_eq(cw_mutes_until(m, 7, "of-before"), CW_MUTE_FOR_EVER);
	reopen();
	cr_assert_eq(cw_mutes_until(m, 7, "job"), CW_MUTE_FOR_EVER);
	cr_assert_eq(cw_mutes_until(m, 7, "of-before"), CW_MUTE_FOR_EVER);
}

Test(mutes, sixteen_users_at_their_limit_leave_places_for_others)
{
	char label[32], node[32];

	for (uint32_t uid = 1; uid <= CW_MUTES_MAX / CW_MUTES_MAX_PER_UID; uid++)
		for (unsigned i = 0; i < CW_MUTES_MAX_PER_UID; i++) {
			(void)snprintf(label, sizeof(label), "name:%u", i);
			(void)snprintf(node, sizeof(node), "node-%u", uid);
			cw_mutes_merge_remote(m, node, uid, label, CW_MUTE_FOR_EVER);
		}
	cr_expect_eq(cw_mutes_set(m, 100, "name:late", CW_MUTE_FOR_EVER), 0);
	cr_expect_eq(cw_mutes_set(m, 100, "name:later", CW_MUTE_FOR_EVER), 0);
	cr_expect_eq(cw_mutes_until(m, 1, "name:0"), CW_MUTE_FOR_EVER, "the youngest go");
	cr_expect_eq(cw_mutes_set(m, 101, "name:late", CW_MUTE_FOR_EVER), 0);
}

/* An attacker on a node may send any number of mutes. */
Test(mutes, one_other_node_mutes_only_so_many)
{
	char label[32];

	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(label, sizeof(label), "job-%u", i);
		cw_mutes_merge_remote(m, "lost", i, label, now + 3600 * CW_NS_PER_S);
	}
	cr_assert_gt(cw_mutes_until(m, 63, "job-63"), 0);
	cr_assert_eq(cw_mutes_until(m, 64, "job-64"), 0);
	cr_assert_eq(cw_mutes_refused(m), 1000 - CW_MUTES_MAX_PER_UID);
	cw_mutes_merge_remote(m, "well", 64, "job-64", now + 3600 * CW_NS_PER_S);
	cr_assert_gt(cw_mutes_until(m, 64, "job-64"), 0, "the others' stays theirs");
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(label, sizeof(label), "own-%u", i);
		cr_assert_eq(cw_mutes_set(m, i, label, now + 3600 * CW_NS_PER_S), 0);
	}
}
