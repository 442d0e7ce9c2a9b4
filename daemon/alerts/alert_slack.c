/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each block has a limit in bytes. We cut longer text between two characters and add an ellipsis.
 * The limits include the labels, and their sum is below Slack's limit.
 */
#include "daemon/alerts/alert_slack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "model/verdict_types.h"
#include "report/doc/advice.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/json_util.h"

/*
 * Our limits in bytes. Slack allows 150 characters in a header and 3,000 in a section. It allows
 * ten fields of 2,000 characters. Slack refuses a message if all blocks together exceed some 13,000
 * (msg_blocks_too_long, slackapi/bolt-js 2509), so our limits add up to far less. A text never has
 * fewer bytes than characters.
 */
#define MAX_HEADER 150
#define MAX_SUMMARY 2000
#define MAX_FIELD 600
#define MAX_COMMAND 600
#define MAX_STEP 1200
#define MAX_TEXT 3000
/* Maximum number of incidents that a folded alert lists, in one section of MAX_TEXT. */
#define MAX_LISTED 10u
/* Maximum number of culprits that we name. We count the others; the report has all of them. */
#define MAX_CULPRITS 4u

#define ELLIPSIS "…"

struct text {
	char *buf;
	size_t len, limit; /* limit: size of buf, with the ellipsis and the final NUL */
	bool is_full;
};

static size_t utf8_bytes(unsigned char first)
{
	return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static void put_raw(struct text *t, const char *piece, size_t len)
{
	if (t->is_full)
		return;
	if (t->len + len + sizeof(ELLIPSIS) > t->limit) {
		memcpy(t->buf + t->len, ELLIPSIS, sizeof(ELLIPSIS));
		t->len += sizeof(ELLIPSIS) - 1;
		t->is_full = true;
		return;
	}
	memcpy(t->buf + t->len, piece, len);
	t->len += len;
	t->buf[t->len] = '\0';
}

static void put(struct text *t, const char *piece)
{
	put_raw(t, piece, strlen(piece));
}

/*
 * Appends the text, escaped for Slack's markup (mrkdwn). Slack requires this for &, < and >. The
 * other escaped characters would format the text.
 */
static void put_escaped(struct text *t, const char *value)
{
	for (const char *p = value; *p;) {
		size_t n = utf8_bytes((unsigned char)*p);

		if (*p == '&')
			put(t, "&amp;");
		else if (*p == '<')
			put(t, "&lt;");
		else if (*p == '>')
			put(t, "&gt;");
		else if (*p == '`')
			put(t, "'");
		else if ((unsigned char)*p < 0x20)
			put(t, " ");
		else
			put_raw(t, p, strnlen(p, n));
		p += strnlen(p, n);
	}
}

static json_t *text_block(const char *type, const char *text)
{
	return json_pack("{s:s, s:s}", "type", type, "text", text);
}

static json_t *section(const char *text)
{
	return json_pack("{s:s, s:o}", "type", "section", "text", text_block("mrkdwn", text));
}

static json_t *header(const char *before, const char *name)
{
	char buf[MAX_HEADER];
	struct text t = { .buf = buf, .limit = sizeof(buf) };

	put(&t, before);
	/* Escape nothing, because a header is plain text. Replace line breaks by spaces. */
	for (const char *p = name; *p;) {
		size_t n = strnlen(p, utf8_bytes((unsigned char)*p));

		put_raw(&t, (unsigned char)*p < 0x20 ? " " : p, n);
		p += n;
	}
	return json_pack("{s:s, s:o}", "type", "header", "text", text_block("plain_text", buf));
}

static void put_culprit(struct text *t, const struct cw_incident_culprit *culprit)
{
	struct cw_incident_process who = cw_phrase_process_of(culprit);
	char buf[64], place[CW_DOC_PLACE_BYTES];

	(void)snprintf(buf, sizeof(buf), "\nrank %" PRId32 " (", who.rank);
	put(t, who.rank >= 0 ? buf : "\na process without a rank number (");
	put_escaped(t, who.host ? who.host : "?");
	(void)snprintf(buf, sizeof(buf), ", pid %" PRId32, who.pid);
	put(t, buf);
	put_escaped(t, cw_doc_place(&who, place, sizeof(place)));
	put(t, ")");
}

static json_t *culprits_field(const struct cw_incident_facts *incident)
{
	uint32_t n = incident->n_culprits;
	char buf[MAX_FIELD], more[64];
	struct text t = { .buf = buf, .limit = sizeof(buf) };

	put(&t, n == 1 ? "*Culprit*" : "*Culprits*");
	for (uint32_t i = 0; i < n && i < MAX_CULPRITS; i++)
		put_culprit(&t, &incident->culprits[i]);
	if (n > MAX_CULPRITS) {
		(void)snprintf(more, sizeof(more), "\nand %" PRIu32 " more", n - MAX_CULPRITS);
		put(&t, more);
	}
	if (n == 0)
		put(&t, "\nnot known");
	return text_block("mrkdwn", buf);
}

static json_t *field(const char *title, const char *value, const char *more)
{
	char buf[MAX_FIELD];
	struct text t = { .buf = buf, .limit = sizeof(buf) };

	put(&t, "*");
	put(&t, title);
	put(&t, "*\n");
	put_escaped(&t, value);
	if (*more) {
		put(&t, ", ");
		put_escaped(&t, more);
	}
	return text_block("mrkdwn", buf);
}

/*
 * Returns a field with a time. Slack shows it in the reader's time zone. The text after '|' is for
 * clients that cannot do this.
 */
static json_t *time_field(const char *title, int64_t at_ns)
{
	time_t at = (time_t)(at_ns / CW_NS_PER_S);
	char buf[256], utc[64];
	struct tm tm;

	if (!at_ns || !gmtime_r(&at, &tm) ||
	    strftime(utc, sizeof(utc), "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		return field(title, "not known", "");
	(void)snprintf(buf, sizeof(buf),
		       "*%s*\n<!date^%" PRId64 "^{date_short_pretty} at {time_secs}|%s>", title,
		       at_ns / CW_NS_PER_S, utc);
	return text_block("mrkdwn", buf);
}

static bool is_over(const struct cw_incident_facts *incident)
{
	return incident->closed_as.text;
}

/* Returns the first known hang of NCCL that fits; NULL = none. */
static json_t *known_hang_field(const struct cw_incident_facts *incident)
{
	char fixed_in[64];

	if (!incident->n_known_hangs)
		return NULL;
	(void)snprintf(fixed_in, sizeof(fixed_in), "fixed in NCCL %s",
		       cw_fact_text(incident->known_hangs[0].fixed_in));
	return field("Known hang", cw_fact_text(incident->known_hangs[0].name), fixed_in);
}

static json_t *fields(const struct cw_incident_facts *incident)
{
	uint32_t n = incident->victims ? incident->victims->count : 0;
	char waiting[64], verdict_class[128], user[CW_DOC_USER_BYTES];

	(void)snprintf(waiting, sizeof(waiting), "%" PRIu32 " rank%s", n, n == 1 ? "" : "s");
	if (n == 0)
		(void)snprintf(waiting, sizeof(waiting), "no rank");
	(void)cw_doc_class(incident->verdict_class.text, incident->detail.text, verdict_class,
			   sizeof(verdict_class));
	(void)cw_doc_user(incident->uid, incident->user, user, sizeof(user));
	return json_pack("{s:s, s:[o, o, o, o, o*, o*]}", "type", "section", "fields",
			 culprits_field(incident),
			 field("Class", verdict_class, cw_fact_text(incident->confidence.text)),
			 field(is_over(incident) ? "Waited" : "Waiting", waiting,
			       incident->victims ? cw_fact_text(incident->victims->ranks) : ""),
			 time_field("Last progress",
				    incident->times ? incident->times->last_progress_wall_ns : 0),
			 *user ? field("User", user, "") : NULL, known_hang_field(incident));
}

static json_t *summary(const json_t *doc)
{
	char buf[MAX_SUMMARY];
	struct text t = { .buf = buf, .limit = sizeof(buf) };

	put_escaped(&t, cw_json_str(doc, "summary", "?"));
	return section(buf);
}

/*
 * Returns a block with the first step of the advice. The reader then need not open the report for
 * it.
 */
static json_t *first_step(const struct cw_incident_facts *incident)
{
	char buf[MAX_STEP];
	struct text t = { .buf = buf, .limit = sizeof(buf) };
	struct advice advice;

	put(&t, "*What to do first*\n");
	if (is_over(incident)) {
		put(&t, "Nothing, because the incident is over. The report has the evidence.");
		return section(buf);
	}
	cw_advice(incident, &advice);
	put_escaped(&t, advice.n ? advice.steps[0].text : "Read the report.");
	if (advice.n && *advice.steps[0].command) {
		put(&t, "\n`");
		put_escaped(&t, advice.steps[0].command);
		put(&t, "`");
	}
	return section(buf);
}

/* Returns a block with the next command, and the node to run it on. */
static json_t *command(const json_t *doc)
{
	char buf[MAX_COMMAND];
	struct text t = { .buf = buf, .limit = sizeof(buf) };

	put(&t, "On ");
	put_escaped(&t, cw_json_str(doc, "leader", "?"));
	put(&t, ": `");
	put_escaped(&t, cw_json_str(doc, "command", "collwatch report"));
	put(&t, "`");
	return section(buf);
}

static void put_job_and_summary(struct text *t, const json_t *doc)
{
	put_escaped(t, cw_doc_job(doc, "?"));
	put(t, ": ");
	put_escaped(t, cw_json_str(doc, "summary", "?"));
}

/*
 * Builds the message. Slack shows its "text" in the notification. Consumes the reference to blocks.
 */
static json_t *message(const json_t *doc, json_t *blocks)
{
	char buf[MAX_TEXT];
	struct text t = { .buf = buf, .limit = sizeof(buf) };

	put(&t, cw_incident_doc_is_notice(doc) ? "Notice: " : "");
	put_job_and_summary(&t, doc);
	return json_pack("{s:s, s:o}", "text", buf, "blocks", blocks);
}

static const char *headline(const struct cw_incident_facts *incident)
{
	if (is_over(incident))
		return "Over: ";
	if (incident->severity.number == CW_SEVERITY_NOTICE)
		return "Notice, not an alert: ";
	if (incident->victims && incident->victims->count == 0 &&
	    incident->verdict_class.number == CW_CLASS_MISMATCH)
		return "Mismatch: ";
	return "Hang: ";
}

json_t *cw_alert_slack(const json_t *doc)
{
	struct cw_incident_facts incident;
	struct cw_arena arena = { 0 };
	json_t *text = NULL;

	if (cw_incident_facts_read(doc, &arena, &incident, NULL, NULL) < 0)
		text = NULL;
	else if (incident.severity.number == CW_SEVERITY_FAILED)
		text = message(doc, json_pack("[o, o, o]",
					      header("Failed: ", cw_phrase_job(incident.job, "?")),
					      summary(doc), command(doc)));
	else
		text = message(doc, json_pack("[o, o, o, o, o]",
					      header(headline(&incident),
						     cw_phrase_job(incident.job, "?")),
					      summary(doc), fields(&incident),
					      first_step(&incident), command(doc)));
	cw_arena_fini(&arena);
	return text;
}

/* Returns a block with one line for each of the first incidents. The report has all of them. */
static json_t *folded_incidents(const json_t *folded)
{
	const json_t *list = json_object_get(folded, "incidents"), *one;
	json_int_t n = cw_json_int(folded, "count", 0);
	char buf[MAX_TEXT], more[64];
	struct text t = { .buf = buf, .limit = sizeof(buf) };
	size_t i;

	buf[0] = '\0';
	json_array_foreach (list, i, one) {
		if (i == MAX_LISTED)
			break;
		put(&t, "• `");
		put_escaped(&t, cw_json_str(one, "command", "collwatch report"));
		put(&t, "` ");
		put_job_and_summary(&t, one);
		put(&t, "\n");
	}
	if (n > (json_int_t)i) {
		(void)snprintf(more, sizeof(more), "and %" JSON_INTEGER_FORMAT " more",
			       n - (json_int_t)i);
		put(&t, more);
	}
	return section(*buf ? buf : "?");
}

json_t *cw_alert_slack_folded(const json_t *folded)
{
	char buf[MAX_TEXT], name[64];
	struct text t = { .buf = buf, .limit = sizeof(buf) };
	json_int_t n = cw_json_int(folded, "count", 0);

	buf[0] = '\0';
	put_escaped(&t, cw_json_str(folded, "summary", "?"));
	(void)snprintf(name, sizeof(name),
		       "%" JSON_INTEGER_FORMAT " more hang%s of uid %" JSON_INTEGER_FORMAT, n,
		       n == 1 ? "" : "s", cw_json_int(folded, "uid", -1));
	return json_pack("{s:s, s:[o, o, o, o]}", "text", buf, "blocks", header("", name),
			 summary(folded), folded_incidents(folded), command(folded));
}
