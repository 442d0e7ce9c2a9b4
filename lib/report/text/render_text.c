/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for an engineer on call at 3 a.m.: first the summary, then the culprit and its
 * activity, then the reasons, then the advice. The output does not depend on the time and place of
 * printing, so a copied bundle reads the same elsewhere.
 */
#include "report/text/render_text.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/parse.h"
#include "report/coverage.h"
#include "report/doc/advice.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/doc/nccl_errors.h"
#include "report/doc/torch_settings.h"
#include "report/frames.h"
#include "report/json_util.h"
#include "report/nonfinite_inputs.h"
#include "report/text.h"
#include "report/text/render_postmortem.h"
#include "report/text/render_stack.h"
#include "report/text/render_stack_tree.h"

#define DEFAULT_WIDTH 100
#define MAX_CULPRITS 8
#define MAX_WITNESSES 4
#define SUMMARY_BYTES 1280

static void put_label(const struct cw_text *t, const char *label)
{
	fputs("  ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, label);
	fprintf(t->out, "%*s", strlen(label) < 16 ? (int)(16 - strlen(label)) : 1, "");
}

static void put_headline(const struct cw_text *t, const json_t *incident)
{
	bool resolved =
		json_is_string(json_object_get(json_object_get(incident, "times"), "resolved"));
	const char *flag = phrase_doc_flag(incident);
	char text[SUMMARY_BYTES], user[CW_DOC_USER_BYTES];

	cw_text_put(t, resolved ? CW_TEXT_GREEN : CW_TEXT_RED, flag);
	fputs("  ", t->out);
	cw_text_wrap(t, (int)strlen(flag) + 2, (int)strlen(flag) + 2,
		     phrase_doc_summary(incident, text, sizeof(text)));
	fputc('\n', t->out);
	put_label(t, "class");
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_class(incident, text, sizeof(text)));
	fputs(", ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(incident, "confidence", ""));
	fputc('\n', t->out);
	put_label(t, "job");
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_job(incident, ""));
	fputc('\n', t->out);
	if (*cw_doc_user(incident, user, sizeof(user))) {
		put_label(t, "user");
		cw_text_put(t, CW_TEXT_PLAIN, user);
		fputc('\n', t->out);
	}
	put_label(t, "incident");
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(incident, "id", ""));
	fputc('\n', t->out);
}

/* Prints "rank 3 on node-a, pid 812", and the pod. Used for culprits and evidence alike. */
static void put_process(const struct cw_text *t, enum cw_text_style style, const json_t *who)
{
	char text[64], where[CW_DOC_WHERE_BYTES], pod[CW_DOC_POD_BYTES];

	cw_text_put(t, style, phrase_doc_rank(who, text, sizeof(text)));
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_where(who, true, where, sizeof(where)));
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_pod(who, pod, sizeof(pod)));
}

/* Prints "ranks 8-15 on node-b" for n culprits that share host and reason. */
static void put_processes(const struct cw_text *t, const json_t *culprits, size_t from, size_t n)
{
	const json_t *first = json_array_get(culprits, from);
	char text[128], where[CW_DOC_WHERE_BYTES];

	if (n == 1) {
		put_process(t, CW_TEXT_RED, first);
		return;
	}
	cw_text_put(t, CW_TEXT_RED, phrase_doc_ranks(culprits, from, n, text, sizeof(text)));
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_where(first, false, where, sizeof(where)));
}

static void put_culprits(const struct cw_text *t, const struct cw_bundle *b, bool all_frames)
{
	const json_t *culprits = json_object_get(b->incident, "culprits");
	size_t n = json_array_size(culprits), alike, shown = 0;

	cw_text_title(t, n == 1 ? "Culprit" : n ? "Culprits" : "Culprit: none can be named");
	for (size_t i = 0; i < n; i += alike) {
		const json_t *culprit = json_array_get(culprits, i);
		const json_t *evidence = cw_incident_doc_evidence_of(culprit, b->evidence);

		if (shown++ == MAX_CULPRITS) {
			fprintf(t->out, "  … and %zu more\n", n - i);
			break;
		}
		alike = doc_culprits_alike(culprits, i, b->evidence);
		fputs("  ", t->out);
		put_processes(t, culprits, i, alike);
		fputs("\n    ", t->out);
		cw_text_wrap(t, 4, 4, cw_json_str(culprit, "reason", ""));
		if (evidence)
			cw_render_evidence(t, evidence, all_frames);
		else
			fprintf(t->out, "    %s\n", phrase_doc_no_stacks(b->incident, b->evidence));
	}
}

static void put_op(const struct cw_text *t, const json_t *op)
{
	char text[256];

	cw_text_put(t, CW_TEXT_PLAIN, phrase_doc_op(op, text, sizeof(text)));
}

static void put_issued(const struct cw_text *t, const json_t *op)
{
	char text[512];

	if (!*phrase_doc_issued(op, text, sizeof(text)))
		return;
	fputs("      ", t->out);
	cw_text_wrap(t, 6, 8, text);
}

static void put_comm(const struct cw_text *t, const json_t *at)
{
	char text[256];

	cw_text_put(t, CW_TEXT_PLAIN, phrase_doc_comm(at, text, sizeof(text)));
}

static void put_where(const struct cw_text *t, const json_t *incident)
{
	const json_t *where = json_object_get(incident, "where");
	const json_t *sides = json_object_get(where, "sides"), *side;
	char seq[96];
	size_t i;

	if (!json_is_object(where))
		return;
	cw_text_title(t, strcmp(cw_json_str(incident, "class", ""), "mismatch") == 0
				 ? "First call that differs"
				 : "Who waits for what");
	fputs("  on ", t->out);
	put_comm(t, where);
	fputs(phrase_doc_seq(where, seq, sizeof(seq)), t->out);
	fputs(*seq && json_array_size(sides) ? ":\n" : "\n", t->out);
	json_array_foreach (sides, i, side) {
		const json_t *op = json_object_get(side, "op");
		const char *ranks = cw_json_str(side, "ranks", "?");

		fputs(phrase_is_many(ranks) ? "    ranks " : "    rank ", t->out);
		cw_text_put(t, CW_TEXT_BOLD, ranks);
		if (json_is_object(op)) {
			fputs(" entered ", t->out);
			put_op(t, op);
		} else {
			fprintf(t->out, " %s", phrase_doc_absence(incident));
		}
		fputc('\n', t->out);
		put_issued(t, op);
	}
}

static void put_waits(const struct cw_text *t, const json_t *incident, const char *key,
		      const char *title)
{
	const json_t *waits = json_object_get(incident, key);
	size_t i, n = json_array_size(waits);
	char text[512];

	/* A chain with one wait would only repeat the text above. */
	if (n < 2)
		return;
	cw_text_title(t, title);
	for (i = 0; i < n; i++) {
		size_t omitted = doc_waits_omitted(n, i);

		if (omitted) {
			fprintf(t->out, "  … %zu more …\n", omitted);
			i += omitted - 1;
			continue;
		}
		fputs("  ", t->out);
		cw_text_wrap(
			t, 2, 6,
			phrase_doc_wait(incident, json_array_get(waits, i), text, sizeof(text)));
	}
}

/* Prints one line with the position of each waiting rank that we inspected. */
static void put_witnesses(const struct cw_text *t, const struct cw_bundle *b)
{
	const json_t *evidence;
	char where[512];
	size_t i, n = 0;

	json_array_foreach (b->evidence, i, evidence) {
		if (doc_is_culprit(b->incident, evidence))
			continue;
		if (!*cw_evidence_position(evidence, where, sizeof(where)))
			continue;
		if (n++ == MAX_WITNESSES)
			return;
		if (n == 1)
			cw_text_title(t, "Where waiting ranks were seen");
		fputs("  ", t->out);
		put_process(t, CW_TEXT_PLAIN, evidence);
		fputs(": ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, where);
		fputc('\n', t->out);
	}
}

static void put_sentences(const struct cw_text *t, const json_t *list, const char *title)
{
	const json_t *sentence;
	size_t i;

	if (!json_array_size(list))
		return;
	cw_text_title(t, title);
	json_array_foreach (list, i, sentence) {
		fputs("  - ", t->out);
		cw_text_wrap(t, 4, 4,
			     json_string_value(sentence) ? json_string_value(sentence) : "?");
	}
}

static void put_nccl_errors(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	json_t *sentences = cw_nccl_error_sentences(incident);

	if (!sentences)
		cw_text_set_short(t);
	put_sentences(t, sentences, "What NCCL itself reported");
	json_decref(sentences);
}

static void put_torch_settings(const struct cw_text *t, const json_t *evidence)
{
	json_t *sentences = cw_torch_setting_sentences(evidence);

	if (!sentences)
		cw_text_set_short(t);
	put_sentences(t, sentences, "What PyTorch was told");
	json_decref(sentences);
}

static void put_nonfinite_inputs(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	json_t *sentences = cw_nonfinite_inputs_sentences(incident);

	if (!sentences)
		cw_text_set_short(t);
	put_sentences(t, sentences, "First NaN or infinity that a rank fed in");
	json_decref(sentences);
}

static void put_alternatives(const struct cw_text *t, const json_t *incident)
{
	const json_t *list = json_object_get(incident, "alternatives"), *alt;
	char class[128];
	size_t i;

	if (!json_array_size(list))
		return;
	cw_text_title(t, "It could also be");
	json_array_foreach (list, i, alt) {
		fprintf(t->out, "  - %.0f %% ",
			json_number_value(json_object_get(alt, "probability")) * 100);
		cw_text_put(t, CW_TEXT_PLAIN, cw_doc_class(alt, class, sizeof(class)));
		fputs(": ", t->out);
		cw_text_wrap(t, 24, 4, cw_json_str(alt, "reason", ""));
	}
}

static void put_coverage(const struct cw_text *t, const json_t *incident)
{
	const json_t *coverage = json_object_get(incident, "coverage");
	const char *missing = cw_json_str(coverage, "missing", "");
	json_int_t expected = cw_json_int(coverage, "ranks_expected", 0);
	char known[256];

	cw_text_title(t, "What was seen");
	fprintf(t->out, "  %" JSON_INTEGER_FORMAT, cw_coverage_seen_now(coverage));
	if (expected)
		fprintf(t->out, " of %" JSON_INTEGER_FORMAT, expected);
	fputs(" ranks", t->out);
	if (cw_coverage_last_known(coverage, known, sizeof(known))) {
		fputs("; ", t->out);
		cw_text_put(t, CW_TEXT_YELLOW, known);
	}
	if (*missing) {
		fputs("; missing: ", t->out);
		cw_text_put(t, CW_TEXT_YELLOW, missing);
	}
	fputc('\n', t->out);
	put_sentences(t, json_object_get(coverage, "notes"), "What could not be seen");
}

/*
 * Prints one line with a time. since: the time of the previous line, wall ns; -1 = unknown. If it
 * is known, the line states the distance to it.
 */
static int64_t put_time(const struct cw_text *t, const char *label, const char *text, int64_t since)
{
	int64_t at = *text ? cw_wall_parse(text) : -1;
	char buf[64];

	if (!*text)
		return since;
	put_label(t, label);
	cw_text_put(t, CW_TEXT_PLAIN, text);
	if (at >= 0 && since >= 0 && at > since)
		fprintf(t->out, "  (%s later)", cw_format_duration(at - since, buf, sizeof(buf)));
	fputc('\n', t->out);
	return at;
}

/*
 * Prints the local time if it differs from UTC. Documents use UTC, but an engineer on call reads
 * local time.
 */
static void put_local(const struct cw_text *t, const char *text)
{
	int64_t at = *text ? cw_wall_parse(text) : -1;
	time_t seconds = (time_t)(at / CW_NS_PER_S);
	struct tm tm;
	char local[64];

	if (at < 0 || !localtime_r(&seconds, &tm) || tm.tm_gmtoff == 0 ||
	    !strftime(local, sizeof(local), "%Y-%m-%d %H:%M:%S %Z", &tm))
		return;
	put_label(t, "local time");
	cw_text_put(t, CW_TEXT_PLAIN, local);
	fputs(" when it was confirmed\n", t->out);
}

static void put_timeout(const struct cw_text *t, const json_t *timeout)
{
	double seconds = json_number_value(json_object_get(timeout, "seconds"));
	const char *source = cw_json_str(timeout, "set_by", "");
	char buf[64];

	if (!(seconds > 0 && seconds < 1e9))
		return;
	put_label(t, "time-out");
	fprintf(t->out, "the job's own watchdog ends it after %s in one call",
		cw_format_duration((int64_t)(seconds * CW_NS_PER_S), buf, sizeof(buf)));
	if (json_is_true(json_object_get(timeout, "assumed"))) {
		fputs(" (PyTorch's default, assumed)", t->out);
	} else if (*source) {
		fputs(" (", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, source);
		fputc(')', t->out);
	}
	fputc('\n', t->out);
}

static void put_times(const struct cw_text *t, const json_t *incident)
{
	const json_t *times = json_object_get(incident, "times");
	int64_t last;

	cw_text_title(t, "When");
	last = put_time(t, "last progress", cw_json_str(times, "last_progress", ""), -1);
	last = put_time(t, "stalled", cw_json_str(times, "stall", ""), last);
	last = put_time(t, "confirmed", cw_json_str(times, "confirmed", ""), last);
	(void)put_time(t, "resolved", cw_json_str(times, "resolved", ""), last);
	put_local(t, cw_json_str(times, "confirmed", ""));
	if (phrase_doc_is_unseen(incident)) {
		put_label(t, "ended");
		fputs("when is not known: its leader changed or was restarted\n", t->out);
	}
	put_timeout(t, json_object_get(incident, "job_timeout"));
}

static void put_advice(const struct cw_text *t, const json_t *incident)
{
	struct advice advice;

	cw_advice(incident, &advice);
	if (advice.n)
		cw_text_title(t, "What to do next");
	for (unsigned i = 0; i < advice.n; i++) {
		fprintf(t->out, "  %u. ", i + 1);
		cw_text_wrap(t, 5, 5, advice.steps[i].text);
		if (!*advice.steps[i].command)
			continue;
		/* A command gets its own line, and no line break inside, because users copy it. */
		fputs("       ", t->out);
		cw_text_put(t, CW_TEXT_BOLD, advice.steps[i].command);
		fputc('\n', t->out);
	}
}

static void put_bundle(const struct cw_text *t, const json_t *incident)
{
	const char *path = cw_json_str(incident, "bundle", "");

	if (!*path)
		return;
	cw_text_title(t, "Bundle");
	fputs("  ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, path);
	fputs(" on ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(incident, "leader", "?"));
	fputs("\n  collwatch report ", t->out);
	cw_text_put_argument(t, path);
	fputc('\n', t->out);
}

static int render(FILE *out, const struct cw_bundle *bundle, const struct cw_incident_facts *facts,
		  const struct cw_render_opts *opts)
{
	bool is_short = false;
	struct cw_text t = {
		.is_short = &is_short,
		.out = out,
		.color = opts->color,
		.width = opts->width > 0 ? opts->width : DEFAULT_WIDTH,
	};
	const json_t *incident = bundle->incident;

	if (!incident) {
		cw_render_postmortem(&t, bundle->postmortem, true);
		return fflush(out) != 0 || ferror(out) ? -EIO : 0;
	}
	put_headline(&t, incident);
	put_culprits(&t, bundle, opts->all_frames);
	put_where(&t, incident);
	put_waits(&t, incident, "chain", "Chain of waits");
	put_waits(&t, incident, "cycle", "Cycle of waits");
	put_witnesses(&t, bundle);
	cw_render_stack_tree(&t, bundle->stacks, opts->all_frames);
	put_nccl_errors(&t, facts);
	put_torch_settings(&t, bundle->evidence);
	put_nonfinite_inputs(&t, facts);
	put_sentences(&t, json_object_get(incident, "ruled_out"), "Ruled out");
	put_alternatives(&t, incident);
	put_coverage(&t, incident);
	put_times(&t, incident);
	if (bundle->postmortem)
		cw_render_postmortem(&t, bundle->postmortem, false);
	put_advice(&t, incident);
	put_bundle(&t, incident);
	if (is_short)
		return -ENOMEM;
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

int cw_render_text(FILE *out, const struct cw_bundle *bundle, const struct cw_render_opts *opts)
{
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	int r;

	if (!bundle->incident && json_is_string(json_object_get(bundle->postmortem, "summary")))
		return render(out, bundle, NULL, opts);
	r = cw_incident_facts_read(bundle->incident, &arena, &facts, NULL, NULL);
	if (r == 0 && (!facts.verdict_class.text || !facts.summary.text || !facts.culprits))
		r = -EBADMSG;
	if (r == 0)
		r = render(out, bundle, &facts, opts);
	cw_arena_fini(&arena);
	return r;
}
