/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/numerics_bundle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/verbs/numerics_gather.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "report/bundle.h"
#include "report/doc/looks_doc.h"
#include "report/json_util.h"

#define NODE_BYTES 128

bool numerics_bundle_is(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Of one node's ranks the page that comes last says how many more there are. */
static bool is_last_page(const json_t *docs, size_t i)
{
	const char *node = cw_json_str(json_array_get(docs, i), "node", "");

	return strcmp(cw_json_str(json_array_get(docs, i + 1), "node", ""), node) != 0;
}

/* As it was asked, of processes that lived then, or did not. */
static int add_doc(struct numerics_gather *g, const json_t *doc, struct numerics_page *ret,
		   struct cw_err *err)
{
	char node[NODE_BYTES];

	(void)snprintf(node, sizeof(node), "%s", cw_json_str(doc, "node", "?"));
	cw_text_sanitise_line(node);
	return numerics_gather_doc(g, doc, NULL, node, ret, err);
}

static void name_silent(const json_t *doc, char *silent)
{
	const json_t *names = json_object_get(doc, "silent"), *name;
	const char *why = cw_json_str(doc, "why", "");
	size_t i;

	json_array_foreach (names, i, name)
		numerics_gather_silent(silent,
				       json_is_string(name) ? json_string_value(name) : "?");
	if (cw_json_int(doc, "silent_count", 0) > (json_int_t)json_array_size(names))
		numerics_gather_silent(silent, "others");
	if (strcmp(why, CW_LOOKS_DOC_ASKING) == 0)
		numerics_gather_silent(silent, "nodes that were still being asked");
	else if (strcmp(why, CW_LOOKS_DOC_TOO_MUCH) == 0)
		numerics_gather_silent(silent, "nodes whose tensors were too much for a copy");
}

/* What another node has sent is its own affair: the rest is no worse for it. */
static int add_elsewhere(struct numerics_gather *g, const json_t *docs,
			 struct cw_numerics_input *in)
{
	char silent[NUMERICS_GATHER_SILENT] = "";
	const json_t *doc;
	size_t i;

	json_array_foreach (docs, i, doc) {
		struct cw_err why = { "" };
		struct numerics_page page;
		char text[NODE_BYTES + sizeof(why.text)];
		int r = add_doc(g, doc, &page, &why);

		if (r == -ENOMEM)
			return r;
		if (r == 0 && is_last_page(docs, i))
			in->n_left_out += page.n_left_out;
		name_silent(doc, silent);
		if (r < 0) {
			(void)snprintf(text, sizeof(text), "%s (%s)", cw_json_str(doc, "node", "?"),
				       why.text);
			numerics_gather_silent(silent, text);
		}
	}
	if (*silent)
		in->silent = cw_arena_strdup(&in->arena, silent);
	return *silent && !in->silent ? -ENOMEM : 0;
}

/*
 * When its own node's summaries were taken, or the first of another's: pages come one after the
 * other, while the job may go on, or be started again. To the millisecond. 0 = not known.
 */
static int64_t moment_of(const struct cw_bundle *bundle)
{
	int64_t first =
		bundle->summaries ? cw_wall_parse(cw_json_str(bundle->summaries, "taken", "")) : 0;
	const json_t *doc;
	size_t i;

	if (first <= 0)
		json_array_foreach (bundle->elsewhere, i, doc) {
			int64_t at = cw_wall_parse(cw_json_str(doc, "taken", ""));

			if (at > 0 && (first <= 0 || at < first))
				first = at;
		}
	return first > 0 ? first + CW_NS_PER_MS : 0;
}

static int add_all(struct numerics_gather *g, const struct cw_bundle *bundle, const char *path,
		   struct cw_numerics_input *in, struct cw_err *err)
{
	struct numerics_page page = { .n_left_out = 0 };
	int r = 0;

	if (bundle->elsewhere)
		g->until_ns = moment_of(bundle);
	if (bundle->summaries)
		r = bundle->elsewhere
			    ? add_doc(g, bundle->summaries, &page, err)
			    : numerics_gather_doc(g, bundle->summaries, path, NULL, &page, err);
	in->n_left_out = page.n_left_out;
	return r == 0 && bundle->elsewhere ? add_elsewhere(g, bundle->elsewhere, in) : r;
}

int numerics_bundle_read(const char *path, struct cw_numerics_input *ret, struct cw_err *err)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
	_cleanup_(numerics_gather_fini) struct numerics_gather g = { NULL };
	struct cw_err why = { "" };
	int r = cw_bundle_read(path, &bundle, &why);

	*ret = (struct cw_numerics_input){ .uid = -1 };
	if (r == 0 && !bundle.summaries && !bundle.elsewhere)
		return cw_err_set(
			err, ENODATA,
			"%s: no tensor summaries in this bundle: the job ran without "
			"COLLWATCH_SUMMARY, no node could be asked for its ranks', or they were too "
			"much for a copy: ask on the node that keeps the bundle",
			path);
	if (r == 0)
		r = add_all(&g, &bundle, path, ret, &why);
	if (r == 0)
		r = numerics_gather_end(&g, ret);
	if (r < 0)
		return cw_err_set(err, -r, "%s: %s", path, why.text[0] ? why.text : strerror(-r));
	return 0;
}
