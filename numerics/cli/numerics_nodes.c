/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First we query the local daemon for the nodes that have a job of that name; the daemon queries
 * all nodes. Then we query each of these nodes for its ranks. We fetch them page by page, because
 * the ranks of a node do not fit into one answer.
 */
#include "numerics/cli/numerics_nodes.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/control.h"
#include "cli/terminal/progress_bar.h"
#include "common/clock.h"
#include "common/job_env.h"
#include "common/or_exit/or_exit.h"
#include "common/text.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "report/json_util.h"

#define VERB "summaries"
/* Time-out of a query, longer than the daemon's own. */
#define TIMEOUT_MS 10000
/*
 * A daemon rejects a client that sends too many queries. We retry after PAUSE_MS, then after twice
 * that, and so on, TRIES times in all.
 */
#define TRIES 8
#define PAUSE_MS 200
#define NODE_BYTES 128
/* The clocks of well-kept machines differ by less than this. */
#define CLOCKS_DIFFER_NS (60 * CW_NS_PER_S)

static void wait_a_while(unsigned n)
{
	const struct timespec pause = { .tv_sec = n * PAUSE_MS / 1000,
					.tv_nsec = n * PAUSE_MS % 1000 * CW_NS_PER_MS };

	(void)nanosleep(&pause, NULL);
}

static int ask(const struct numerics_nodes *nodes, const json_t *args, json_t **ret,
	       struct cw_err *err)
{
	uint32_t code;
	int r = -EREMOTEIO;

	for (unsigned i = 0; i < TRIES && r == -EREMOTEIO; i++) {
		if (i)
			wait_a_while(i);
		r = cw_control_ask(nodes->control, VERB, args, TIMEOUT_MS, ret, &code, err);
	}
	return r;
}

/* ---- the ranks of one node ---- */

/* Makes the arguments of the query for the page after `before`. NULL = the first page. */
static json_t *page_args(const json_t *job, const struct numerics_page *before)
{
	json_t *args = json_pack("{s:O, s:O, s:O}", "node", json_object_get(job, "node"), "job",
				 json_object_get(job, "job"), "uid", json_object_get(job, "uid"));
	int bad = 0;

	if (args && before) {
		bad |= json_object_set_new(args, "after_ns", json_integer(before->last_ns));
		bad |= json_object_set_new(args, "after_pid", json_integer(before->last_pid));
	}
	return cw_json_finish(args, bad);
}

/*
 * Queries a page and adds its ranks to g. page: the previous page on entry, the new one on return.
 * *ret_n: number of ranks so far.
 */
static int add_page(const struct numerics_nodes *nodes, const json_t *job, const char *node,
		    struct numerics_gather *g, struct numerics_page *page, uint32_t *ret_n,
		    struct cw_err *err)
{
	json_t *args = cw_or_exit(page_args(job, *ret_n ? page : NULL)), *doc = NULL;
	int r = cw_or_exit_result(ask(nodes, args, &doc, err));

	json_decref(args);
	if (r == 0)
		r = numerics_gather_doc(g, doc, NULL, node, page, err);
	json_decref(doc);
	if (r == 0)
		*ret_n += page->n_ranks;
	return r == 0 && *ret_n > CW_TENSOR_SAMPLES_DOC_NODE_RANKS
		       ? cw_err_set(err, E2BIG, "more ranks than a node has")
		       : r;
}

/*
 * Adds a node's ranks. If its answer is missing or invalid, adds the node's name to silent instead,
 * and the other nodes still count.
 */
static void add_node(const struct numerics_nodes *nodes, const json_t *job,
		     struct numerics_gather *g, struct cw_numerics_input *in,
		     struct numerics_silent *silent)
{
	struct numerics_page page = { .n_ranks = 1, .n_omitted = 1 };
	const char *name = cw_json_str(job, "node", "?");
	char node[NODE_BYTES], text[2 * NODE_BYTES];
	struct cw_err err = { "" };
	uint32_t n = 0;
	int r = 0;

	(void)snprintf(node, sizeof(node), "%s", name);
	cw_text_sanitise_line(node);
	while (page.n_ranks && page.n_omitted && r == 0)
		r = add_page(nodes, job, node, g, &page, &n, &err);
	if (r == 0)
		in->n_omitted += page.n_omitted;
	if (r < 0) {
		(void)snprintf(text, sizeof(text), "%s (%s)", name, err.text);
		numerics_gather_silent(silent, r == -ENODATA ? name : text);
	}
}

/* ---- which job ---- */

static const char *label_of(const json_t *job)
{
	return cw_json_str(job, "job", "");
}

/*
 * True for a job with the name that the user gave. If a node lists a job twice, only the first
 * entry counts. Otherwise a hostile node could make us work without end.
 */
static bool is_meant(const struct numerics_nodes *nodes, const json_t *jobs, size_t i)
{
	const json_t *job = json_array_get(jobs, i);

	if (!cw_job_env_is_named(label_of(job), nodes->job))
		return false;
	for (size_t k = 0; k < i; k++)
		if (json_equal(json_array_get(jobs, k), job))
			return false;
	return true;
}

/*
 * Determines the job's user and full name. They follow from the local records or the options.
 * Without either, we take the first job in the list.
 */
static int choose_job(const struct numerics_nodes *nodes, const struct cw_numerics_input *in,
		      const json_t *jobs, int64_t *ret_uid, const char **ret_label,
		      struct cw_err *err)
{
	int64_t uid = in->uid >= 0 ? in->uid : nodes->uid;
	const char *label = in->label;
	const json_t *job;
	size_t i;

	json_array_foreach (jobs, i, job) {
		int64_t other = (int64_t)cw_json_int(job, "uid", -1);

		if (!is_meant(nodes, jobs, i))
			continue;
		if (uid < 0)
			uid = other;
		if (uid != other && nodes->uid < 0)
			return cw_err_set(
				err, ENOTUNIQ,
				"%s: users %lld and %lld have a job of that name: --uid says whose",
				nodes->job, (long long)uid, (long long)other);
		if (uid != other)
			continue;
		if (!label)
			label = label_of(job);
		if (strcmp(label, label_of(job)) != 0)
			return cw_err_set(
				err, ENOTUNIQ,
				"%s: the name is ambiguous (%s or %s): give the complete name",
				nodes->job, label, label_of(job));
	}
	*ret_uid = uid;
	*ret_label = label ? label : "";
	return 0;
}

static bool is_of(const json_t *job, int64_t uid, const char *label)
{
	return cw_json_int(job, "uid", -1) == uid && strcmp(label_of(job), label) == 0;
}

/*
 * Returns the start of the oldest live process without summaries, by the clock of its node. Ranks
 * that ended before it belong to an earlier run. We ignore a time in the future.
 */
static int64_t living_since(const json_t *living, int64_t uid, const char *label)
{
	const json_t *job;
	int64_t since_ns = 0;
	int64_t now_ns = cw_clock_wall_ns(&cw_clock_system) + CLOCKS_DIFFER_NS;
	size_t i;

	json_array_foreach (living, i, job) {
		int64_t at_ns = (int64_t)cw_json_int(job, "since_ns", 0);

		if (is_of(job, uid, label) && at_ns > 0 && at_ns <= now_ns &&
		    (!since_ns || at_ns < since_ns))
			since_ns = at_ns;
	}
	return since_ns;
}

/* ---- jobs of one host ---- */

static bool is_on(const json_t *job, const char *node)
{
	return strcmp(cw_json_str(job, "node", ""), node) == 0;
}

/*
 * Chooses one of several jobs that have the same label on different hosts: the job on this host, or
 * the only one. Sets *ret_node, which borrows from jobs or here. "": the job spans all nodes.
 */
static int choose_node(const struct numerics_nodes *nodes, const struct cw_numerics_input *in,
		       const json_t *jobs, const char *here, int64_t uid, const char *label,
		       const char **ret_node, struct cw_err *err)
{
	bool is_here = in->job.n_ranks != 0, are_several = false;
	const char *other = "";
	const json_t *job;
	size_t i;

	*ret_node = "";
	if (!cw_job_env_is_of_one_host(label))
		return 0;
	json_array_foreach (jobs, i, job) {
		if (!is_of(job, uid, label))
			continue;
		is_here = is_here || is_on(job, here);
		are_several = are_several || (*other && !is_on(job, other));
		other = cw_json_str(job, "node", "");
	}
	if (are_several && !is_here)
		return cw_err_set(err, ENOTUNIQ,
				  "%s: several nodes have a job of that name each, for its ranks "
				  "meet on loopback; %s is one: run this command on the node that "
				  "you mean",
				  nodes->job, other);
	*ret_node = is_here ? here : other;
	return 0;
}

/* Adds the ranks of all nodes. here: the name of the node whose daemon we queried. */
static int add_all(const struct numerics_nodes *nodes, const json_t *doc, const char *here,
		   struct cw_numerics_input *in, struct numerics_gather *g,
		   struct numerics_silent *silent, struct cw_err *err)
{
	const json_t *jobs = json_object_get(doc, "jobs"), *job;
	struct cw_progress_bar bar;
	const char *label = "", *node = "";
	int64_t uid = -1;
	size_t i;
	int r = choose_job(nodes, in, jobs, &uid, &label, err);

	if (r == 0)
		r = choose_node(nodes, in, jobs, here, uid, label, &node, err);
	if (r < 0)
		return r;
	/*
	 * living_since() considers all nodes. For a job on a single host it might return the time
	 * of another host's job, so we do not use it then.
	 */
	if (!*node)
		g->living_since_ns = living_since(json_object_get(doc, "living"), uid, label);
	cw_progress_bar_begin(&bar, "nodes", json_array_size(jobs), nodes->is_quiet);
	json_array_foreach (jobs, i, job) {
		if (is_meant(nodes, jobs, i) && is_of(job, uid, label) &&
		    (!*node || is_on(job, node)))
			add_node(nodes, job, g, in, silent);
		cw_progress_bar_at(&bar, i + 1, NULL);
	}
	cw_progress_bar_end(&bar);
	return r;
}

/* ---- the list of jobs ---- */

static void name_silent(const json_t *doc, struct numerics_silent *silent)
{
	const json_t *names = json_object_get(doc, "silent"), *name;
	json_int_t n = cw_json_int(doc, "silent_count", 0);
	size_t i;

	json_array_foreach (names, i, name)
		numerics_gather_silent(silent,
				       json_is_string(name) ? json_string_value(name) : "?");
	if (n > (json_int_t)json_array_size(names))
		numerics_gather_silent(silent, "others");
	if (cw_json_int(doc, "not_asked", 0) > 0)
		numerics_gather_silent(silent, "those that were not queried");
}

/*
 * Queries the list of jobs. Queries it again if some node did not answer, because too many queries
 * may have been the reason.
 */
static int list(const struct numerics_nodes *nodes, json_t **ret, struct cw_err *err)
{
	json_t *args = cw_or_exit(json_pack("{s:s}", "job", nodes->job)), *again = NULL;
	int r = ask(nodes, args, ret, err);

	if (r == 0 && json_array_size(json_object_get(*ret, "silent"))) {
		wait_a_while(2);
		if (ask(nodes, args, &again, err) == 0) {
			json_decref(*ret);
			*ret = again;
		}
	}
	json_decref(args);
	return r;
}

int numerics_nodes_gather(const struct numerics_nodes *nodes, struct cw_numerics_input *in,
			  struct numerics_gather *g, bool *ret_asked, struct cw_err *err)
{
	struct numerics_silent silent = { 0 };
	struct cw_err why = { "" };
	json_t *doc = NULL;
	int r = cw_or_exit_result(list(nodes, &doc, &why));

	*ret_asked = r != -ENOENT && r != -ECONNREFUSED;
	if (!*ret_asked)
		return 0;
	if (r < 0) /* the daemon is in trouble, so we use the local ranks only */
		cw_text_append(silent.names, sizeof(silent.names), "the daemon here (%s)",
			       why.text);
	r = add_all(nodes, doc, cw_json_str(doc, "node", ""), in, g, &silent, err);
	name_silent(doc, &silent);
	json_decref(doc);
	if (r == 0 && *silent.names)
		in->silent = cw_or_exit(cw_arena_strdup(&in->arena, silent.names));
	in->is_living = true;
	return r;
}
