/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "leader/job.h"
#include "leader/job_digests.h"
#include "leader/snapshot_build.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "record/record_layout.h"

#define NOW (500 * CW_NS_PER_S)

/* How much later it is than NOW, and how much of that this daemon was held up. */
static int64_t later_ns, held_ns;

static int64_t now_ns(void *user)
{
	return NOW + later_ns;
}

static int64_t awake_ns(void *user)
{
	return NOW + later_ns - held_ns;
}

static const struct cw_clock clock = { .monotonic_ns = now_ns,
				       .wall_ns = now_ns,
				       .awake_ns = awake_ns };

static uint64_t epoch = 1;            /* of the node that sends */
static uint32_t type = CW_MSG_DIGEST; /* it sends this type */
static const char *policy = "";       /* … and says of the job */

static int put_sent(struct cw_job_digests *digests, const char *node, uint64_t number,
		    uint64_t sent_ns, struct cw_msg_rank *ranks, uint32_t n_ranks, bool *ret_urgent)
{
	struct cw_message msg = { .type = type,
				  .digest = { .job_hash = 1,
					      .label = "job",
					      .node = node,
					      .epoch = epoch,
					      .number = number,
					      .sent_ns = sent_ns,
					      .policy = policy,
					      .ranks = ranks,
					      .n_ranks = n_ranks } };
	struct cw_message *decoded = NULL;
	uint8_t *frame;
	size_t len;
	int r;

	cr_assert_eq(cw_message_encode(&msg, &frame, &len), 0);
	cr_assert_eq(cw_message_decode_received(frame + CW_FRAME_HEADER_BYTES,
						len - CW_FRAME_HEADER_BYTES, &decoded),
		     0);
	free(frame);
	if (!digests->label)
		cr_assert_eq(cw_job_digests_init(digests, &decoded->digest), 0);
	r = cw_job_digests_put(digests, node, &decoded, &clock, ret_urgent);
	cw_message_free(decoded);
	return r;
}

/* The way of a digest: encoded, decoded, put into the job's digests. */
static int put(struct cw_job_digests *digests, const char *node, uint64_t number,
	       struct cw_msg_rank *ranks, uint32_t n_ranks, bool *ret_urgent)
{
	return put_sent(digests, node, number, 0, ranks, n_ranks, ret_urgent);
}

static struct cw_msg_member member(uint64_t comm, uint32_t nranks, int32_t comm_rank)
{
	struct cw_msg_member m = { .comm_id = comm,
				   .nranks = nranks,
				   .comm_rank = comm_rank,
				   .name = "",
				   .last_error = "",
				   .state = CW_COMM_READY,
				   .coll_entered = 5,
				   .coll_returned = 5 };

	return m;
}

static struct cw_msg_rank rank_of(int32_t pid, struct cw_msg_member *members, uint32_t n)
{
	struct cw_msg_rank r = { .rank = -1,
				 .world_size = -1,
				 .local_rank = -1,
				 .rank_source = "",
				 .pid = pid,
				 .start_ticks = 1,
				 .liveness = CW_LIVE_ALIVE,
				 .host_activity_age_ns = -1,
				 .command = "",
				 .host_activity_by = "",
				 .cause_command = "",
				 .cause_group = "",
				 .nonfinite_input = "",
				 .members = members,
				 .n_members = n };

	return r;
}

static struct cw_snapshot *build(const struct cw_job_digests *digests, struct cw_job *job)
{
	struct cw_rank_ref *refs = NULL;
	struct cw_build in = { .digests = digests, .job = job, .now_ns = NOW, .wall_ns = NOW };
	struct cw_snapshot *snap = NULL;
	unsigned n;

	cr_assert_eq(cw_job_components(digests, &refs, &in.n_refs, &n), 0);
	in.refs = refs;
	cr_assert_eq(cw_snapshot_build(&in, &snap), 0);
	free(refs);
	return snap;
}

/*
 * The policy of the job in a look. Node "a" states `said` for ranks with or without a record, and
 * node "z", which has records, says "training".
 */
static uint32_t policy_beside_training(const char *said, uint32_t flags)
{
	struct cw_msg_member one = member(10, 2, 0), two = member(10, 2, 1);
	struct cw_msg_rank first = rank_of(1, &one, 1), second = rank_of(2, &two, 1);
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	uint32_t found;
	bool urgent;

	first.flags = flags;
	second.flags = CW_RANKF_HAS_RECORD;
	policy = said;
	cr_assert_eq(put(&digests, "a", 1, &first, 1, &urgent), 0);
	policy = "training";
	cr_assert_eq(put(&digests, "z", 1, &second, 1, &urgent), 0);
	snap = build(&digests, NULL);
	found = snap->policy;
	cw_snapshot_free(snap);
	cw_job_digests_fini(&digests);
	return found;
}

Test(job, one_node_does_not_silence_a_job_by_its_policy)
{
	cr_expect_eq(policy_beside_training("off", 0), CW_POLICY_TRAINING);
	cr_expect_eq(policy_beside_training("off", CW_RANKF_HAS_RECORD), CW_POLICY_TRAINING);
	cr_expect_eq(policy_beside_training("serving", CW_RANKF_HAS_RECORD), CW_POLICY_TRAINING);
}

Test(job, who_only_misses_ranks_does_not_know_the_policy)
{
	struct cw_msg_member one = member(10, 2, 0), two = member(10, 2, 1);
	struct cw_msg_rank missed = rank_of(1, &one, 1), seen = rank_of(2, &two, 1);
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	bool urgent;

	seen.flags = CW_RANKF_HAS_RECORD;
	cr_assert_eq(put(&digests, "a", 1, &missed, 1, &urgent), 0);
	policy = "serving";
	cr_assert_eq(put(&digests, "z", 1, &seen, 1, &urgent), 0);
	snap = build(&digests, NULL);
	cr_expect_eq(snap->policy, CW_POLICY_SERVING);
	cw_snapshot_free(snap);
	cw_job_digests_fini(&digests);
}

/* A leader keeps the components while it stays: it must never stay when there are others. */
Test(job, have_another_shape_when_ranks_or_their_communicators_are_others)
{
	struct cw_msg_member one = member(10, 2, 0), other = member(11, 2, 0);
	struct cw_msg_rank same[] = { rank_of(1, &one, 1), rank_of(2, &one, 1) };
	struct cw_msg_rank moved[] = { rank_of(1, &one, 1), rank_of(2, &other, 1) };
	struct cw_msg_rank unborn[] = { rank_of(1, &one, 1), rank_of(2, NULL, 0) };
	struct cw_job_digests digests = { 0 };
	uint64_t shape;
	bool urgent;

	cr_assert_eq(put(&digests, "y", 1, same, 2, &urgent), 0);
	shape = digests.shape;
	one.coll_entered = 7;
	cr_assert_eq(put(&digests, "y", 2, same, 2, &urgent), 0);
	cr_expect_eq(digests.shape, shape, "the same ranks, further on");
	cr_assert_eq(put(&digests, "y", 3, moved, 2, &urgent), 0);
	cr_expect_neq(digests.shape, shape, "another communicator");
	shape = digests.shape;
	cr_assert_eq(put(&digests, "y", 4, unborn, 2, &urgent), 0);
	cr_expect_neq(digests.shape, shape, "no communicator");
	shape = digests.shape;
	unborn[1].start_ticks++;
	cr_assert_eq(put(&digests, "y", 5, unborn, 2, &urgent), 0);
	cr_expect_neq(digests.shape, shape, "another process");
	shape = digests.shape;
	unborn[0].liveness = CW_LIVE_KILLED;
	cr_assert_eq(put(&digests, "y", 6, unborn, 2, &urgent), 0);
	cr_expect_neq(digests.shape, shape, "a death");
	shape = digests.shape;
	cr_assert_eq(put(&digests, "y", 7, unborn, 1, &urgent), 0);
	cr_expect_neq(digests.shape, shape, "a rank less");
	shape = digests.shape;
	cr_assert_eq(put(&digests, "x", 1, same, 2, &urgent), 0);
	cr_expect_neq(digests.shape, shape, "another node");
	cr_expect_eq(digests.n_ranks, 3);
	cr_expect_str_eq(digests.nodes[0].name, "x");
	cr_expect_eq(put(&digests, "x", 1, same, 2, &urgent), -EEXIST);
	cr_expect_eq(digests.n_ranks, 3);
	cw_job_digests_fini(&digests);
}

/*
 * A node that may lead one day keeps its copies of digests. It reads them when that day comes, some
 * in each turn.
 */
Test(job, ranks_of_copies_are_read_when_they_are_needed)
{
	struct cw_msg_member m = member(10, 2, 0);
	struct cw_msg_rank ranks[] = { rank_of(1, &m, 1), rank_of(2, &m, 1) };
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	uint64_t shape;
	bool urgent;

	type = CW_MSG_DIGEST_COPY;
	cr_assert_eq(put(&digests, "x", 1, ranks, 2, &urgent), 0);
	cr_assert_eq(put(&digests, "y", 1, ranks, 2, &urgent), 0);
	cr_assert_eq(put(&digests, "z", 1, ranks, 1, &urgent), 0);
	cr_expect_eq(digests.n_ranks, 5);
	cr_expect_null(digests.nodes[2].digest->digest.ranks);
	type = CW_MSG_DIGEST;
	cr_assert_eq(put(&digests, "z", 2, ranks, 2, &urgent), 0);
	cr_expect_eq(digests.n_ranks, 6);
	shape = digests.shape;
	cr_expect_not(cw_job_digests_read(&digests, 1), "one is left");
	cr_expect(cw_job_digests_read(&digests, 1));
	cr_expect_neq(digests.shape, shape, "their communicators are known now");
	cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
	cr_expect_eq(n, 6);
	cr_expect_eq(n_components, 1);
	cr_expect_eq(cw_job_digests_rank(&digests, &refs[3])->pid, 2);
	free(refs);
	cw_job_digests_fini(&digests);
}

Test(job, a_death_that_the_copy_before_told_of_is_not_urgent)
{
	struct cw_msg_rank dead = rank_of(1, NULL, 0);
	struct cw_job_digests digests = { 0 };
	bool urgent;

	dead.liveness = CW_LIVE_EXITED;
	type = CW_MSG_DIGEST_COPY;
	cr_assert_eq(put(&digests, "x", 1, &dead, 1, &urgent), 0);
	type = CW_MSG_DIGEST;
	cr_assert_eq(put(&digests, "x", 2, &dead, 1, &urgent), 0);
	cr_expect_not(urgent);
	cw_job_digests_fini(&digests);
}

Test(job, ranks_that_share_communicators_in_a_chain_are_one_job_others_are_not)
{
	struct cw_msg_member ab[2] = { member(10, 2, 0), member(11, 2, 0) };
	struct cw_msg_member b = member(10, 2, 1), c = member(11, 2, 1), d = member(12, 2, 0);
	struct cw_msg_rank here[] = { rank_of(1, ab, 2), rank_of(2, &b, 1) };
	struct cw_msg_rank there[] = { rank_of(1, &c, 1), rank_of(3, &d, 1) };
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	bool urgent;

	cr_assert_eq(put(&digests, "x", 1, here, 2, &urgent), 0);
	cr_assert_eq(put(&digests, "y", 1, there, 2, &urgent), 0);
	cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
	cr_assert_eq(n, 4);
	cr_assert_eq(n_components, 2);
	cr_assert_eq(refs[2].component, 0);
	cr_assert_eq(cw_job_digests_rank(&digests, &refs[2])->pid, 1);
	cr_assert_eq(cw_job_digests_rank(&digests, &refs[3])->pid, 3);
	free(refs);
	cw_job_digests_fini(&digests);
}

Test(job, same_id_with_another_instance_is_another_communicator)
{
	struct cw_msg_member a = member(10, 2, 0), b = member(10, 2, 1);
	struct cw_msg_rank ranks[] = { rank_of(1, &a, 1), rank_of(2, &b, 1) };
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	bool urgent;

	b.instance = 1;
	cr_assert_eq(put(&digests, "x", 1, ranks, 2, &urgent), 0);
	cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
	cr_assert_eq(n_components, 2);
	free(refs);
	cw_job_digests_fini(&digests);
}

Test(job, rank_without_communicator_goes_with_the_only_job_there_is)
{
	struct cw_msg_member a = member(10, 2, 0), b = member(11, 2, 0);
	struct cw_msg_rank ranks[] = { rank_of(1, &a, 1), rank_of(2, NULL, 0), rank_of(3, &b, 1) };
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	bool urgent;

	cr_assert_eq(put(&digests, "x", 1, ranks, 2, &urgent), 0);
	cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
	cr_assert_eq(n_components, 1);
	free(refs);
	cr_assert_eq(put(&digests, "x", 2, ranks, 3, &urgent), 0);
	cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
	cr_assert_eq(n_components, 3);
	free(refs);
	cw_job_digests_fini(&digests);
}

/* A launcher starts all ranks again under the same label; some fail before their first call. */
Test(job, rank_that_began_after_all_had_ended_is_of_a_later_try)
{
	struct cw_msg_member a = member(10, 2, 0);
	struct cw_msg_rank ranks[] = { rank_of(0, &a, 1), rank_of(1, NULL, 0) };
	static const struct {
		uint32_t liveness;
		int64_t ended_s, began_s; /* ago */
		unsigned wanted;
	} cases[] = {
		{ CW_LIVE_KILLED, 80, 20, 2 }, { CW_LIVE_KILLED, 80, 81, 1 },
		{ CW_LIVE_KILLED, 80, 0, 1 },  { CW_LIVE_ALIVE, 0, 20, 1 },
		{ CW_LIVE_EXITED, 20, 19, 2 },
	};
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	bool urgent;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ranks[0].liveness = cases[i].liveness;
		ranks[0].ended_age_ns = cases[i].ended_s * CW_NS_PER_S;
		ranks[1].started_age_ns = (uint64_t)(cases[i].began_s * CW_NS_PER_S);
		cr_assert_eq(put(&digests, "x", i + 1, ranks, 2, &urgent), 0);
		cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
		cr_expect_eq(n_components, cases[i].wanted, "case %u: %u", i, n_components);
		free(refs);
	}
	cw_job_digests_fini(&digests);
}

/*
 * Three tries, one of them alive. The rank without a communicator belongs to the second or third.
 */
Test(job, rank_without_communicator_is_of_the_try_that_it_lived_in)
{
	struct cw_msg_member a = member(10, 2, 0), b = member(11, 2, 0), c = member(12, 2, 0);
	struct cw_msg_rank ranks[] = { rank_of(0, &a, 1), rank_of(1, &b, 1), rank_of(2, &c, 1),
				       rank_of(3, NULL, 0) };
	static const struct {
		int64_t ended_s[3], began_s; /* ago; 0 = alive, not known */
		int with;                    /* -1 = none */
	} cases[] = {
		{ { 90, 50, 0 }, 20, 2 },  { { 90, 50, 0 }, 60, -1 }, { { 90, 50, 10 }, 60, -1 },
		{ { 90, 50, 10 }, 40, 2 }, { { 90, 50, 10 }, 5, -1 }, { { 90, 50, 0 }, 0, -1 },
		{ { 10, 50, 90 }, 40, 0 },
	};
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	bool urgent;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int with = -1;
		unsigned of = UINT32_MAX;

		for (unsigned k = 0; k < 3; k++) {
			ranks[k].liveness = cases[i].ended_s[k] ? CW_LIVE_KILLED : CW_LIVE_ALIVE;
			ranks[k].ended_age_ns = cases[i].ended_s[k] * CW_NS_PER_S;
		}
		ranks[3].started_age_ns = (uint64_t)(cases[i].began_s * CW_NS_PER_S);
		cr_assert_eq(put(&digests, "x", i + 1, ranks, 4, &urgent), 0);
		cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
		for (unsigned k = 0; k < n; k++)
			if (refs[k].rank == 3)
				of = refs[k].component;
		for (unsigned k = 0; k < n; k++)
			if (refs[k].rank != 3 && refs[k].component == of)
				with = (int)refs[k].rank;
		cr_expect_eq(with, cases[i].with, "case %u: %d", i, with);
		free(refs);
	}
	cw_job_digests_fini(&digests);
}

/* Three ranks that ended without a communicator, or with one whose making failed: of one try, or of
 * several. */
Test(job, ranks_that_ended_without_a_communicator_are_of_one_try_if_they_ended_together)
{
	struct cw_msg_member failed[] = { member(10, 3, 0), member(11, 3, 0), member(12, 3, 0) };
	struct cw_msg_rank ranks[] = { rank_of(1, NULL, 0), rank_of(2, NULL, 0),
				       rank_of(3, NULL, 0) };
	static const struct {
		const char *name;
		int64_t ended_s[3], began_s[3]; /* ago; 0 = alive, not known */
		int32_t rank[3];
		unsigned wanted;
	} cases[] = {
		{ "together", { 10, 11, 12 }, { 20, 20, 20 }, { 0, 1, 2 }, 1 },
		{ "one after the other", { 10, 12, 14 }, { 11, 13, 15 }, { 0, 1, 2 }, 1 },
		{ "without their begin", { 10, 11, 12 }, { 0, 0, 0 }, { 0, 1, 2 }, 1 },
		{ "one lives", { 0, 11, 12 }, { 20, 20, 20 }, { 0, 1, 2 }, 2 },
		{ "a later try", { 10, 30, 31 }, { 20, 40, 40 }, { 0, 1, 2 }, 2 },
		{ "a later try at once", { 10, 12, 12 }, { 11, 20, 20 }, { 0, 0, 1 }, 2 },
		{ "without numbers", { 10, 11, 12 }, { 20, 20, 20 }, { -1, -1, -1 }, 1 },
	};
	struct cw_rank_ref *refs = NULL;
	struct cw_job_digests digests = { 0 };
	unsigned n, n_components;
	bool urgent;

	for (unsigned i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		unsigned at = i / 2;

		for (unsigned k = 0; k < 3; k++) {
			failed[k].state = CW_COMM_FAILED;
			ranks[k].members = &failed[k];
			ranks[k].n_members = i % 2;
			ranks[k].rank = cases[at].rank[k];
			ranks[k].liveness = cases[at].ended_s[k] ? CW_LIVE_EXITED : CW_LIVE_ALIVE;
			ranks[k].ended_age_ns = cases[at].ended_s[k] * CW_NS_PER_S;
			ranks[k].started_age_ns = (uint64_t)(cases[at].began_s[k] * CW_NS_PER_S);
		}
		cr_assert_eq(put(&digests, "x", i + 1, ranks, 3, &urgent), 0);
		cr_assert_eq(cw_job_components(&digests, &refs, &n, &n_components), 0);
		cr_expect_eq(n_components, cases[at].wanted, "%s%s: %u", cases[at].name,
			     i % 2 ? ", making one failed" : "", n_components);
		free(refs);
	}
	cw_job_digests_fini(&digests);
}

Test(job, older_digests_are_refused_and_deaths_are_urgent)
{
	struct cw_msg_member a = member(10, 2, 0);
	struct cw_msg_rank rank = rank_of(1, &a, 1);
	struct cw_job_digests digests = { 0 };
	bool urgent = true;

	cr_assert_eq(put(&digests, "x", 5, &rank, 1, &urgent), 0);
	cr_assert_not(urgent);
	cr_assert_eq(put(&digests, "x", 5, &rank, 1, &urgent), -EEXIST);
	cr_assert_eq(put(&digests, "x", 4, &rank, 1, &urgent), -EEXIST);
	rank.liveness = CW_LIVE_KILLED;
	cr_assert_eq(put(&digests, "x", 6, &rank, 1, &urgent), 0);
	cr_assert(urgent);
	cr_assert_eq(put(&digests, "x", 7, &rank, 1, &urgent), 0);
	cr_assert_not(urgent);
	cr_assert_eq(digests.refused, 2);
	cw_job_digests_fini(&digests);
}

/* Otherwise one message with it would keep the node's own digests out until we forget the job. */
Test(job, an_epoch_in_the_future_keeps_no_digest_out)
{
	struct cw_msg_member a = member(10, 2, 0);
	struct cw_msg_rank rank = rank_of(1, &a, 1);
	struct cw_job_digests digests = { 0 };
	bool urgent;

	epoch = UINT64_MAX;
	cr_assert_eq(put(&digests, "x", UINT64_MAX, &rank, 1, &urgent), 0);
	epoch = 200;
	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), 0);
	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), -EEXIST);
	cr_assert_eq(put(&digests, "x", 2, &rank, 1, &urgent), 0);
	cw_job_digests_fini(&digests);
}

static struct cw_job *new_job(void)
{
	struct cw_job *job;

	cr_assert_eq(cw_job_new(1, NOW, &job), 0);
	return job;
}

Test(job, communicator_that_claims_to_be_huge_is_omitted_and_said)
{
	struct cw_msg_member a[2] = { member(10, UINT32_MAX, 0), member(11, 4, 2) };
	struct cw_msg_rank rank = rank_of(1, a, 2);
	struct cw_job *job = new_job();
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	bool urgent;

	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), 0);
	snap = build(&digests, job);
	cr_assert_eq(snap->n_comms, 1);
	cr_assert_eq(snap->comms[0].nranks, 4);
	cr_assert_eq(snap->n_notes, 1);
	cr_assert_not_null(strstr(snap->notes[0], "omitted"));
	cw_snapshot_free(snap);
	cw_job_free(job);
	cw_job_digests_fini(&digests);
}

Test(job, what_only_nccls_profiler_tells_is_said)
{
	struct cw_msg_member a[2] = { member(10, 2, 0), member(11, 2, 0) };
	struct cw_msg_member b[2] = { member(10, 2, 1), member(11, 2, 1) };
	struct cw_msg_rank ranks[2] = { rank_of(1, a, 2), rank_of(2, b, 2) };
	struct cw_job *job = new_job();
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	bool urgent;

	cr_assert_eq(put(&digests, "x", 1, ranks, 2, &urgent), 0);
	snap = build(&digests, job);
	cr_expect_eq(snap->n_notes, 0);
	cw_snapshot_free(snap);
	a[0].by_profiler = a[1].by_profiler = 1;
	cr_assert_eq(put(&digests, "x", 2, ranks, 2, &urgent), 0);
	snap = build(&digests, job);
	cr_assert_eq(snap->n_notes, 1);
	cr_expect(strstr(snap->notes[0], "the calls of 1 rank are known from NCCL's profiler only"),
		  "%s", snap->notes[0]);
	cw_snapshot_free(snap);
	cw_job_free(job);
	cw_job_digests_fini(&digests);
}

Test(job, connections_of_a_member_reach_the_snapshot_and_lost_ones_a_note)
{
	struct cw_msg_connection connections[] = {
		{ .peer = 1,
		  .channel = 2,
		  .steps = 40,
		  .done = 4,
		  .moved_age_ns = 9 * CW_NS_PER_S,
		  .same_since_age_ns = 8 * CW_NS_PER_S,
		  .held_ns = 7 },
		{ .peer = 2, .moved_age_ns = 1, .same_since_age_ns = 1, .held_ns = UINT64_MAX },
	};
	struct cw_msg_member m = member(7, 3, 0);
	struct cw_msg_rank rank = rank_of(1, &m, 1);
	struct cw_job_digests digests = { 0 };
	const struct cw_snap_connection *c;
	struct cw_snapshot *snap;
	bool urgent;

	m.connections = connections;
	m.n_connections = 2;
	rank.connections_lost = 3;
	cr_assert_eq(put(&digests, "a", 1, &rank, 1, &urgent), 0);
	snap = build(&digests, NULL);
	cr_assert_eq(snap->comms[0].members[0].n_connections, 2);
	c = snap->comms[0].members[0].connections;
	cr_assert_eq(c[0].peer, 1);
	cr_assert_eq(c[0].channel, 2);
	cr_assert_eq(c[0].done, 4);
	cr_assert_eq(c[0].moved_ns, NOW - 9 * CW_NS_PER_S);
	cr_assert_eq(c[0].same_since_ns, NOW - 8 * CW_NS_PER_S);
	cr_assert_eq(c[0].held_ns, 7);
	cr_assert_eq(c[1].held_ns, 0, "an impossible time is unknown");
	cr_assert_eq(snap->n_notes, 1);
	cr_assert_str_eq(snap->notes[0], "3 parts of ops on network connections of 1 rank are not "
					 "visible: all places for them were taken");
	cw_snapshot_free(snap);
	cw_job_digests_fini(&digests);
}

Test(job, many_communicators_cannot_together_be_huge_either)
{
	struct cw_msg_member many[64];
	struct cw_msg_rank rank = rank_of(1, many, 64);
	struct cw_job *job = new_job();
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	uint64_t places = 0;
	bool urgent;

	for (unsigned i = 0; i < 64; i++)
		many[i] = member(100 + i, CW_BUILD_MAX_NRANKS, 0);
	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), 0);
	snap = build(&digests, job);
	for (uint32_t i = 0; i < snap->n_comms; i++)
		places += snap->comms[i].nranks;
	cr_assert_eq(places, 64 * 1024);
	cw_snapshot_free(snap);
	cw_job_free(job);
	cw_job_digests_fini(&digests);
}

Test(job, the_living_get_a_place_that_the_dead_claim_too)
{
	struct cw_msg_member a = member(10, 2, 0), b = member(10, 2, 0);
	struct cw_msg_rank ranks[] = { rank_of(1, &a, 1), rank_of(2, &b, 1) };
	struct cw_job *job = new_job();
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	bool urgent;

	ranks[0].liveness = CW_LIVE_EXITED;
	cr_assert_eq(put(&digests, "x", 1, ranks, 2, &urgent), 0);
	snap = build(&digests, job);
	cr_assert_eq(snap->ranks[snap->comms[0].members[0].rank].pid, 2);
	cr_assert_eq(snap->n_notes, 1);
	cw_snapshot_free(snap);
	cw_job_free(job);
	cw_job_digests_fini(&digests);
}

Test(job, ages_become_instants_and_missing_labels_the_largest_comms_rank)
{
	struct cw_msg_op op = { .kind = CW_OP_ALL_REDUCE,
				.root = CW_PEER_NONE,
				.peer = CW_PEER_NONE,
				.coll_seq = 6,
				.op_index = 6,
				.enter_age_ns = 7 * CW_NS_PER_S };
	struct cw_msg_member a[2] = { member(10, 2, 1), member(11, 4, 3) };
	struct cw_msg_rank rank = rank_of(1, a, 2);
	struct cw_job *job = new_job();
	struct cw_job_digests digests = { 0 };
	struct cw_snapshot *snap;
	bool urgent;

	a[1].pending = &op;
	a[1].progress_age_ns = 9 * CW_NS_PER_S;
	rank.host_activity_age_ns = 2 * CW_NS_PER_S;
	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), 0);
	snap = build(&digests, job);
	cr_assert_eq(snap->ranks[0].rank, 3);
	cr_assert_eq(snap->ranks[0].host_activity_ns, NOW - 2 * CW_NS_PER_S);
	cr_assert_eq(snap->comms[1].members[3].pending->enter_ns, NOW - 7 * CW_NS_PER_S);
	cr_assert_eq(snap->comms[1].members[3].pending->return_ns, 0);
	cr_assert_eq(snap->comms[1].members[3].progress_ns, NOW - 9 * CW_NS_PER_S);
	cr_assert_eq(snap->ranks_expected, 4);
	cw_snapshot_free(snap);
	cw_job_free(job);
	cw_job_digests_fini(&digests);
}

Test(job, window_counts_while_its_member_stands_still)
{
	struct cw_msg_op ops[2] = { { .coll_seq = 4 }, { .coll_seq = 5 } };
	struct cw_msg_window w = {
		.comm_id = 10, .pid = 1, .start_ticks = 1, .ops = ops, .n_ops = 2
	};
	struct cw_msg_window_reply reply = { .windows = &w, .n_windows = 1 };
	struct cw_msg_member m = member(10, 2, 0);
	struct cw_msg_rank rank = rank_of(1, &m, 1);
	struct cw_job *job = new_job();
	int64_t later = NOW + CW_JOB_WINDOW_FRESH_NS + 1;

	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	cr_assert_null(cw_job_window(job, "y", &rank, &m, CW_WINDOW_LAST, NOW));
	cr_assert_not_null(cw_job_window(job, "x", &rank, &m, CW_WINDOW_LAST, NOW));
	cr_assert_not_null(cw_job_window(job, "x", &rank, &m, CW_WINDOW_LAST, later));
	m.coll_returned++;
	cr_assert_null(cw_job_window(job, "x", &rank, &m, CW_WINDOW_LAST, later));
	cr_assert_eq(job->n_window_ops, 0);
	for (unsigned i = 0; i < 3; i++) /* replaced, not piled up */
		cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	cr_assert_eq(job->n_window_ops, 2);
	cw_job_free(job);
}

/* Of one process, which drives two devices. */
Test(job, windows_of_two_members_of_a_process_do_not_replace_each_other)
{
	struct cw_msg_op ops[2] = { { .coll_seq = 4 }, { .coll_seq = 5 } };
	struct cw_msg_window w[2] = {
		{ .comm_id = 10, .pid = 1, .start_ticks = 1, .ops = &ops[0], .n_ops = 1 },
		{ .comm_id = 10,
		  .pid = 1,
		  .start_ticks = 1,
		  .comm_rank = 1,
		  .ops = &ops[1],
		  .n_ops = 1 },
	};
	struct cw_msg_window_reply reply = { .windows = w, .n_windows = 2 };
	struct cw_msg_member m[2] = { member(10, 2, 0), member(10, 2, 1) };
	struct cw_msg_rank rank = rank_of(1, m, 2);
	struct cw_job *job = new_job();

	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	for (uint32_t i = 0; i < 2; i++) {
		const struct cw_job_window *got =
			cw_job_window(job, "x", &rank, &m[i], CW_WINDOW_LAST, NOW);

		cr_assert_not_null(got);
		cr_expect_eq(got->ops[0].coll_seq, 4 + i);
	}
	cw_job_free(job);
}

Test(job, call_stacks_of_windows_become_the_snapshots)
{
	struct cw_msg_op ops[2] = { { .coll_seq = 4, .op_index = 4, .stack = 2 },
				    { .coll_seq = 5, .op_index = 5, .stack = 3 } };
	struct cw_msg_window w = {
		.comm_id = 10, .pid = 1, .start_ticks = 1, .ops = ops, .n_ops = 2
	};
	const char *first[] = { "other.py:1 in f", "train.py:7 in step" };
	const char *second[] = { "train.py:7 in step", "train.py:9 in step", "model.py:1 in g" };
	struct cw_msg_window_reply reply = {
		.windows = &w, .n_windows = 1, .stacks = first, .n_stacks = 2
	};
	struct cw_msg_member m = member(10, 2, 0);
	struct cw_msg_rank rank = rank_of(1, &m, 1);
	struct cw_job *job = new_job();
	struct cw_msg_op pending = { .op_index = 4, .coll_seq = 4 };
	struct cw_job_digests digests = { 0 };
	const struct cw_snap_member *got;
	struct cw_snapshot *snap;
	bool urgent;

	m.pending = &pending;
	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), 0);
	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	snap = build(&digests, job);
	got = &snap->comms[0].members[0];
	cr_assert_eq(got->n_window, 2);
	cr_expect_str_eq(cw_snapshot_stack(snap, &got->window[0]), "train.py:7 in step");
	cr_expect_null(cw_snapshot_stack(snap, &got->window[1]), "a number beyond the reply's");
	cr_expect_str_eq(cw_snapshot_stack(snap, got->pending), "train.py:7 in step");
	cw_snapshot_free(snap);

	reply.stacks = second;
	reply.n_stacks = 3;
	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	snap = build(&digests, job);
	got = &snap->comms[0].members[0];
	cr_expect_str_eq(cw_snapshot_stack(snap, &got->window[0]), "train.py:9 in step");
	cr_expect_str_eq(cw_snapshot_stack(snap, &got->window[1]), "model.py:1 in g");
	cw_snapshot_free(snap);
	cw_job_free(job);
	cw_job_digests_fini(&digests);
}

Test(job, window_of_where_histories_parted_stays)
{
	struct cw_msg_op ops[] = {
		{ .kind = CW_OP_ALL_REDUCE, .coll_seq = 65, .enter_age_ns = 5 }
	};
	struct cw_msg_window w = {
		.comm_id = 10, .pid = 1, .start_ticks = 1, .ops = ops, .n_ops = 1
	};
	struct cw_msg_window_reply reply = { .windows = &w, .n_windows = 1 };
	struct cw_msg_member m = member(10, 2, 0);
	struct cw_msg_rank rank = rank_of(1, &m, 1);
	struct cw_job *job = new_job();
	int64_t later = NOW + 100 * CW_JOB_WINDOW_FRESH_NS;

	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_PAST, NOW), 0);
	cr_assert_null(cw_job_window(job, "x", &rank, &m, CW_WINDOW_LAST, NOW));
	m.coll_returned += 10000;
	cr_assert_not_null(cw_job_window(job, "x", &rank, &m, CW_WINDOW_PAST, later));
	/* The other kind comes and goes beside it. */
	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	cr_assert_eq(job->n_window_ops, 2);
	cr_assert_eq(job->n_past_ops, 1);
	cw_job_free(job);
}

/* Two ranks make one communicator, of two and of three members: the one of three is there, too. */
Test(job, windows_beyond_the_limit_are_omitted_and_counted)
{
	static struct cw_msg_op many[CW_JOB_MAX_WINDOW_OPS / 2];
	struct cw_msg_window windows[3] = { 0 };
	struct cw_msg_window_reply reply = { .windows = windows, .n_windows = 3 };
	struct cw_job *job = new_job();
	uint64_t over_limit = 0;

	for (uint32_t i = 0; i < 3; i++)
		windows[i] = (struct cw_msg_window){ .comm_id = 1,
						     .pid = 10 + (int32_t)i,
						     .ops = many,
						     .n_ops = CW_JOB_MAX_WINDOW_OPS / 2 };
	job->windows_over_limit = &over_limit;
	cr_assert_eq(cw_job_window_add(job, "x", &reply, CW_WINDOW_LAST, NOW), 0);
	cr_expect_eq(over_limit, 1);
	cr_expect_eq(job->n_window_ops, CW_JOB_MAX_WINDOW_OPS);
	cw_job_free(job);
}

Test(job, communicator_is_as_large_as_its_largest_member_says)
{
	struct cw_msg_member small = member(10, 2, 0), large = member(10, 3, 2);
	struct cw_msg_rank ranks[] = { rank_of(1, &small, 1), rank_of(2, &large, 1) };
	struct cw_job_digests digests = { 0 };
	struct cw_job *job = new_job();
	struct cw_snapshot *snap;
	bool urgent;

	cr_assert_eq(put(&digests, "x", 1, ranks, 2, &urgent), 0);
	snap = build(&digests, job);
	cr_assert_eq(snap->n_comms, 1);
	cr_assert_eq(snap->comms[0].nranks, 3);
	cr_expect_neq(snap->comms[0].members[0].rank, CW_SNAP_NONE);
	cr_expect_eq(snap->comms[0].members[0].nranks, 2);
	cr_expect_eq(snap->comms[0].members[1].rank, CW_SNAP_NONE);
	cr_expect_neq(snap->comms[0].members[2].rank, CW_SNAP_NONE);
	cr_expect_eq(snap->comms[0].members[2].nranks, 3);
	cw_snapshot_free(snap);
	cw_job_digests_fini(&digests);
	cw_job_free(job);
}

Test(job, version_environment_and_nan_of_a_rank_reach_the_snapshot)
{
	struct cw_msg_member m = member(10, 2, 0);
	struct cw_msg_rank rank = rank_of(1, &m, 1);
	struct cw_job_digests digests = { 0 };
	struct cw_job *job = new_job();
	struct cw_snapshot *snap;
	bool urgent;

	rank.nccl_version = 22105;
	rank.env_hash = 0xfeedfacecafe;
	rank.nonfinite_input = "rank 1 fed 1 NaN";
	rank.nonfinite_input_age_ns = 7;
	cr_assert_eq(put(&digests, "x", 1, &rank, 1, &urgent), 0);
	snap = build(&digests, job);
	cr_expect_eq(snap->ranks[0].nccl_version, 22105);
	cr_expect_eq(snap->ranks[0].env_hash, 0xfeedfacecafe);
	cr_expect_str_eq(snap->ranks[0].nonfinite_input, "rank 1 fed 1 NaN");
	cr_expect_eq(snap->ranks[0].nonfinite_input_ns, NOW - 7);
	cw_snapshot_free(snap);
	cw_job_digests_fini(&digests);
	cw_job_free(job);
}

/* ---- digests that lay unread ---- */

#define S CW_NS_PER_S
/* The other machine's clock has nothing to do with this one's. */
#define THERE (7000 * S)

/* Sent and read so many seconds later; this daemon was held up for so long until then. */
static int64_t dated_s(struct cw_job_digests *digests, uint64_t number, int64_t sent_s,
		       int64_t read_s, int64_t held_s)
{
	struct cw_msg_member m = member(1, 2, 0);
	struct cw_msg_rank rank = rank_of(10, &m, 1);
	bool is_urgent;

	later_ns = read_s * S;
	held_ns = held_s * S;
	cr_assert_eq(put_sent(digests, "node-a", number, (uint64_t)(THERE + sent_s * S), &rank, 1,
			      &is_urgent),
		     0);
	return (digests->nodes[0].received_ns - NOW) / S;
}

Test(job, digests_that_lay_unread_are_as_old_as_they_are)
{
	struct cw_job_digests digests = { 0 };

	cr_expect_eq(dated_s(&digests, 1, 0, 0, 0), 0);
	cr_expect_eq(dated_s(&digests, 2, 1, 1, 0), 1);
	cr_expect_eq(dated_s(&digests, 3, 2, 300, 298), 2, "the first that was not read");
	cr_expect_eq(dated_s(&digests, 4, 3, 300, 298), 3);
	cr_expect_eq(dated_s(&digests, 5, 10, 300, 298), 10, "the last before it gave this one up");
	cr_expect_eq(dated_s(&digests, 6, 301, 301, 298), 301);
	cr_expect_eq(dated_s(&digests, 7, 302, 302, 298), 302);
	cw_job_digests_fini(&digests);
}

/*
 * The same holds for a peer's claim about its clock, and for a clock that stood still while its
 * machine slept.
 */
Test(job, digests_are_not_dated_back_where_nobody_was_held_up)
{
	struct cw_job_digests digests = { 0 };

	cr_expect_eq(dated_s(&digests, 1, 0, 0, 0), 0);
	cr_expect_eq(dated_s(&digests, 2, 1, 301, 0), 301);
	cr_expect_eq(dated_s(&digests, 3, 5, 320, 10), 310, "by no more than it was held up");
	cr_expect_eq(dated_s(&digests, 4, -6000, 321, 10), 321);
	cr_expect_eq(dated_s(&digests, 5, INT64_C(2000000000), 322, 10), 322);
	cw_job_digests_fini(&digests);
}
