/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/render_status.h"

#include <stdlib.h>
#include <string.h>

#include "cli/verb.h"
#include "common/account.h"
#include "common/clock.h"
#include "common/parse.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_doc.h"
#include "report/json_util.h"
#include "report/shared_comms.h"
#include "report/text.h"

#define WIDTH 100
/* We list at most this many peers, and count the others. */
#define MAX_PEERS 8u
#define MAX_URGENCY 6u
/* We list at most this many pods of a job. More would hide the other jobs. */
#define MAX_PODS 3u

static enum cw_text_style style_of(const char *state)
{
	if (strcmp(state, "healthy") == 0)
		return CW_TEXT_GREEN;
	if (strcmp(state, "hang") == 0)
		return CW_TEXT_RED;
	return CW_TEXT_YELLOW;
}

static void put_duration(const struct cw_text *t, const json_t *seconds)
{
	char buf[64];

	fputs(cw_format_duration((int64_t)(json_number_value(seconds) * CW_NS_PER_S), buf,
				 sizeof(buf)),
	      t->out);
}

static void put_count(const struct cw_text *t, json_int_t n, const char *noun)
{
	fprintf(t->out, "%" JSON_INTEGER_FORMAT " %s%s", n, noun, n == 1 ? "" : "s");
}

/* Prints how many ranks of a job this node knows, if another node leads the job. */
static void put_ranks_here(const struct cw_text *t, const json_t *job)
{
	put_count(t, cw_json_int(job, "ranks", 0), "rank");
	fputs(" here", t->out);
}

static void put_ranks(const struct cw_text *t, const json_t *job)
{
	json_int_t expected = cw_json_int(job, "ranks_expected", 0);

	fprintf(t->out, "%" JSON_INTEGER_FORMAT, cw_json_int(job, "ranks", 0));
	if (expected)
		fprintf(t->out, " of %" JSON_INTEGER_FORMAT, expected);
	fprintf(t->out, "%s on ", expected == 1 ? " rank" : " ranks");
	put_count(t, (json_int_t)json_array_size(json_object_get(job, "nodes")), "node");
	fputs(", ", t->out);
	put_count(t, cw_json_int(job, "comms", 0), "communicator");
}

static void put_muted(const struct cw_text *t, const json_t *muted)
{
	const char *until = cw_json_str(muted, "until", NULL);

	if (!json_is_object(muted))
		return;
	fprintf(t->out, "%12s", "");
	cw_text_put(t, CW_TEXT_YELLOW, "muted");
	fputs(" on ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(muted, "node", "?"));
	fputs(until ? " until " : " until it is unmuted", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, until ? until : "");
	fputc('\n', t->out);
}

static void put_suppressed(const struct cw_text *t, const json_t *job)
{
	const char *why = cw_json_str(job, "suppressed", "");

	if (!*why)
		return;
	fprintf(t->out, "%12swould have alerted (", "");
	cw_text_put(t, CW_TEXT_YELLOW, why);
	fputs(")\n", t->out);
}

static void put_proposal(const struct cw_text *t, const json_t *job)
{
	if (strcmp(cw_json_str(job, "proposed_policy", ""), "serving") != 0)
		return;
	fprintf(t->out, "%12s", "");
	cw_text_wrap(
		t, 12, 12,
		"looks like a server that waits for requests: set COLLWATCH_POLICY=serving in its "
		"environment");
}

static void put_pods(const struct cw_text *t, const json_t *pods)
{
	size_t n = json_array_size(pods);

	if (!n)
		return;
	fprintf(t->out, "%12s%s ", "", n == 1 ? "pod" : "pods");
	for (size_t i = 0; i < n && i < MAX_PODS; i++) {
		const char *name = json_string_value(json_array_get(pods, i));

		fputs(i ? ", " : "", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, name ? name : "?");
	}
	fputs(n > MAX_PODS ? ", …\n" : "\n", t->out);
}

static void put_slow(const struct cw_text *t, const json_t *slow)
{
	if (!json_is_object(slow))
		return;
	fprintf(t->out, "%12swas slow for ", "");
	put_duration(t, json_object_get(slow, "lasted_s"));
	fputs(", ", t->out);
	put_duration(t, json_object_get(slow, "ago_s"));
	fprintf(t->out, " ago:\n%12s", "");
	cw_text_wrap(t, 12, 12, cw_json_str(slow, "summary", ""));
}

static void put_late(const struct cw_text *t, const json_t *list)
{
	const json_t *late;
	size_t i;

	json_array_foreach (list, i, late) {
		fprintf(t->out, "%12s", "");
		cw_text_wrap(t, 12, 12, cw_json_str(late, "summary", ""));
	}
}

void cw_render_late(FILE *out, const json_t *status)
{
	struct cw_text t = { .out = out };
	const json_t *job, *late;
	size_t i, k;

	json_array_foreach (json_object_get(status, "jobs"), i, job) {
		json_array_foreach (json_object_get(job, "late"), k, late) {
			cw_text_put(&t, CW_TEXT_PLAIN, cw_doc_job(job, "?"));
			fputs(": ", out);
			cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(late, "summary", ""));
			fputc('\n', out);
		}
	}
}

/*
 * True if the jobs belong to several users. The daemon shows such a list only to callers that may
 * see all jobs.
 */
static bool has_several_users(const json_t *jobs)
{
	json_int_t first = cw_json_int(json_array_get(jobs, 0), "uid", -1);
	const json_t *job;
	size_t i;

	json_array_foreach (jobs, i, job) {
		if (cw_json_int(job, "uid", -1) != first)
			return true;
	}
	return false;
}

/*
 * Prints the user's name on this machine. On the daemon's machine the user may have another name,
 * or none.
 */
static void put_user(const struct cw_text *t, const json_t *job)
{
	json_int_t uid = cw_json_int(job, "uid", -1);
	char name[CW_ACCOUNT_NAME_MAX];

	if (uid < 0)
		return;
	fputs(" of ", t->out);
	if (uid < UINT32_MAX && cw_account_user((uid_t)uid, name) == 0)
		cw_text_put(t, CW_TEXT_PLAIN, name);
	else
		fprintf(t->out, "uid %" JSON_INTEGER_FORMAT, uid);
}

static void put_job(const struct cw_text *t, const json_t *job, bool with_user)
{
	const char *state = cw_json_str(job, "state", "?");
	const char *incident = cw_json_str(job, "incident", "");
	const char *summary = cw_json_str(job, "summary", "");
	char words[64];

	fputs("  ", t->out);
	(void)cw_doc_words(state, words, sizeof(words));
	cw_text_put(t, style_of(state), words);
	fprintf(t->out, "%*s", strlen(words) < 10 ? (int)(10 - strlen(words)) : 1, "");
	cw_text_put(t, CW_TEXT_BOLD, cw_doc_job(job, "?"));
	if (with_user)
		put_user(t, job);
	fputs("  ", t->out);
	if (strcmp(state, "led_elsewhere") == 0 || strcmp(state, "untracked") == 0)
		put_ranks_here(t, job);
	else
		put_ranks(t, job);
	fputs(", led by ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(job, "leader", "?"));
	fputs(", for ", t->out);
	put_duration(t, json_object_get(job, "since_s"));
	fputc('\n', t->out);
	put_muted(t, json_object_get(job, "muted"));
	put_suppressed(t, job);
	put_pods(t, json_object_get(job, "pods"));
	if (*summary) {
		fprintf(t->out, "%*s", 12, "");
		cw_text_wrap(t, 12, 12, summary);
	}
	put_slow(t, json_object_get(job, "slow"));
	put_late(t, json_object_get(job, "late"));
	put_proposal(t, job);
	if (*incident) {
		fprintf(t->out, "%*scollwatch report ", 12, "");
		cw_text_put(t, CW_TEXT_BOLD, incident);
		fputc('\n', t->out);
	}
}

/*
 * Prints findings of numerics. With `what` = "tensor", list has each rank of this node that passed
 * a NaN or infinity to NCCL, with the first such value. With "numbers", it has the first such rank
 * of each job, and values that grow.
 */
static void put_tensor_stats(const struct cw_text *t, const char *what, const json_t *list,
			     bool with_user)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		json_int_t pid = cw_json_int(entry, "pid", 0);

		fputs("  ", t->out);
		cw_text_put(t, CW_TEXT_YELLOW, what);
		fprintf(t->out, "%*s", 10 - (int)strlen(what), "");
		cw_text_put(t, CW_TEXT_BOLD, cw_doc_job(entry, "?"));
		if (with_user)
			put_user(t, entry);
		fputs("  ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(entry, "summary", "?"));
		fputs(" (", t->out);
		if (pid)
			fprintf(t->out, "pid %" JSON_INTEGER_FORMAT ", ", pid);
		put_duration(t, json_object_get(entry, "ago_s"));
		fputs(" ago)\n", t->out);
	}
}

/*
 * Prints the number of healthy peers, and the name of each other peer. A fleet has hundreds of
 * healthy peers, so we do not name them. Returns the number of lines.
 */
static unsigned put_peers(const struct cw_text *t, const json_t *peers)
{
	const json_t *entry;
	size_t i, well = 0, shown = 0;
	char words[64];

	json_array_foreach (peers, i, entry)
		well += strcmp(cw_json_str(entry, "state", "?"), "connected") == 0;
	json_array_foreach (peers, i, entry) {
		const char *state = cw_json_str(entry, "state", "?");

		if (json_array_size(peers) > MAX_PEERS && strcmp(state, "connected") == 0)
			continue;
		if (shown++ >= MAX_PEERS)
			continue;
		fputs("  peer ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(entry, "node", "?"));
		fputs(": ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, cw_doc_words(state, words, sizeof(words)));
		fputc('\n', t->out);
	}
	if (json_array_size(peers) > MAX_PEERS)
		fprintf(t->out, "  peers: %zu of %zu connected%s\n", well, json_array_size(peers),
			shown > MAX_PEERS ? "; not all other peers are shown" : "");
	return (unsigned)(shown < MAX_PEERS ? shown : MAX_PEERS) + 1;
}

static unsigned urgency(const json_t *job)
{
	static const char *const states[] = { "hang",    "stalled",       "untracked",
					      "suspect", "led_elsewhere", "healthy" };
	const char *state = cw_json_str(job, "state", "?");
	unsigned i = 0;

	while (i < sizeof(states) / sizeof(states[0]) && strcmp(states[i], state) != 0)
		i++;
	return i;
}

/*
 * Returns the number of terminal lines that put_job() takes, including lines that the terminal
 * wraps.
 */
static unsigned lines_of(const struct cw_text *t, const json_t *job, bool with_user)
{
	struct cw_text measure = { .width = t->width };
	unsigned lines = 0, column = 0;
	char *text = NULL;
	size_t len = 0;

	measure.out = open_memstream(&text, &len);
	if (!measure.out)
		return 1;
	put_job(&measure, job, with_user);
	if (fclose(measure.out) != 0)
		len = 0;
	for (size_t i = 0; i < len; i++) {
		bool is_end = text[i] == '\n';

		lines += is_end || (column > 0 && column % (unsigned)t->width == 0);
		column = is_end ? 0 : column + 1;
	}
	free(text);
	return lines;
}

/* Prints the jobs. lines: 0 = no limit. used: number of lines above the jobs. */
static void put_jobs(const struct cw_text *t, const json_t *jobs, unsigned lines, unsigned used)
{
	bool with_user = has_several_users(jobs);
	size_t i, hidden = 0;
	const json_t *job;

	for (unsigned level = 0; level <= MAX_URGENCY; level++)
		json_array_foreach (jobs, i, job) {
			if (urgency(job) != level)
				continue;
			used += lines ? lines_of(t, job, with_user) : 0;
			if (lines && used > lines)
				hidden++;
			else
				put_job(t, job, with_user);
		}
	if (hidden)
		fprintf(t->out, "  and %zu more job%s, none in a worse state than these\n", hidden,
			hidden == 1 ? "" : "s");
}

void cw_render_status_lines(FILE *out, const json_t *status, bool color, unsigned lines,
			    unsigned columns)
{
	struct cw_text t = { .out = out, .color = color, .width = (int)columns };
	const json_t *agents = json_object_get(status, "agents");
	const json_t *jobs = json_object_get(status, "jobs"), *entry;
	unsigned used;
	size_t i;

	cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(status, "node", "?"));
	fputs(": collwatchd ", out);
	cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(status, "version", "?"));
	fputs(", up ", out);
	put_duration(&t, json_object_get(status, "uptime_s"));
	fprintf(out,
		", %" JSON_INTEGER_FORMAT " process%s watched (%" JSON_INTEGER_FORMAT
		" connected)\n",
		cw_json_int(agents, "processes", 0),
		cw_json_int(agents, "processes", 0) == 1 ? "" : "es",
		cw_json_int(agents, "connected", 0));
	/*
	 * Counts the first line, and the last one with the number of omitted jobs. A note takes up
	 * to two lines.
	 */
	used = 2 + put_peers(&t, json_object_get(status, "peers")) +
	       2 * (unsigned)json_array_size(json_object_get(status, "notes")) +
	       2 * (unsigned)json_array_size(json_object_get(status, "untracked"));
	json_array_foreach (json_object_get(status, "notes"), i, entry) {
		fputs("  note: ", out);
		cw_text_wrap(&t, 8, 8, json_is_string(entry) ? json_string_value(entry) : "?");
	}
	json_array_foreach (json_object_get(status, "untracked"), i, entry) {
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_YELLOW, "note");
		fputs(": ", out);
		cw_text_wrap(&t, 8, 8, cw_json_str(entry, "summary", "?"));
	}
	json_array_foreach (json_object_get(status, "shared_communicators"), i, entry) {
		char sentence[1024];

		cw_shared_comms_format(entry, sentence, sizeof(sentence));
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_YELLOW, "note");
		fputs(": ", out);
		cw_text_wrap(&t, 8, 8, sentence);
	}
	if (!json_array_size(jobs))
		fputs("  no job here uses NCCL under the agent\n", out);
	put_jobs(&t, jobs, lines, used);
	if (!lines) {
		put_tensor_stats(&t, "tensor", json_object_get(status, "tensors"),
				 has_several_users(jobs));
		put_tensor_stats(&t, "stats", json_object_get(status, "tensor_stats"),
				 has_several_users(jobs));
	}
}

void cw_render_status(FILE *out, const json_t *status, bool color)
{
	cw_render_status_lines(out, status, color, 0, WIDTH);
}

/* Says that we did not query some nodes. so: the consequence for the reader. */
static void show_not_asked(struct cw_text *t, const json_t *doc, const char *so)
{
	json_int_t n = cw_json_int(doc, "not_asked", 0);

	if (n <= 0)
		return;
	cw_text_put(t, CW_TEXT_YELLOW, "note: ");
	fprintf(t->out,
		"the other %s not asked, because too many requests are running: %s; try again in a "
		"few seconds\n",
		n == 1 ? "node was" : "nodes were", so);
}

/* Names the nodes that did not answer. so: the consequence for the reader. */
static void show_silent(struct cw_text *t, const json_t *doc, const char *so)
{
	const json_t *silent = json_object_get(doc, "silent"), *name;
	json_int_t n = cw_json_int(doc, "silent_count", 0);
	size_t i;

	if (n <= 0)
		return;
	cw_text_put(t, CW_TEXT_YELLOW, "note: ");
	json_array_foreach (silent, i, name) {
		if (i)
			fputs(", ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, json_string_value(name));
	}
	if ((size_t)n > json_array_size(silent))
		fprintf(t->out, " and %lld other%s",
			(long long)n - (long long)json_array_size(silent),
			(size_t)n - json_array_size(silent) == 1 ? "" : "s");
	fprintf(t->out, " did not answer: %s\n", so);
}

static void show_omitted(struct cw_text *t, const json_t *incidents)
{
	json_int_t n = cw_json_int(incidents, "omitted", 0);

	if (n <= 0)
		return;
	cw_text_put(t, CW_TEXT_YELLOW, "note: ");
	fprintf(t->out,
		"%lld older one%s not listed: --since, --class, --node or --job make the list "
		"shorter\n",
		(long long)n, n == 1 ? " is" : "s are");
}

/* Prints a list such as "over, notice, muted". */
static void put_incident_state(const struct cw_text *t, const json_t *entry)
{
	const char *suppressed = cw_json_str(entry, "suppressed", "");
	bool is_over = json_is_string(json_object_get(entry, "closed_as"));

	cw_text_put(t, is_over ? CW_TEXT_PLAIN : CW_TEXT_RED, is_over ? "over" : "open");
	if (cw_incident_doc_is_notice(entry))
		fputs(", notice", t->out);
	if (*suppressed) {
		fputs(", ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, suppressed);
	}
}

void cw_render_incidents(FILE *out, const json_t *incidents, bool color)
{
	struct cw_text t = { .out = out, .color = color, .width = WIDTH };
	const json_t *list = json_object_get(incidents, "incidents"), *entry;
	char words[64];
	size_t i;

	if (!json_array_size(list))
		fputs("no incidents\n", out);
	json_array_foreach (list, i, entry) {
		cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(entry, "id", "?"));
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(entry, "time", "?"));
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_YELLOW,
			    cw_doc_words(cw_json_str(entry, "class", "?"), words, sizeof(words)));
		if (cw_severity_from_name(cw_json_str(entry, "severity", "")) == CW_SEVERITY_FAILED)
			fputs(" (post-mortem)", out);
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, cw_doc_job(entry, "?"));
		fputs("  ", out);
		put_incident_state(&t, entry);
		if (strcmp(cw_json_str(entry, "closed_as", ""), "unseen") == 0)
			fputs(" (unseen: the time of its end is not known)", out);
		fputs("\n    ", out);
		cw_text_wrap(&t, 4, 4, cw_json_str(entry, "summary", ""));
	}
	show_omitted(&t, incidents);
	show_silent(&t, incidents, "incidents kept there are missing");
	show_not_asked(&t, incidents, "incidents kept there are missing");
}

void cw_render_mute(FILE *out, const json_t *mute, bool color)
{
	struct cw_text t = { .out = out, .color = color, .width = WIDTH };
	const json_t *muted = json_object_get(mute, "muted"), *node;
	const char *until = cw_json_str(muted, "until", NULL);
	size_t i;

	cw_text_put(&t, CW_TEXT_BOLD, cw_doc_job(mute, "?"));
	if (!json_is_object(muted)) {
		fputs(": alerts are sent again\n", out);
		show_silent(&t, mute,
			    "a mute kept there becomes active again when the node is back");
		show_not_asked(&t, mute, "a mute kept there stays active");
		return;
	}
	fputs(": muted on ", out);
	cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(muted, "node", "?"));
	json_array_foreach (json_object_get(mute, "nodes"), i, node) {
		fputs(", ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, json_string_value(node));
	}
	fputs(until ? " until " : " until it is unmuted", out);
	cw_text_put(&t, CW_TEXT_PLAIN, until ? until : "");
	fputc('\n', out);
	show_silent(&t, mute, "the job is not muted there");
	show_not_asked(&t, mute, "the job is not muted there");
}

int cw_render_status_exit(const json_t *status)
{
	int worst = CW_EXIT_OK;
	const json_t *job;
	size_t i;

	json_array_foreach (json_object_get(status, "jobs"), i, job) {
		const char *state = cw_json_str(job, "state", "");

		if (strcmp(state, "hang") == 0)
			return CW_EXIT_HANG;
		if (strcmp(state, "untracked") == 0 || strcmp(state, "led_elsewhere") == 0)
			worst = CW_EXIT_NO_DATA;
	}
	return worst;
}
