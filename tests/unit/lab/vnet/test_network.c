/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons in memory: messages get through, time passes, and nodes and links fail. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lab/vnet/network.h"
#include "model/facts.h"
#include "proto/messages.h"

#define UID 1000u
#define LABEL "job-1"
#define MAX_RANKS 16u
#define STEP_NS (100 * CW_NS_PER_MS)

/* One communicator of all, two ranks a node; from stuck_ns on, the last one enters no more calls.
 */
struct job {
	unsigned n_ranks;
	int64_t start_ns, now_ns, stuck_ns;
	unsigned windows;
};

static uint64_t seq_at(const struct job *j)
{
	int64_t ns = j->stuck_ns ? j->stuck_ns : j->now_ns;

	return (uint64_t)((ns - j->start_ns) / STEP_NS) + 100;
}

static void fill_rank(const struct job *j, unsigned rank, struct cw_msg_rank *r,
		      struct cw_msg_member *m, struct cw_msg_op *op)
{
	bool waits = j->stuck_ns && rank != j->n_ranks - 1;
	int64_t age_ns = j->stuck_ns ? j->now_ns - j->stuck_ns : 0;
	uint64_t seq = seq_at(j);

	*op = (struct cw_msg_op){ .kind = CW_OP_ALL_REDUCE,
				  .dtype = CW_DTYPE_FP32,
				  .redop = CW_REDOP_SUM,
				  .progress = waits ? CW_PROGRESS_REACHED : CW_PROGRESS_COMPLETED,
				  .flags = CW_OPF_RETURNED,
				  .root = CW_PEER_NONE,
				  .peer = CW_PEER_NONE,
				  .count = 1024,
				  .bytes = 4096,
				  .coll_seq = seq + waits,
				  .op_index = seq + waits,
				  .enter_age_ns = age_ns,
				  .return_age_ns = age_ns };
	*m = (struct cw_msg_member){ .comm_id = 77,
				     .name = "world",
				     .nranks = j->n_ranks,
				     .comm_rank = (int32_t)rank,
				     .state = CW_COMM_READY,
				     .coll_entered = seq + waits,
				     .coll_returned = seq + waits,
				     .coll_reached = seq + waits,
				     .coll_completed = seq,
				     .known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED |
					      CW_KNOWN_REACHED | CW_KNOWN_COMPLETED,
				     .op_index = seq + waits,
				     .progress_age_ns = age_ns,
				     .interval_ns = STEP_NS,
				     .last_error = "",
				     .last = op,
				     .pending = waits ? op : NULL,
				     .pending_count = waits };
	*r = (struct cw_msg_rank){ .rank = (int32_t)rank,
				   .world_size = (int32_t)j->n_ranks,
				   .rank_source = "RANK",
				   .pid = (int32_t)(1000 + rank),
				   .start_ticks = 5,
				   .uid = UID,
				   .liveness = CW_LIVE_ALIVE,
				   .flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
				   .host_activity_age_ns = age_ns,
				   .command = "train",
				   .host_activity_by = "cpu",
				   .cause_command = "",
				   .cause_group = "",
				   .nonfinite_input = "",
				   .members = m,
				   .n_members = 1 };
}

static void fill_digest(const struct job *j, unsigned node, struct cw_msg_digest *d)
{
	static struct cw_msg_member members[2];
	static struct cw_msg_rank ranks[2];
	static struct cw_msg_op ops[2];

	*d = (struct cw_msg_digest){
		.job_hash = 7, .label = LABEL, .uid = UID, .policy = "training", .ranks = ranks
	};
	for (unsigned i = 0; i < 2 && 2 * node + i < j->n_ranks; i++, d->n_ranks++)
		fill_rank(j, 2 * node + i, &ranks[i], &members[i], &ops[i]);
}

static void advance(void *user, int64_t now_ns)
{
	((struct job *)user)->now_ns = now_ns;
}

static void publish(void *user, struct network_node *n)
{
	struct cw_msg_digest d;

	fill_digest(user, n->index, &d);
	(void)network_publish(n, &d);
}

static void answer_windows(void *user, struct network_node *n, const char *from,
			   const struct cw_msg_window_request *q)
{
	struct cw_message reply = { .type = CW_MSG_WINDOW_REPLY,
				    .window_reply = { .id = q->id, .job_hash = q->job_hash } };

	((struct job *)user)->windows++;
	network_answer(n, from, &reply);
}

static const struct network_ranks ranks = { .advance = advance,
					    .publish = publish,
					    .windows = answer_windows };

struct world {
	struct job job;
	struct network *net;
};

static void begin_with(struct world *w, struct network_config config)
{
	*w = (struct world){ .job = { .n_ranks = 2 * config.n_nodes } };
	config.ranks = &ranks;
	config.user = &w->job;
	cr_assert_eq(network_new(&config, &w->net), 0);
	w->job.start_ns = w->job.now_ns = w->net->now_ns;
}

static void begin(struct world *w, unsigned n_nodes)
{
	begin_with(w, (struct network_config){ .n_nodes = n_nodes });
}

static void run(struct world *w, int64_t seconds)
{
	cr_assert_eq(network_run(w->net, seconds * CW_NS_PER_S), 0);
}

static void hang(struct world *w)
{
	w->job.stuck_ns = w->net->now_ns;
}

static void end(struct world *w)
{
	w->net = network_free(w->net);
}

static const char *class_of(const struct network_alert *a)
{
	return json_string_value(json_object_get(a->doc, "class"));
}

Test(network, a_healthy_job_has_one_leader_and_no_alert)
{
	struct world w;

	begin(&w, 4);
	run(&w, 60);
	cr_assert_geq(network_leader(w.net), 0);
	cr_assert_eq(network_job(w.net, (unsigned)network_leader(w.net))->view.ranks, 8);
	cr_assert_eq(w.net->n_alerts, 0);
	end(&w);
}

Test(network, a_hang_is_told_once_and_kept_by_its_leader)
{
	struct world w;
	const struct network_alert *a;
	int leader;

	begin(&w, 4);
	run(&w, 20);
	hang(&w);
	leader = network_leader(w.net);
	cr_assert_eq(network_run_until_alert(w.net, 800 * CW_NS_PER_S), 1);
	run(&w, 90);
	cr_assert_eq(w.net->n_alerts, 1);
	a = &w.net->alerts[0];
	cr_assert_eq(a->node, (unsigned)leader);
	cr_assert_str_eq(class_of(a), "never_entered");
	cr_assert_not_null(network_bundle(w.net, a->node, a->id));
	cr_assert_gt(w.job.windows, 0);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(fake_store_was_delivered(&w.net->nodes[i].store, a->id), i != a->node);
	end(&w);
}

Test(network, the_same_calls_give_the_same_run)
{
	struct world a, b;

	begin(&a, 3);
	begin(&b, 3);
	for (struct world *w = &a;; w = &b) {
		run(w, 20);
		hang(w);
		run(w, 700);
		if (w == &b)
			break;
	}
	cr_assert_eq(a.net->n_alerts, 1);
	cr_assert_eq(b.net->n_alerts, 1);
	cr_assert_eq(a.net->alerts[0].at_ns, b.net->alerts[0].at_ns);
	cr_assert(json_equal(a.net->alerts[0].doc, b.net->alerts[0].doc));
	end(&a);
	end(&b);
}

Test(network, the_next_one_leads_where_the_leader_ends)
{
	static const enum network_end ways[] = { NETWORK_KILLED, NETWORK_GOODBYE, NETWORK_LOST };
	struct world w;

	for (unsigned i = 0; i < 3; i++) {
		int first, second;

		begin(&w, 4);
		run(&w, 20);
		first = network_leader(w.net);
		network_kill(w.net, (unsigned)first, ways[i]);
		run(&w, 15);
		second = network_leader(w.net);
		cr_assert_geq(second, 0);
		cr_assert_neq(second, first);
		network_start(w.net, (unsigned)first);
		run(&w, 40);
		cr_assert_eq(network_leader(w.net), first, "way %u: %d leads", ways[i],
			     network_leader(w.net));
		end(&w);
	}
}

Test(network, a_lost_machine_is_noticed_when_nothing_was_answered)
{
	struct world w;
	const struct cw_peer *p;
	unsigned n;

	begin(&w, 2);
	run(&w, 20);
	p = cw_transport_peers(w.net->nodes[0].transport, &n);
	network_kill(w.net, 1, NETWORK_LOST);
	run(&w, 10);
	cr_assert_eq(p[0].state, CW_PEER_CONNECTED);
	run(&w, 6);
	cr_assert_eq(p[0].state, CW_PEER_LOST);
	network_start(w.net, 1);
	cr_assert_eq(p[0].state, CW_PEER_CONNECTED);
	end(&w);
}

Test(network, a_restarted_leader_does_not_tell_again)
{
	struct world w;

	begin(&w, 3);
	run(&w, 20);
	hang(&w);
	cr_assert_eq(network_run_until_alert(w.net, 800 * CW_NS_PER_S), 1);
	network_kill(w.net, w.net->alerts[0].node, NETWORK_KILLED);
	run(&w, 30);
	network_start(w.net, w.net->alerts[0].node);
	run(&w, 120);
	cr_assert_eq(w.net->n_alerts, 1);
	end(&w);
}

Test(network, a_leader_that_is_held_up_goes_on_with_what_waited)
{
	struct world w;
	int leader;

	begin(&w, 3);
	run(&w, 20);
	leader = network_leader(w.net);
	network_hold(w.net, (unsigned)leader);
	run(&w, 5);
	network_go_on(w.net, (unsigned)leader);
	run(&w, 30);
	cr_assert_eq(network_leader(w.net), leader);
	cr_assert_eq(w.net->n_alerts, 0);
	end(&w);
}

Test(network, what_a_stalled_link_held_comes_afterwards)
{
	struct world w;
	struct cw_transport_stats before, after;
	int leader;
	unsigned other;

	begin(&w, 2);
	run(&w, 20);
	leader = network_leader(w.net);
	other = leader ? 0 : 1;
	network_set_link(w.net, 0, 1, NETWORK_STALLED);
	cw_transport_stats(w.net->nodes[leader].transport, &before);
	run(&w, 6);
	cw_transport_stats(w.net->nodes[leader].transport, &after);
	cr_assert_eq(
		cw_transport_is_alive(w.net->nodes[leader].transport, w.net->nodes[other].name),
		true);
	before = after;
	network_set_link(w.net, 0, 1, NETWORK_JOINED);
	run(&w, 1);
	cw_transport_stats(w.net->nodes[leader].transport, &after);
	cr_assert_geq(after.received - before.received, 6, "six digests waited");
	end(&w);
}

Test(network, a_cut_link_is_noticed_and_mended)
{
	struct world w;
	const struct cw_peer *p;
	unsigned n;

	begin(&w, 2);
	network_set_link(w.net, 0, 1, NETWORK_CUT);
	p = cw_transport_peers(w.net->nodes[0].transport, &n);
	cr_assert_eq(p[0].state, CW_PEER_LOST);
	run(&w, 20);
	cr_assert_eq(network_leader(w.net), -2, "each leads what it sees");
	network_set_link(w.net, 0, 1, NETWORK_JOINED);
	cr_assert_eq(p[0].state, CW_PEER_CONNECTED);
	run(&w, 60);
	cr_assert_geq(network_leader(w.net), 0);
	end(&w);
}

Test(network, digests_that_are_late_lost_or_doubled_raise_nothing)
{
	struct world w;
	unsigned n = 0;

	begin(&w, 4);
	w.net->digest_faults = (struct network_digests){
		.late_every = 5, .lost_every = 7, .twice_every = 3, .late_ns = 2500 * CW_NS_PER_MS
	};
	run(&w, 120);
	for (unsigned i = 0; i < 16; i++)
		n += w.net->n_digests[i];
	cr_assert_gt(n, 300);
	cr_assert_eq(w.net->n_alerts, 0);
	hang(&w);
	cr_assert_eq(network_run_until_alert(w.net, 800 * CW_NS_PER_S), 1);
	cr_assert_str_eq(class_of(&w.net->alerts[0]), "never_entered");
	end(&w);
}

Test(network, machines_may_disagree_about_the_time)
{
	static const struct network_time times[3] = { { .ahead_ns = 3600 * CW_NS_PER_S },
						      { .drift_ppm = 200,
							.wall_ahead_ns = -90 * CW_NS_PER_S },
						      { .drift_ppm = -200 } };
	struct world w;

	begin_with(&w, (struct network_config){ .n_nodes = 3, .times = times });
	cr_assert_eq(cw_clock_now_ns(w.net->nodes[0].clock) -
			     cw_clock_now_ns(w.net->nodes[2].clock),
		     3600 * CW_NS_PER_S);
	run(&w, 100);
	cr_assert_eq(cw_clock_now_ns(w.net->nodes[1].clock) - w.net->now_ns, 20 * CW_NS_PER_MS);
	cr_assert_eq(w.net->n_alerts, 0);
	hang(&w);
	cr_assert_eq(network_run_until_alert(w.net, 800 * CW_NS_PER_S), 1);
	end(&w);
}

Test(network, peers_of_a_later_version_watch_along)
{
	struct world w;

	begin(&w, 4);
	network_set_newer(w.net, 1);
	network_set_newer(w.net, 2);
	run(&w, 30);
	cr_assert_eq(w.net->n_alerts, 0);
	hang(&w);
	cr_assert_eq(network_run_until_alert(w.net, 800 * CW_NS_PER_S), 1);
	cr_assert_str_eq(class_of(&w.net->alerts[0]), "never_entered");
	end(&w);
}

static void say_digest(struct network *net, const struct job *job, unsigned from, uint64_t number,
		       uint32_t type)
{
	struct cw_message msg = { .type = type };

	fill_digest(job, from, &msg.digest);
	msg.digest.node = net->nodes[from].name;
	msg.digest.epoch = 1;
	msg.digest.number = number;
	cr_assert_eq(network_say(net, from, 0, &msg), 0);
}

Test(network, one_leads_what_many_only_say)
{
	struct network_config config = { .n_nodes = 9, .n_leading = 1 };
	struct job job = { .n_ranks = 18 };
	struct network *net;

	cr_assert_eq(network_new(&config, &net), 0);
	job.start_ns = net->now_ns;
	for (uint64_t second = 1; second <= 5; second++) {
		job.now_ns = net->now_ns;
		for (unsigned i = 1; i < 9; i++)
			say_digest(net, &job, i, second, CW_MSG_DIGEST);
		cr_assert_eq(network_run(net, CW_NS_PER_S), 0);
	}
	cr_assert_eq(network_leader(net), 0);
	cr_assert_eq(network_job(net, 0)->view.ranks, 16);
	(void)network_free(net);
}

/* Their leader is lost: of the copies it has, it reads so many an iteration, and uses all. */
Test(network, who_takes_over_from_hundreds_reads_their_copies_in_several_iterations)
{
	struct network_config config = { .n_nodes = 3 * CW_LEADER_ITERATION_COPIES,
					 .n_leading = 1 };
	struct job job = { .n_ranks = 2 * config.n_nodes };
	struct network *net;
	unsigned iterations = 0;

	cr_assert_eq(network_new(&config, &net), 0);
	job.start_ns = job.now_ns = net->now_ns;
	for (unsigned i = 1; i < config.n_nodes; i++)
		say_digest(net, &job, i, 1, CW_MSG_DIGEST_COPY);
	cr_assert_eq(network_run(net, NETWORK_LEADER_EVERY_NS),
		     0); /* then it has just had its turn */
	cr_expect_null(network_job(net, 0));
	say_digest(net, &job, 1, 2, CW_MSG_DIGEST);
	for (; !network_job(net, 0) && iterations < 20; iterations++)
		cr_assert_eq(network_run(net, NETWORK_TICK_NS), 0);
	/* The first turn comes at the leader's next check; two more follow at once. */
	cr_expect_eq(iterations, NETWORK_LEADER_EVERY_NS / NETWORK_TICK_NS + 2);
	cr_assert_not_null(network_job(net, 0));
	cr_expect_eq(network_job(net, 0)->view.ranks, job.n_ranks - 2);
	(void)network_free(net);
}

Test(network, what_makes_no_sense_is_refused)
{
	struct network_config none = { 0 };
	struct network_config coarse = { .n_nodes = 1, .tick_ns = CW_NS_PER_S };
	struct network *net = NULL;

	cr_assert_eq(network_new(&none, &net), -EINVAL);
	cr_assert_eq(network_new(&coarse, &net), -EINVAL);
	cr_assert_null(net);
	cr_assert_null(network_free(NULL));
}
