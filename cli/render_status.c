/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/render_status.h"

#include <string.h>

#include "common/clock.h"
#include "common/parse.h"
#include "report/json_util.h"
#include "report/text.h"

#define WIDTH 100

static enum cw_text_style style_of(const char *state)
{
	if (strcmp(state, "healthy") == 0)
		return CW_TEXT_GREEN;
	if (strcmp(state, "hang") == 0)
		return CW_TEXT_RED;
	return strcmp(state, "led_elsewhere") == 0 ? CW_TEXT_DIM : CW_TEXT_YELLOW;
}

static void put_duration(const struct cw_text *t, const json_t *seconds)
{
	char buf[64];

	fputs(cw_format_duration((int64_t)(json_number_value(seconds) * CW_NS_PER_S), buf,
				 sizeof(buf)),
	      t->out);
}

/* What this node knows of a job that another one leads. */
static void put_ranks_here(const struct cw_text *t, const json_t *job)
{
	fprintf(t->out, "%" JSON_INTEGER_FORMAT " ranks here", cw_json_int(job, "ranks", 0));
}

static void put_ranks(const struct cw_text *t, const json_t *job)
{
	json_int_t expected = cw_json_int(job, "ranks_expected", 0);

	fprintf(t->out, "%" JSON_INTEGER_FORMAT, cw_json_int(job, "ranks", 0));
	if (expected)
		fprintf(t->out, " of %" JSON_INTEGER_FORMAT, expected);
	fprintf(t->out, " ranks on %zu nodes, %" JSON_INTEGER_FORMAT " communicators",
		json_array_size(json_object_get(job, "nodes")), cw_json_int(job, "comms", 0));
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

static void put_withheld(const struct cw_text *t, const char *why)
{
	if (!*why)
		return;
	fprintf(t->out, "%12swould have alerted (", "");
	cw_text_put(t, CW_TEXT_YELLOW, why);
	fputs(")\n", t->out);
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

static void put_job(const struct cw_text *t, const json_t *job)
{
	const char *state = cw_json_str(job, "state", "?");
	const char *incident = cw_json_str(job, "incident", "");
	const char *summary = cw_json_str(job, "summary", "");

	fputs("  ", t->out);
	cw_text_put(t, style_of(state), state);
	fprintf(t->out, "%*s", strlen(state) < 10 ? (int)(10 - strlen(state)) : 1, "");
	cw_text_put(t, CW_TEXT_BOLD, cw_json_str(job, "job", "?"));
	fputs("  ", t->out);
	if (strcmp(state, "led_elsewhere") == 0)
		put_ranks_here(t, job);
	else
		put_ranks(t, job);
	fputs(", led by ", t->out);
	cw_text_put(t, CW_TEXT_PLAIN, cw_json_str(job, "leader", "?"));
	fputs(", for ", t->out);
	put_duration(t, json_object_get(job, "since_s"));
	fputc('\n', t->out);
	put_muted(t, json_object_get(job, "muted"));
	put_withheld(t, cw_json_str(job, "withheld", ""));
	if (*summary) {
		fprintf(t->out, "%*s", 12, "");
		cw_text_wrap(t, 12, 12, summary);
	}
	put_slow(t, json_object_get(job, "slow"));
	if (*incident) {
		fprintf(t->out, "%*scollwatch report ", 12, "");
		cw_text_put(t, CW_TEXT_BOLD, incident);
		fputc('\n', t->out);
	}
}

void cw_render_status(FILE *out, const json_t *status, bool color)
{
	struct cw_text t = { .out = out, .color = color, .width = WIDTH };
	const json_t *agents = json_object_get(status, "agents");
	const json_t *jobs = json_object_get(status, "jobs"), *entry;
	size_t i;

	cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(status, "node", "?"));
	fputs(": collwatchd ", out);
	cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(status, "version", "?"));
	fputs(", up ", out);
	put_duration(&t, json_object_get(status, "uptime_s"));
	fprintf(out,
		", %" JSON_INTEGER_FORMAT " processes watched (%" JSON_INTEGER_FORMAT
		" connected)\n",
		cw_json_int(agents, "processes", 0), cw_json_int(agents, "connected", 0));
	json_array_foreach (json_object_get(status, "peers"), i, entry) {
		fputs("  peer ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(entry, "node", "?"));
		fputs(": ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(entry, "state", "?"));
		fputc('\n', out);
	}
	json_array_foreach (json_object_get(status, "notes"), i, entry) {
		fputs("  note: ", out);
		cw_text_wrap(&t, 8, 8, json_is_string(entry) ? json_string_value(entry) : "?");
	}
	if (!json_array_size(jobs))
		fputs("  no job here uses NCCL under the agent\n", out);
	json_array_foreach (jobs, i, entry)
		put_job(&t, entry);
}

void cw_render_incidents(FILE *out, const json_t *incidents, bool color)
{
	struct cw_text t = { .out = out, .color = color, .width = WIDTH };
	const json_t *list = json_object_get(incidents, "incidents"), *entry;
	size_t i;

	if (!json_array_size(list))
		fputs("no incidents\n", out);
	json_array_foreach (list, i, entry) {
		cw_text_put(&t, CW_TEXT_BOLD, cw_json_str(entry, "id", "?"));
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(entry, "time", "?"));
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_YELLOW, cw_json_str(entry, "class", "?"));
		fputs("  ", out);
		cw_text_put(&t, CW_TEXT_PLAIN, cw_json_str(entry, "job", "?"));
		fputs("\n    ", out);
		cw_text_wrap(&t, 4, 4, cw_json_str(entry, "summary", ""));
	}
}
