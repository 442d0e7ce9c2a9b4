/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides from recordings, without a daemon. The input is a bundle, the flight records of ended
 * processes, or the Flight Recorder dumps of a job. A bundle contains a verdict; we ignore it and
 * decide again from the bundle's snapshot. The verb prints the same as `report`, and the exit
 * status shows the result.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/slow/slow.h"
#include "analysis/stall/patience.h"
#include "analysis/stall/stall.h"
#include "analysis/verdict.h"
#include "cli/ask_options.h"
#include "cli/options.h"
#include "cli/terminal/pager.h"
#include "cli/terminal/progress_bar.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "import/flight_recorder.h"
#include "import/record_files.h"
#include "report/bundle.h"
#include "report/doc/incident_doc.h"
#include "report/doc/slow_doc.h"
#include "report/doc/snapshot_doc.h"
#include "report/json_util.h"
#include "report/text.h"
#include "report/text/render_text.h"
#include "say/english.h"

enum { OPT_JSON = 256, OPT_ALL_FRAMES, OPT_FLIGHT_RECORDER, OPT_EXPORT, OPT_SNAPSHOT };

struct analyze_args {
	const char *flight_recorder; /* directory of the dumps */
	const char *export_to;       /* directory of the dumps to write; NULL = none */
	char **paths;                /* a bundle's directory, or records */
	uint32_t n_paths;
	bool json, all_frames, no_pager, snapshot;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct analyze_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->no_pager;
		return 0;
	case OPT_JSON:
		args->json = true;
		return 0;
	case OPT_ALL_FRAMES:
		args->all_frames = true;
		return 0;
	case OPT_FLIGHT_RECORDER:
		args->flight_recorder = arg;
		return 0;
	case OPT_EXPORT:
		args->export_to = arg;
		return 0;
	case OPT_SNAPSHOT:
		args->snapshot = true;
		return 0;
	case ARGP_KEY_ARGS:
		args->paths = state->argv + state->next;
		args->n_paths = (uint32_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (!args->n_paths == !args->flight_recorder)
			argp_error(state, "give a bundle, flight records, or --flight-recorder");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_analyze = {
	.options =
		(const struct argp_option[]){
			{ "flight-recorder", OPT_FLIGHT_RECORDER, "DIR", 0,
			  "Read PyTorch Flight Recorder dumps, one file per rank", 0 },
			{ "export-flight-recorder", OPT_EXPORT, "DIR", 0,
			  "Print the command that writes Flight Recorder dumps to DIR, for "
			  "PyTorch's viewers",
			  0 },
			{ "json", OPT_JSON, NULL, 0, "Print the verdict as JSON", 0 },
			{ "snapshot", OPT_SNAPSHOT, NULL, 0,
			  "Print the input of the verdict as JSON, without a verdict", 0 },
			{ "all-frames", OPT_ALL_FRAMES, NULL, 0,
			  "Show interpreter and libc frames and all threads", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_pager_children,
	.args_doc = "BUNDLE\nRECORD...\n--flight-recorder DIR",
	.doc = "Find the rank that hangs a job from recordings.\vExit status: 0 no fault, 2 a "
	       "hang, 3 not enough data. With --flight-recorder, the status is 0 only if no call "
	       "is open and every entry could be read.",
};

static void free_snapshot(struct cw_snapshot **snap)
{
	cw_snapshot_free(*snap);
}

/*
 * True if no rank waits, or no rank has waited longer than a healthy job may. Records contain the
 * time that a rank has waited. Dumps may lack it, and an unknown time does not count as a short
 * one.
 */
static bool is_healthy(const struct analyze_args *args, const struct cw_snapshot *snap,
		       const struct cw_verdict *v)
{
	struct patience p;

	if (v->verdict_class == CW_CLASS_HEALTHY)
		return true;
	if (v->is_proof)
		return false;
	if (!v->waiting_since_ns)
		return !args->flight_recorder;
	p = cw_patience(snap, v, NULL);
	return snap->now_ns - v->waiting_since_ns < p.stall_ns;
}

/* Returns the number of members with a call that was incomplete when the recordings were made. */
static uint32_t n_pending(const struct cw_snapshot *snap)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++)
			n += snap->comms[c].members[m].pending != NULL;
	return n;
}

/*
 * Counts incomplete calls in dumps. It includes calls of unknown position, which belong to no
 * member of the snapshot.
 */
static uint32_t n_open(const struct cw_snapshot *snap)
{
	uint32_t n = n_pending(snap);

	return snap->open_calls > n ? snap->open_calls : n;
}

/* Counts the unreadable entries of dumps. Each entry may belong to an open call. */
static uint64_t n_unread(const struct cw_snapshot *snap)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		n += snap->ranks[i].dropped;
	return n;
}

/* True if a rank left no recording, although we would need it. */
static bool has_unseen_rank(const struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (!(snap->ranks[i].flags & CW_RANKF_HAS_RECORD))
			return true;
	return snap->n_ranks < snap->ranks_expected;
}

/*
 * True if we see less than half of the job. Then we give no verdict, like a leader
 * (docs/design/leader.md#partition).
 */
static bool sees_too_little(const struct cw_snapshot *snap)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		seen += !!(snap->ranks[i].flags & CW_RANKF_HAS_RECORD);
	return 2 * (uint64_t)seen < snap->ranks_expected;
}

static int out_of_memory(void)
{
	fprintf(stderr, "collwatch: out of memory\n");
	return CW_EXIT_ERROR;
}

/* Converts an instant of the snapshot to wall time; 0 stays "unknown". */
static int64_t to_wall(const struct cw_snapshot *snap, int64_t at_ns)
{
	return at_ns && snap->wall_ns ? snap->wall_ns - (snap->now_ns - at_ns) : 0;
}

static json_t *healthy_doc(const struct cw_snapshot *snap, const struct cw_slow_list *slow)
{
	json_t *doc = cw_healthy_doc(snap, 0), *notes = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < snap->n_notes; i++)
		bad |= json_array_append_new(notes, cw_json_text(snap->notes[i]));
	bad |= json_object_set_new(doc, "notes", notes);
	bad |= json_object_set_new(doc, "slow", cw_slow_doc(snap, slow));
	return cw_or_exit(cw_json_finish(doc, bad));
}

/*
 * Writes the text for dumps that show, or may hide, an open call without a visible culprit.
 */
static void say_nothing_known(const struct cw_snapshot *snap, char *text, size_t len)
{
	unsigned long long unread = n_unread(snap);
	unsigned n = n_open(snap);
	char what[112];

	if (n)
		(void)snprintf(what, sizeof(what),
			       "%u call%s had not completed, and no visible rank holds %s up", n,
			       n == 1 ? "" : "s", n == 1 ? "it" : "them");
	else
		(void)snprintf(what, sizeof(what),
			       "%llu entr%s could not be read, so calls may be open", unread,
			       unread == 1 ? "y" : "ies");
	(void)snprintf(text, len, "%s: %u rank%s, %u communicator%s", what, snap->n_ranks,
		       snap->n_ranks == 1 ? "" : "s", snap->n_comms, snap->n_comms == 1 ? "" : "s");
}

/* True for dumps without any call, readable or not. Such dumps say nothing about the job. */
static bool is_without_calls(const struct analyze_args *args, const struct cw_snapshot *snap)
{
	return args->flight_recorder && !snap->listed_calls && !snap->open_calls && !n_unread(snap);
}

static void say_no_calls(const struct cw_snapshot *snap, char *text, size_t len)
{
	(void)snprintf(text, len,
		       "the dumps of %u rank%s have no calls, so they do not show the job's state: "
		       "set TORCH_FR_BUFFER_SIZE=2000, start the job again and dump all ranks",
		       snap->n_ranks, snap->n_ranks == 1 ? "" : "s");
}

static int report_healthy(const struct analyze_args *args, const struct cw_snapshot *snap)
{
	const struct cw_text t = { .out = stdout };
	bool is_empty = is_without_calls(args, snap);
	bool is_open = args->flight_recorder && (n_open(snap) || n_unread(snap));
	struct cw_slow_list slow = { 0 };
	char open_text[200];
	json_t *doc;

	/*
	 * If calls are open, each dump's times were shifted separately (import/fr_time.c). They
	 * then show no late ranks.
	 */
	if (!is_open && cw_slow_find(snap, &slow) < 0)
		return out_of_memory();
	doc = healthy_doc(snap, &slow);
	if (is_empty)
		say_no_calls(snap, open_text, sizeof(open_text));
	else
		say_nothing_known(snap, open_text, sizeof(open_text));
	is_open = is_open || is_empty;
	if (is_open && json_object_set_new(doc, "summary", json_string(open_text)) < 0) {
		json_decref(doc);
		return out_of_memory();
	}
	if (args->json) {
		cw_print_json(doc);
	} else {
		cw_pager_open(args->no_pager);
		if (is_open)
			printf("%s\n", open_text);
		else
			printf("no rank is blocked on a call that cannot complete: %u rank%s, %u "
			       "communicator%s\n",
			       snap->n_ranks, snap->n_ranks == 1 ? "" : "s", snap->n_comms,
			       snap->n_comms == 1 ? "" : "s");
		for (uint32_t i = 0; i < snap->n_notes; i++) {
			fputs("  ", stdout);
			cw_text_put(&t, CW_TEXT_PLAIN, snap->notes[i]);
			putchar('\n');
		}
		cw_slow_print(stdout, snap, &slow);
	}
	json_decref(doc);
	return is_open || has_unseen_rank(snap) ? CW_EXIT_NO_DATA : CW_EXIT_OK;
}

static int report_incident(const struct analyze_args *args, const struct cw_bundle *bundle)
{
	struct cw_render_opts opts = {
		.color = cw_text_wants_color(stdout),
		.all_frames = args->all_frames,
	};

	if (args->json) {
		cw_print_json(bundle->incident);
		return CW_EXIT_OK;
	}
	cw_pager_open(args->no_pager);
	if (cw_render_text(stdout, bundle, &opts) < 0) {
		fprintf(stderr, "collwatch: the verdict cannot be shown\n");
		return CW_EXIT_ERROR;
	}
	return CW_EXIT_OK;
}

static json_t *incident_of(const struct cw_snapshot *snap, const struct cw_verdict *v,
			   const char *id)
{
	struct cw_incident_info info = {
		.id = id,
		.confidence = v->confidence,
		.last_progress_wall_ns = to_wall(snap, v->last_progress_ns),
		.stall_wall_ns = to_wall(snap, v->waiting_since_ns),
		.confirmed_wall_ns = snap->wall_ns,
		.leader = CW_LEADER_ANALYZE,
	};

	info.severity = cw_stall_severity(snap, v, &info.hang);
	return cw_or_exit(cw_incident_doc(snap, v, &info));
}

/* Prints the verdict on a snapshot. evidence: the evidence of the bundle; NULL = none. */
static int report(const struct analyze_args *args, const struct cw_snapshot *snap,
		  const struct cw_verdict *v, json_t *incident, json_t *evidence)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = {
		.incident = incident,
		.snapshot = cw_or_exit(cw_snapshot_doc(snap)),
		.evidence = evidence ? json_incref(evidence) : NULL,
	};
	int status = report_incident(args, &bundle);

	if (status != CW_EXIT_OK)
		return status;
	return v->verdict_class == CW_CLASS_UNKNOWN && sees_too_little(snap) ? CW_EXIT_NO_DATA
									     : CW_EXIT_HANG;
}

static int print_snapshot(const struct cw_snapshot *snap)
{
	json_t *doc = cw_or_exit(cw_snapshot_doc(snap));

	cw_print_json(doc);
	json_decref(doc);
	return CW_EXIT_OK;
}

/*
 * Adds a note to the snapshot about further, unrelated problems. One document describes one
 * problem.
 */
static int note_others(const struct analyze_args *args, struct cw_snapshot *snap,
		       const struct cw_verdict_list *list)
{
	char text[512], summary[CW_VERDICT_TEXT_MAX];
	int r = 0;

	for (uint32_t i = 1; i < list->n && r == 0; i++) {
		if (is_healthy(args, snap, &list->v[i]))
			continue;
		(void)snprintf(text, sizeof(text),
			       "there is another fault, independent of this one: %.450s",
			       cw_say_text(&list->v[i].said, summary, sizeof(summary)));
		r = cw_snapshot_add_note(snap, text);
	}
	return r;
}

static int analyze_recordings(const struct analyze_args *args, struct cw_snapshot *snap)
{
	_cleanup_(cw_verdict_list_fini) struct cw_verdict_list list = { 0 };

	if (args->snapshot)
		return print_snapshot(snap);
	if (cw_verdict_compute_all(snap, &list) < 0)
		return out_of_memory();
	if (is_healthy(args, snap, &list.v[0]))
		return report_healthy(args, snap);
	if (note_others(args, snap, &list) < 0)
		return out_of_memory();
	return report(args, snap, &list.v[0], incident_of(snap, &list.v[0], "analysis"), NULL);
}

static void on_file(void *user, uint32_t done, uint32_t total)
{
	struct cw_progress_bar *bar = user;

	bar->total = total;
	cw_progress_bar_at(bar, done, NULL);
}

static int analyze_flight_recorder(const struct analyze_args *args)
{
	struct cw_progress_bar bar;
	const struct cw_import_watch watch = { on_file, &bar };
	_cleanup_(free_snapshot) struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };
	int r;

	cw_progress_bar_begin(&bar, "files", 0, args->json);
	r = cw_flight_recorder_read(args->flight_recorder, &watch, &snap, &err);
	cw_progress_bar_end(&bar);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return r == -ENODATA ? CW_EXIT_NO_DATA : CW_EXIT_ERROR;
	}
	return analyze_recordings(args, snap);
}

static int analyze_records(const struct analyze_args *args)
{
	struct cw_progress_bar bar;
	const struct cw_import_watch watch = { on_file, &bar };
	_cleanup_(free_snapshot) struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };
	int r;

	cw_progress_bar_begin(&bar, "files", args->n_paths, args->json);
	r = cw_record_files_read(args->paths, args->n_paths, &watch, &snap, &err);
	cw_progress_bar_end(&bar);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_ERROR;
	}
	return analyze_recordings(args, snap);
}

/* ---- bundles ---- */

/*
 * True if both incidents have the same decision. We compare neither wording nor confidence, which
 * depends on the time that the job was given.
 */
static bool is_same_decision(const json_t *a, const json_t *b)
{
	static const char *const keys[] = { "class", "detail", "victims", "where" };
	const json_t *ca = json_object_get(a, "culprits"), *cb = json_object_get(b, "culprits");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!json_equal(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
			return false;
	if (json_array_size(ca) != json_array_size(cb))
		return false;
	for (size_t i = 0; i < json_array_size(ca); i++)
		if (!json_equal(json_object_get(json_array_get(ca, i), "rank"),
				json_object_get(json_array_get(cb, i), "rank")))
			return false;
	return true;
}

/*
 * Compares the new verdict with that of the bundle. Prints the result to standard error, because
 * standard output has only the verdict.
 */
static void compare(const json_t *then, const json_t *now)
{
	const struct cw_text t = { .out = stderr };

	if (is_same_decision(then, now)) {
		fputs("collwatch: the same verdict as in the bundle\n", stderr);
		return;
	}
	fputs("collwatch: the verdict differs from that in the bundle, which is: ", stderr);
	cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(then, "summary", "?"));
	fputc('\n', stderr);
}

/*
 * Copies id and times of the bundle's incident into the new incident, because both describe the
 * same event.
 */
static int adopt_event(json_t *incident, const json_t *then)
{
	static const char *const keys[] = { "id", "times", "leader", "bundle" };
	int bad = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_object_get(then, keys[i]))
			bad |= json_object_set(incident, keys[i], json_object_get(then, keys[i]));
	return bad;
}

/*
 * A job may have several problems at a time. Finds the problem that the bundle's incident
 * describes. If none fits, takes the worst problem. *ret_v points into the list.
 */
static json_t *find_event(const struct cw_bundle *bundle, const struct cw_snapshot *snap,
			  const struct cw_verdict_list *list, const struct cw_verdict **ret_v)
{
	for (uint32_t i = 0; i < list->n; i++) {
		json_t *incident = incident_of(snap, &list->v[i], "analysis");

		*ret_v = &list->v[i];
		if (is_same_decision(bundle->incident, incident))
			return incident;
		json_decref(incident);
	}
	*ret_v = &list->v[0];
	return incident_of(snap, &list->v[0], "analysis");
}

static int replay(const struct analyze_args *args, const struct cw_bundle *bundle,
		  const struct cw_snapshot *snap)
{
	_cleanup_(cw_verdict_list_fini) struct cw_verdict_list list = { .n = 0 };
	const struct cw_verdict *v;
	json_t *incident;

	if (args->snapshot)
		return print_snapshot(snap);
	if (cw_verdict_compute_all(snap, &list) < 0)
		return out_of_memory();
	incident = find_event(bundle, snap, &list, &v);
	if (adopt_event(incident, bundle->incident) < 0)
		return out_of_memory();
	compare(bundle->incident, incident);
	if (v->verdict_class == CW_CLASS_HEALTHY) {
		json_decref(incident);
		return report_healthy(args, snap);
	}
	return report(args, snap, v, incident, bundle->evidence);
}

static int analyze_bundle(const struct analyze_args *args)
{
	_cleanup_(free_snapshot) struct cw_snapshot *snap = NULL;
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	struct cw_err err = { "" };

	if (args->n_paths > 1) {
		fprintf(stderr, "collwatch: give one bundle only\n");
		return CW_EXIT_ERROR;
	}
	if (cw_bundle_read(args->paths[0], &bundle, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_ERROR;
	}
	if (!bundle.snapshot) {
		fprintf(stderr, "collwatch: %s: no snapshot.json in this bundle\n", args->paths[0]);
		return CW_EXIT_NO_DATA;
	}
	if (cw_snapshot_from_doc(bundle.snapshot, &snap, &err) < 0) {
		fprintf(stderr, "collwatch: %s/snapshot.json: %s\n", args->paths[0], err.text);
		return CW_EXIT_ERROR;
	}
	return replay(args, &bundle, snap);
}

/* Prints a word in single quotes, for a shell. */
static void print_quoted(const char *word)
{
	fputs(" '", stdout);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*word);
	putchar('\'');
}

/* Python writes the dumps, for pickles are Python's own format. */
static int print_export_command(const struct analyze_args *args)
{
	fputs("python3 -m collwatch.flight_recorder", stdout);
	if (args->flight_recorder) {
		fputs(" --flight-recorder", stdout);
		print_quoted(args->flight_recorder);
	}
	fputs(" --", stdout);
	print_quoted(args->export_to);
	for (uint32_t i = 0; i < args->n_paths; i++)
		print_quoted(args->paths[i]);
	putchar('\n');
	return CW_EXIT_OK;
}

int cw_verb_analyze(int argc, char **argv)
{
	struct analyze_args args = { 0 };
	struct stat st;

	(void)cw_options_parse(&cw_argp_analyze, argc, argv, 0, &args);
	if (args.export_to)
		return print_export_command(&args);
	if (args.flight_recorder)
		return analyze_flight_recorder(&args);
	if (stat(args.paths[0], &st) == 0 && S_ISDIR(st.st_mode))
		return analyze_bundle(&args);
	return analyze_records(&args);
}
