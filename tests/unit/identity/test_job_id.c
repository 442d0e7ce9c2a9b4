/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/job_id.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct cw_job_id job_of(uint32_t uid, const char *label)
{
	struct cw_job_id job;

	cr_assert_eq(cw_job_id_make(uid, label, &job), 0);
	return job;
}

/* Made with another implementation of SHA-256: hashlib of Python. */
Test(job_id, key_is_the_first_half_of_sha_256_over_word_uid_and_label_behind_their_lengths)
{
	static const struct cw_job_key wanted = { { 0x54, 0x09, 0x72, 0xbc, 0xcf, 0x17, 0xd3, 0xd1,
						    0x77, 0x3b, 0x75, 0x08, 0xc4, 0x6c, 0x79,
						    0x58 } };
	struct cw_job_id job = job_of(1000, "slurm:4711");

	cr_assert(cw_job_key_is_equal(&job.key, &wanted));
}

Test(job_id, users_and_labels_have_keys_of_their_own)
{
	struct cw_job_id job = job_of(1000, "name:a"), same = job_of(1000, "name:a"),
			 user = job_of(1001, "name:a"), label = job_of(1000, "name:b");

	cr_assert(cw_job_id_is_equal(&job, &same));
	cr_assert_not(cw_job_id_is_equal(&job, &user));
	cr_assert_not(cw_job_id_is_equal(&job, &label));
	cr_assert_not(cw_job_key_is_equal(&job.key, &user.key));
	cr_assert_not(cw_job_key_is_equal(&job.key, &label.key));
}

/* Found by tests/attack/label_collision.c. */
Test(job_id, labels_made_to_have_one_hash_are_two_jobs)
{
	struct cw_job_id victim = job_of(4242, "name:llama-70b-pretrain"),
			 attacker = job_of(4243, "name:VwCoIZYcquNrjKFsDu7gbE");

	cr_assert_eq(cw_job_id_hash(&victim), cw_job_id_hash(&attacker));
	cr_assert_not(cw_job_key_is_equal(&victim.key, &attacker.key));
	cr_assert_not(cw_job_id_is_equal(&victim, &attacker));
}

Test(job_id, an_equal_key_is_not_enough)
{
	struct cw_job_id victim = job_of(4242, "name:a"), user = victim, label = victim;

	user.uid++;
	label.label[5]++;
	cr_assert_not(cw_job_id_is_equal(&victim, &user));
	cr_assert_not(cw_job_id_is_equal(&victim, &label));
}

Test(job_id, no_label_and_one_that_is_too_long_name_no_job)
{
	char label[CW_JOB_LABEL_BYTES + 1];
	struct cw_job_id job;

	memset(label, 'x', sizeof(label));
	label[CW_JOB_LABEL_BYTES] = '\0';
	cr_assert_eq(cw_job_id_make(0, label, &job), -EINVAL);
	cr_assert_eq(cw_job_key_make(0, label, &job.key), -EINVAL);
	label[CW_JOB_LABEL_BYTES - 1] = '\0';
	cr_assert_eq(cw_job_id_make(0, label, &job), 0);
	cr_assert_str_eq(job.label, label);
	cr_assert_eq(cw_job_id_make(0, "", &job), -EINVAL);
	cr_assert_eq(cw_job_id_make(0, NULL, &job), -EINVAL);
}

Test(job_id, message_without_a_key_is_read_by_uid_and_label)
{
	struct cw_job_key none = { 0 };
	struct cw_job_id job, wanted = job_of(7, "name:a");

	cr_assert_eq(cw_job_id_read(&none, 7, "name:a", &job), 0);
	cr_assert(cw_job_id_is_equal(&job, &wanted));
	cr_assert_eq(cw_job_id_read(&wanted.key, 7, "name:a", &job), 0);
	cr_assert_eq(cw_job_id_read(&none, 7, "", &job), -EINVAL);
}

Test(job_id, message_with_the_key_of_another_job_is_refused)
{
	struct cw_job_id victim = job_of(7, "name:a"), job;

	cr_assert_eq(cw_job_id_read(&victim.key, 8, "name:a", &job), -EBADMSG);
	cr_assert_eq(cw_job_id_read(&victim.key, 7, "name:b", &job), -EBADMSG);
}

/* A caller may ask a table of verified jobs for it: the table holds no equal entry. */
Test(job_id, what_is_claimed_with_another_key_or_uid_is_no_known_job)
{
	struct cw_job_key none = { 0 };
	struct cw_job_id known = job_of(7, "name:a"), job;

	cr_assert(cw_job_id_claimed(&known.key, 7, "name:a", &job));
	cr_expect(cw_job_id_is_equal(&job, &known));
	cr_assert(cw_job_id_claimed(&known.key, 8, "name:a", &job));
	cr_expect(!cw_job_id_is_equal(&job, &known));
	cr_assert(cw_job_id_claimed(&known.key, 7, "name:b", &job));
	cr_expect(!cw_job_id_is_equal(&job, &known));
	cr_expect(!cw_job_id_claimed(&none, 7, "name:a", &job));
	cr_expect(!cw_job_id_claimed(&known.key, 7, "", &job));
}
