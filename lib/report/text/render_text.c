/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report for an engineer on call at 3 a.m.: first the summary, then the culprit and its
 * activity, then the reasons, then the advice. The output does not depend on the time and place of
 * printing, so a copied bundle reads the same elsewhere.
 */
#include "report/text/render_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/parse.h"
#include "model/verdict_types.h"
#include "report/coverage.h"
#include "report/doc/advice.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_facts.h"
#include "report/doc/nccl_errors.h"
#include "report/doc/torch_settings.h"
#include "report/frames.h"
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

static void put_headline(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	const char *flag = phrase_doc_flag(incident);
	char text[SUMMARY_BYTES], user[CW_DOC_USER_BYTES];

	cw_text_put(t, phrase_doc_is_resolved(incident) ? CW_TEXT_GREEN : CW_TEXT_RED, flag);
	fputs("  ", t->out);
	cw_text_wrap(t, (int)strlen(flag) + 2, (int)strlen(flag) + 2,
		     phrase_doc_summary(incident, text, sizeof(text)));
	fputc('\n', t->out);
	put_label(t, "class");
	cw_text_put(t, CW_TEXT_PLAIN,
		    cw_doc_class(incident->verdict_class.text, incident->detail.text, text,
				 sizeof(text)));
	fputs(", ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, cw_fact_text(incident->confidence.text));
	fputc('\n', t->out);
	put_label(t, "job");
	cw_text_put(t, CW_TEXT_PLAIN, cw_phrase_job(incident->job, ""));
	fputc('\n', t->out);
	if (*cw_doc_user(incident->uid, incident->user, user, sizeof(user))) {
		put_label(t, "user");
		cw_text_put(t, CW_TEXT_PLAIN, user);
		fputc('\n', t->out);
	}
	put_label(t, incident->severity.number == CW_SEVERITY_FAILED ? "post-mortem" : "incident");
	cw_text_put(t, CW_TEXT_PLAIN, cw_fact_text(incident->id));
	fputc('\n', t->out);
}

/* Prints "rank 3 on node-a, pid 812", and the pod. Used for culprits and evidence alike. */
static void put_process(const struct cw_text *t, enum cw_text_style style,
			const struct cw_incident_process *who)
{
	char text[64], where[CW_DOC_WHERE_BYTES], place[CW_DOC_PLACE_BYTES];

	cw_text_put(t, style, phrase_doc_rank(who->rank, text, sizeof(text)));
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_where(who, true, where, sizeof(where)));
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_place(who, place, sizeof(place)));
}

/* Prints "ranks 8-15 on node-b" for n culprits that share host and reason. */
static void put_processes(const struct cw_text *t, const struct cw_incident_facts *incident,
			  size_t from, size_t n)
{
	struct cw_incident_process first = cw_phrase_process_of(&incident->culprits[from]);
	char text[128], where[CW_DOC_WHERE_BYTES];

	if (n == 1) {
		put_process(t, CW_TEXT_RED, &first);
		return;
	}
	cw_text_put(t, CW_TEXT_RED, phrase_doc_ranks(incident, from, n, text, sizeof(text)));
	cw_text_put(t, CW_TEXT_PLAIN, cw_doc_where(&first, false, where, sizeof(where)));
}

static void put_culprits(const struct cw_text *t, const struct cw_incident_facts *incident,
			 const json_t *all_evidence, bool all_frames)
{
	size_t n = incident->n_culprits, alike, shown = 0;

	cw_text_title(t, n == 1 ? "Culprit" : n ? "Culprits" : "Culprit: none can be named");
	for (size_t i = 0; i < n; i += alike) {
		const struct cw_incident_culprit *culprit = &incident->culprits[i];
		const json_t *evidence = doc_evidence_of(culprit, all_evidence);

		if (shown++ == MAX_CULPRITS) {
			fprintf(t->out, "  … and %zu more\n", n - i);
			break;
		}
		alike = doc_culprits_alike(incident, i, all_evidence);
		fputs("  ", t->out);
		put_processes(t, incident, i, alike);
		fputs("\n    ", t->out);
		cw_text_wrap(t, 4, 4, cw_fact_text(culprit->reason.text));
		if (evidence)
			cw_render_evidence(t, evidence, all_frames);
		else
			fprintf(t->out, "    %s\n", phrase_doc_no_stacks(incident, all_evidence));
	}
}

static void put_issued(const struct cw_text *t, const struct cw_incident_call *op)
{
	char text[512];

	if (!*phrase_doc_issued(op, text, sizeof(text)))
		return;
	fputs("      ", t->out);
	cw_text_wrap(t, 6, 8, text);
}

static void put_where(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	const struct cw_incident_where *where = incident->where;
	char seq[96], text[256];

	if (!where)
		return;
	cw_text_title(t, incident->verdict_class.number == CW_CLASS_MISMATCH
				 ? "First call that differs"
				 : "Waits");
	fputs("  on ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN,
		    phrase_doc_comm(where->comm, where->comm_name, text, sizeof(text)));
	fputs(phrase_doc_seq(where, seq, sizeof(seq)), t->out);
	fputs(*seq && where->n_sides ? ":\n" : "\n", t->out);
	for (uint32_t i = 0; i < where->n_sides; i++) {
		const struct cw_incident_call *op = where->sides[i].op;
		const char *ranks = where->sides[i].ranks ? where->sides[i].ranks : "?";

		fputs(phrase_is_many(ranks) ? "    ranks " : "    rank ", t->out);
		cw_text_put(t, CW_TEXT_BOLD, ranks);
		if (op) {
			fputs(" entered ", t->out);
			cw_text_put(t, CW_TEXT_PLAIN, phrase_doc_op(op, text, sizeof(text)));
		} else {
			fprintf(t->out, " %s", phrase_doc_absence(incident));
		}
		fputc('\n', t->out);
		put_issued(t, op);
	}
}

static void put_waits(const struct cw_text *t, const struct cw_incident_facts *incident,
		      const struct cw_incident_wait *waits, size_t n, const char *title)
{
	char text[512];

	/* A chain with one wait would only repeat the text above. */
	if (n < 2)
		return;
	cw_text_title(t, title);
	for (size_t i = 0; i < n; i++) {
		size_t omitted = doc_waits_omitted(n, i);

		if (omitted) {
			fprintf(t->out, "  … %zu more …\n", omitted);
			i += omitted - 1;
			continue;
		}
		fputs("  ", t->out);
		cw_text_wrap(t, 2, 6, phrase_doc_wait(incident, &waits[i], text, sizeof(text)));
	}
}

/*
 * Prints one line with the position of each waiting rank that we inspected. Returns 0 or -ENOMEM.
 */
static int put_witnesses(const struct cw_text *t, const struct cw_incident_facts *incident,
			 const json_t *all_evidence, struct cw_arena *arena)
{
	struct cw_incident_process who;
	const json_t *evidence;
	char where[512];
	size_t i, n = 0;

	json_array_foreach (all_evidence, i, evidence) {
		if (doc_is_culprit(incident, evidence))
			continue;
		if (!*cw_evidence_position(evidence, where, sizeof(where)))
			continue;
		if (n++ == MAX_WITNESSES)
			return 0;
		if (cw_incident_facts_read_process(evidence, arena, &who) < 0)
			return -ENOMEM;
		if (n == 1)
			cw_text_title(t, "Where waiting ranks were seen");
		fputs("  ", t->out);
		put_process(t, CW_TEXT_PLAIN, &who);
		fputs(": ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, where);
		fputc('\n', t->out);
	}
	return 0;
}

static void put_line(const struct cw_text *t, const char *sentence)
{
	fputs("  - ", t->out);
	cw_text_wrap(t, 4, 4, sentence);
}

static void put_sentences(const struct cw_text *t, const json_t *list, const char *title)
{
	const json_t *sentence;
	size_t i;

	if (!json_array_size(list))
		return;
	cw_text_title(t, title);
	json_array_foreach (list, i, sentence)
		put_line(t, json_string_value(sentence) ? json_string_value(sentence) : "?");
}

static void put_earlier_stacks(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (incident->n_earlier_stacks)
		cw_text_title(t, "In the seconds before");
	for (uint32_t i = 0; i < incident->n_earlier_stacks; i++)
		put_line(t, cw_fact_text(incident->earlier_stacks[i].text.text));
}

static void put_nccl_errors(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	json_t *sentences = cw_nccl_error_sentences(incident);

	if (!sentences)
		cw_text_set_short(t);
	put_sentences(t, sentences, "Errors reported by NCCL");
	json_decref(sentences);
}

static void put_torch_settings(const struct cw_text *t, const json_t *evidence)
{
	json_t *sentences = cw_torch_setting_sentences(evidence);

	if (!sentences)
		cw_text_set_short(t);
	put_sentences(t, sentences, "PyTorch's settings");
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

static void put_ruled_out(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (incident->n_ruled_out)
		cw_text_title(t, "Ruled out");
	for (uint32_t i = 0; i < incident->n_ruled_out; i++)
		put_line(t, incident->ruled_out[i].text);
}

/* Differences that accuse no rank. */
static void put_also(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (incident->n_also)
		cw_text_title(t, "Also");
	for (uint32_t i = 0; i < incident->n_also; i++)
		put_line(t, incident->also[i].text);
}

static void put_alternatives(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	char class[128];

	if (incident->n_alternatives)
		cw_text_title(t, "It could also be");
	for (uint32_t i = 0; i < incident->n_alternatives; i++) {
		const struct cw_incident_alternative *alt = &incident->alternatives[i];

		fprintf(t->out, "  - %.0f %% ", alt->probability * 100);
		cw_text_put(t, CW_TEXT_PLAIN,
			    cw_doc_class(alt->verdict_class.text, NULL, class, sizeof(class)));
		fputs(": ", t->out);
		cw_text_wrap(t, 24, 4, cw_fact_text(alt->reason.text));
	}
}

static void put_coverage(const struct cw_text *t, const struct cw_incident_coverage *of)
{
	static const struct cw_incident_coverage nothing;
	const struct cw_incident_coverage *coverage = of ? of : &nothing;
	char known[256];

	cw_text_title(t, "Coverage");
	fprintf(t->out, "  %" PRIu32, cw_coverage_seen_now(coverage));
	if (coverage->ranks_expected)
		fprintf(t->out, " of %" PRIu32, coverage->ranks_expected);
	fputs(" ranks", t->out);
	if (cw_coverage_last_known(coverage, known, sizeof(known))) {
		fputs("; ", t->out);
		cw_text_put(t, CW_TEXT_YELLOW, known);
	}
	if (*cw_fact_text(coverage->missing)) {
		fputs("; missing: ", t->out);
		cw_text_put(t, CW_TEXT_YELLOW, coverage->missing);
	}
	fputc('\n', t->out);
	if (coverage->n_notes)
		cw_text_title(t, "Not visible");
	for (uint32_t i = 0; i < coverage->n_notes; i++)
		put_line(t, coverage->notes[i]);
}

/*
 * Prints one line with a time. since: the time of the previous line, wall ns; 0 = unknown. If it is
 * known, the line states the distance to it.
 */
static int64_t put_time(const struct cw_text *t, const char *label, int64_t at, int64_t since)
{
	char buf[64];

	if (!at)
		return since;
	put_label(t, label);
	cw_text_put(t, CW_TEXT_PLAIN, cw_wall_format(at, buf));
	if (since && at > since)
		fprintf(t->out, "  (%s later)", cw_format_duration(at - since, buf, sizeof(buf)));
	fputc('\n', t->out);
	return at;
}

/*
 * Prints the local time if it differs from UTC. Documents use UTC, but an engineer on call reads
 * local time.
 */
static void put_local(const struct cw_text *t, int64_t at)
{
	time_t seconds = (time_t)(at / CW_NS_PER_S);
	struct tm tm;
	char local[64];

	if (!at || !localtime_r(&seconds, &tm) || tm.tm_gmtoff == 0 ||
	    !strftime(local, sizeof(local), "%Y-%m-%d %H:%M:%S %Z", &tm))
		return;
	put_label(t, "local time");
	cw_text_put(t, CW_TEXT_PLAIN, local);
	fputs(" when it was confirmed\n", t->out);
}

static void put_timeout(const struct cw_text *t, const struct cw_incident_timeout *timeout)
{
	char buf[64];

	if (!timeout || !(timeout->seconds > 0 && timeout->seconds < 1e9))
		return;
	put_label(t, "time-out");
	fprintf(t->out, "the job's own watchdog ends it after %s in one call",
		cw_format_duration((int64_t)(timeout->seconds * CW_NS_PER_S), buf, sizeof(buf)));
	if (timeout->is_assumed) {
		fputs(" (PyTorch's default, assumed)", t->out);
	} else if (*cw_fact_text(timeout->set_by)) {
		fputs(" (", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, timeout->set_by);
		fputc(')', t->out);
	}
	fputc('\n', t->out);
}

static void put_times(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	static const struct cw_incident_times nothing;
	const struct cw_incident_times *times = incident->times ? incident->times : &nothing;
	int64_t last;

	cw_text_title(t, "When");
	last = put_time(t, "last progress", times->last_progress_wall_ns, 0);
	last = put_time(t, "stalled", times->stall_wall_ns, last);
	last = put_time(t, "confirmed", times->confirmed_wall_ns, last);
	(void)put_time(t, "resolved", times->resolved_wall_ns, last);
	put_local(t, times->confirmed_wall_ns);
	if (phrase_doc_is_unseen(incident)) {
		put_label(t, "ended");
		fputs("the time is not known, because its leader changed or was restarted\n",
		      t->out);
	}
	put_timeout(t, incident->job_timeout);
}

static void put_advice(const struct cw_text *t, const struct cw_incident_facts *incident)
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

static void put_bundle(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (!*cw_fact_text(incident->bundle))
		return;
	cw_text_title(t, "Bundle");
	fputs("  ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, incident->bundle);
	fputs(" on ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, incident->leader ? incident->leader : "?");
	fputs("\n  collwatch report ", t->out);
	cw_text_put_argument(t, incident->bundle);
	fputc('\n', t->out);
}

/* Returns 0, -EIO, or -ENOMEM (then the report is incomplete). */
static int finish(const struct cw_text *t)
{
	if (*t->is_short)
		return -ENOMEM;
	return fflush(t->out) != 0 || ferror(t->out) ? -EIO : 0;
}

static int put_incident(const struct cw_text *t, const struct cw_bundle *bundle,
			const struct cw_incident_facts *incident, struct cw_arena *arena,
			bool all_frames)
{
	put_headline(t, incident);
	if (incident->severity.number == CW_SEVERITY_FAILED) {
		fputs("  No alert was sent before the job ended.\n", t->out);
		cw_render_postmortem(t, incident);
		return finish(t);
	}
	put_culprits(t, incident, bundle->evidence, all_frames);
	put_where(t, incident);
	put_waits(t, incident, incident->chain, incident->n_chain, "Chain of waits");
	put_waits(t, incident, incident->cycle, incident->n_cycle, "Cycle of waits");
	if (put_witnesses(t, incident, bundle->evidence, arena) < 0)
		return -ENOMEM;
	put_earlier_stacks(t, incident);
	cw_render_stack_tree(t, bundle->stacks,
			     all_frames ? CW_SHOW_ALL_FRAMES | CW_SHOW_ALL_THREADS : 0);
	put_nccl_errors(t, incident);
	put_torch_settings(t, bundle->evidence);
	put_nonfinite_inputs(t, incident);
	put_also(t, incident);
	put_ruled_out(t, incident);
	put_alternatives(t, incident);
	put_coverage(t, incident->coverage);
	put_times(t, incident);
	cw_render_postmortem(t, incident);
	put_advice(t, incident);
	put_bundle(t, incident);
	return finish(t);
}

int cw_render_text(FILE *out, const struct cw_bundle *bundle, const struct cw_render_opts *opts)
{
	bool is_short = false;
	struct cw_text t = {
		.is_short = &is_short,
		.out = out,
		.color = opts->color,
		.width = opts->width > 0 ? opts->width : DEFAULT_WIDTH,
	};
	struct cw_incident_facts incident;
	struct cw_arena arena = { 0 };
	int r;

	r = cw_incident_facts_read(bundle->incident, &arena, &incident, NULL, NULL);
	if (r == 0 &&
	    (!incident.verdict_class.text || !incident.summary.text || !incident.culprits))
		r = -EBADMSG;
	if (r == 0)
		r = put_incident(&t, bundle, &incident, &arena, opts->all_frames);
	cw_arena_fini(&arena);
	return r;
}
