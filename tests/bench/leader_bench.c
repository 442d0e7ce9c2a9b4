/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader's cost: `leader-bench --nodes N --ranks-per-node N --comms N --seconds S [--young]
 * [--hang] [--json]`.
 *
 * One job over all nodes, healthy, in a network in memory (lab/vnet/network.h). One more node leads
 * and the others only speak: each sends its digest once a virtual second, as a frame. Measured is
 * the CPU time of the leader's iterations: decoding, keeping and evaluating, and the peak memory of
 * this process. The work of the sockets and of TLS is not in it.
 *
 * --young: before the first checkpoint of rolling hashes, that is, the first 128 calls. --hang: a
 * rank stops making calls before the measurement begins. The leader writes its bundle to a
 * directory in /tmp; we measure that with the rest, and remove it.
 *
 * Ends with 1 when the leader does not know every rank whose digest it got, when a hang of 66 s
 * brought no incident, a healthy job one, or when all of it took no time.
 *
 * Of the communicators one in four is over the whole job; the rest in turn over the ranks of a node
 * (tensor parallel) and over one rank of each node (data parallel).
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "lab/vnet/network.h"
#include "model/facts.h"
#include "model/signature.h"
#include "proto/codec.h"
#include "report/bundle.h"

/* So short that an iteration has few messages, as those of a loop of events. */
/* The daemon pages for an idle rank after ten minutes: here after one. The cost is the same. */
#define PATIENCE_DIVISOR 10
#define TICK_NS CW_NS_PER_MS
#define TICKS (CW_NS_PER_S / TICK_NS)
#define BUNDLE "bundle"
#define STEP_NS (100 * CW_NS_PER_MS)
#define MAX_RANKS_A_NODE 64
#define MAX_COMMS 64
#define N_CHECKPOINTS 8 /* the number in a record after a few thousand calls */

struct bench {
	unsigned n_nodes, per_node, n_comms, seconds;
	int64_t now_ns;
	struct network *net;
	uint64_t ticks;
	int64_t iteration_ns;         /* the CPU time at its begin */
	int64_t spent_ns;             /* by iterations */
	int64_t quarter_ns;           /* by those of this quarter of a second */
	int64_t longest_iteration_ns; /* so long the loop is held up */
	int64_t longest_quarter_ns;
	size_t digest_bytes;
	unsigned alerts, puts;
	uint64_t put_bytes; /* of the last snapshot */
	int bundles_fd;
	bool has_checkpoints;
	bool hangs;
	uint64_t hang_seq; /* the last collective that all did; 0 = no hang yet */
};

static int64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * CW_NS_PER_S + t.tv_nsec;
}

/* ---- the digests ---- */

static struct cw_msg_op last_op(uint64_t seq)
{
	return (struct cw_msg_op){ .kind = 1,
				   .dtype = 9,
				   .root = CW_PEER_NONE,
				   .peer = CW_PEER_NONE,
				   .progress = CW_PROGRESS_COMPLETED,
				   .flags = CW_OPF_RETURNED,
				   .count = 1 << 20,
				   .bytes = 1 << 21,
				   .coll_seq = seq,
				   .op_index = seq,
				   .enter_age_ns = STEP_NS,
				   .return_age_ns = STEP_NS };
}

/* As every member of a communicator has them: newest first. */
static struct cw_checkpoint *checkpoints_at(uint64_t seq)
{
	static struct cw_checkpoint list[N_CHECKPOINTS];

	for (unsigned i = 0; i < N_CHECKPOINTS; i++) {
		list[i].coll_seq = (seq / 128 - i) * 128;
		list[i].hash = cw_hash_mix64(list[i].coll_seq);
	}
	return list;
}

static int64_t hung_for_ns(const struct bench *b)
{
	return b->now_ns - (int64_t)(b->hang_seq * STEP_NS);
}

/* Every rank has entered the next one, except the first rank. */
static void wait_for_rank_0(const struct bench *b, unsigned node, unsigned local,
			    struct cw_msg_op *op, struct cw_msg_member *m)
{
	op->enter_age_ns = op->return_age_ns = hung_for_ns(b);
	if (node == 0 && local == 0)
		return;
	op->coll_seq++;
	op->op_index++;
	op->progress = CW_PROGRESS_REACHED;
	m->coll_entered++;
	m->coll_returned++;
	m->coll_reached++;
	m->op_index++;
	m->pending = op;
	m->pending_count = 1;
}

static void fill_member(const struct bench *b, unsigned node, unsigned local, unsigned comm,
			struct cw_msg_op *op, struct cw_msg_member *m)
{
	uint64_t seq = b->hang_seq ? b->hang_seq : (uint64_t)(b->now_ns / STEP_NS);

	*op = last_op(seq);
	*m = (struct cw_msg_member){
		.comm_id = (uint64_t)(comm + 1) << 32,
		.nranks = b->n_nodes * b->per_node,
		.comm_rank = (int32_t)(node * b->per_node + local),
		.name = "world",
		.last_error = "",
		.state = 2,
		.coll_entered = seq,
		.coll_returned = seq,
		.coll_reached = seq,
		.coll_completed = seq,
		.known = 0xf,
		.op_index = seq,
		.last = op,
		.checkpoints = b->has_checkpoints ? checkpoints_at(seq) : NULL,
		.n_checkpoints = b->has_checkpoints ? N_CHECKPOINTS : 0,
		.progress_age_ns = b->hang_seq ? hung_for_ns(b) : STEP_NS,
		.interval_ns = STEP_NS,
	};
	if (comm % 4 != 0 && comm % 2 == 0) {
		m->comm_id += 1 + node;
		m->nranks = b->per_node;
		m->comm_rank = (int32_t)local;
		m->name = "tp";
	} else if (comm % 4 != 0) {
		m->comm_id += 1 + local;
		m->nranks = b->n_nodes;
		m->comm_rank = (int32_t)node;
		m->name = "dp";
	}
	if (b->hang_seq && comm == 0)
		wait_for_rank_0(b, node, local, op, m);
}

static void measure(struct bench *b, const struct cw_message *msg)
{
	uint8_t *frame;

	if (cw_message_encode(msg, &frame, &b->digest_bytes) < 0)
		abort();
	free(frame);
}

static void speak(struct bench *b, unsigned node)
{
	static struct cw_msg_member members[MAX_RANKS_A_NODE][MAX_COMMS];
	static struct cw_msg_op ops[MAX_RANKS_A_NODE][MAX_COMMS];
	static struct cw_msg_rank ranks[MAX_RANKS_A_NODE];
	struct cw_message msg = { .type = CW_MSG_DIGEST,
				  .digest = { .job_hash = 1,
					      .label = "job",
					      .uid = 1000,
					      .node = b->net->nodes[node + 1].name,
					      .epoch = 1,
					      .number = b->ticks / TICKS + 1,
					      .policy = "training",
					      .ranks = ranks,
					      .n_ranks = b->per_node } };

	for (unsigned r = 0; r < b->per_node; r++) {
		for (unsigned c = 0; c < b->n_comms; c++)
			fill_member(b, node, r, c, &ops[r][c], &members[r][c]);
		ranks[r] = (struct cw_msg_rank){
			.rank = (int32_t)(node * b->per_node + r),
			.world_size = (int32_t)(b->n_nodes * b->per_node),
			.local_rank = (int32_t)r,
			.rank_source = "RANK",
			.pid = (int32_t)(1000 + r),
			.start_ticks = 5,
			.uid = 1000,
			.liveness = CW_LIVE_ALIVE,
			.flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
			.command = "python3 train.py --config large.yaml",
			.host_activity_by = "nccl",
			.host_activity_age_ns = b->hang_seq ? hung_for_ns(b) : 0,
			.cause_command = "",
			.cause_group = "",
			.members = members[r],
			.n_members = b->n_comms,
		};
	}
	if (!b->digest_bytes)
		measure(b, &msg);
	if (network_say(b->net, node + 1, 0, &msg) < 0)
		abort();
}

/* Each node once a second, evenly. */
static void advance(void *user, int64_t now_ns)
{
	struct bench *b = user;
	uint64_t at = b->ticks % TICKS;

	b->now_ns = now_ns;
	for (uint64_t i = at * b->n_nodes / TICKS; i < (at + 1) * b->n_nodes / TICKS; i++)
		speak(b, (unsigned)i);
	b->ticks++;
}

/* ---- the leader ---- */

/* Of its own: the network's keep copies, which is work that a daemon does not have. */
static int put(void *user, const struct cw_bundle *bundle)
{
	struct bench *b = ((struct network_node *)user)->network->config.user;
	struct cw_err err = { "" };
	int r = cw_bundle_write(b->bundles_fd, BUNDLE, bundle, &err);

	if (r < 0)
		(void)fprintf(stderr, "leader-bench: %s\n", err.text);
	b->puts++;
	b->put_bytes = bundle->snapshot ? json_string_length(bundle->snapshot) : 0;
	return r;
}

static int alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	struct bench *b = ((struct network_node *)user)->network->config.user;

	b->alerts++;
	return 0;
}

static void on_iteration(void *user, const struct network_node *n, bool is_end)
{
	struct bench *b = user;
	int64_t iteration;

	if (!is_end) {
		b->iteration_ns = cpu_ns();
		return;
	}
	iteration = cpu_ns() - b->iteration_ns;
	b->spent_ns += iteration;
	if (b->ticks % (TICKS / 4) == 0)
		b->quarter_ns = 0;
	b->quarter_ns += iteration;
	if (b->quarter_ns > b->longest_quarter_ns)
		b->longest_quarter_ns = b->quarter_ns;
	if (iteration > b->longest_iteration_ns)
		b->longest_iteration_ns = iteration;
}

static int64_t evaluations_cpu_ns(void *user)
{
	return cw_clock_cpu_ns();
}

static void start(struct bench *b)
{
	static const struct network_ranks ranks = { .advance = advance };
	static struct network_observer observer = { .on_iteration = on_iteration };
	static struct cw_thresholds thresholds; /* the network keeps no copy */
	struct network_config config = {
		.n_nodes = b->n_nodes + 1,
		.n_leading = 1,
		.tick_ns = TICK_NS,
		.thresholds = &thresholds,
		.cpu_ns = evaluations_cpu_ns,
		.ranks = &ranks,
		.user = b,
		.observer = &observer,
	};

	observer.user = b;
	thresholds = cw_thresholds_default();
	thresholds.no_progress_after_ns /= PATIENCE_DIVISOR;
	if (network_new(&config, &b->net) < 0)
		abort();
	b->net->nodes[0].effects.put = put;
	b->net->nodes[0].effects.alert = alert;
}

static void run_for(struct bench *b, unsigned seconds)
{
	b->spent_ns = b->quarter_ns = b->longest_iteration_ns = b->longest_quarter_ns = 0;
	if (network_run(b->net, seconds * CW_NS_PER_S) < 0)
		abort();
}

struct seen {
	unsigned jobs, ranks;
};

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	struct seen *seen = user;

	seen->jobs++;
	seen->ranks = job->view.ranks;
}

static void remove_bundles(const char *dir)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -r %s", dir);
	/* NOLINTNEXTLINE(cert-env33-c): a command of ours */
	if (system(command) != 0)
		(void)fprintf(stderr, "leader-bench: %s is left\n", dir);
}

/* A rank that stops is certain and old enough by then. */
#define HANG_MIN_S 66
/* Before anything is measured. */
#define WARM_S 3

static bool is_real(const struct bench *b, const struct seen *seen)
{
	bool must_alert = b->hangs && b->seconds >= HANG_MIN_S;

	if (seen->jobs == 1 && seen->ranks == b->n_nodes * b->per_node && b->spent_ns > 0 &&
	    (b->hangs || !b->alerts) && (!must_alert || (b->alerts && b->puts)))
		return true;
	(void)fprintf(stderr,
		      "leader-bench: %u jobs, %u ranks of %u, %u alerts, %u bundles: not what was "
		      "to be measured\n",
		      seen->jobs, seen->ranks, b->n_nodes * b->per_node, b->alerts, b->puts);
	return false;
}

static bool run(struct bench *b, bool json)
{
	char dir[] = "/tmp/leader-bench-XXXXXX";
	struct seen seen = { 0 };
	struct rusage usage;
	bool ok;

	b->bundles_fd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (b->bundles_fd < 0)
		abort();
	start(b);
	run_for(b, WARM_S);
	if (b->hangs)
		b->hang_seq = (uint64_t)(b->now_ns / STEP_NS);
	run_for(b, b->seconds);
	cw_leader_jobs(b->net->nodes[0].leader, on_job, &seen);
	(void)getrusage(RUSAGE_SELF, &usage);
	if (b->puts)
		(void)fprintf(stderr, "bundle written %u times, its snapshot has %" PRIu64 " KiB\n",
			      b->puts, b->put_bytes >> 10);
	printf(json ? "{\"nodes\":%u,\"ranks\":%u,\"jobs\":%u,\"comms\":%u,\"digest_bytes\":"
		      "%zu,\"cpu_percent\":%.1f,\"longest_quarter_ms\":%.1f,"
		      "\"longest_iteration_ms\":%.1f,\"rss_mib\":%ld,"
		      "\"alerts\":%u}\n"
		    : "%u nodes, %u ranks in %u job, %u communicators a rank, %zu bytes a "
		      "digest: %.1f %% of a core, %.1f ms in the costliest quarter of a "
		      "second, %.1f ms in the longest iteration of the loop, %ld MiB, %u alerts\n",
	       b->n_nodes, seen.ranks, seen.jobs, b->n_comms, b->digest_bytes,
	       100.0 * (double)b->spent_ns / (double)CW_NS_PER_S / b->seconds,
	       (double)b->longest_quarter_ns / 1e6, (double)b->longest_iteration_ns / 1e6,
	       usage.ru_maxrss >> 10, b->alerts);
	ok = is_real(b, &seen);
	b->net = network_free(b->net);
	(void)close(b->bundles_fd);
	remove_bundles(dir);
	return ok;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "nodes", required_argument, NULL, 'n' },
		{ "ranks-per-node", required_argument, NULL, 'r' },
		{ "comms", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 's' },
		{ "young", no_argument, NULL, 'y' },
		{ "hang", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	struct bench b = { .n_nodes = 2048,
			   .per_node = 8,
			   .n_comms = 20,
			   .seconds = 10,
			   .has_checkpoints = true };
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned *numbers[256] = { ['n'] = &b.n_nodes,
					   ['r'] = &b.per_node,
					   ['c'] = &b.n_comms,
					   ['s'] = &b.seconds };

		if (c == 'j')
			json = true;
		else if (c == 'y')
			b.has_checkpoints = false;
		else if (c == 'h')
			b.hangs = true;
		else if (c == '?')
			return 1;
		else
			*numbers[c] = (unsigned)strtoul(optarg, NULL, 10);
	}
	if (!b.n_nodes || !b.per_node || b.per_node > MAX_RANKS_A_NODE || !b.n_comms ||
	    b.n_comms > MAX_COMMS || !b.seconds) {
		(void)fprintf(stderr, "leader-bench: a number is 0 or too large\n");
		return 1;
	}
	cw_log_set_level(CW_LOG_ERR);
	return run(&b, json) ? 0 : 1;
}
