/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line shows the frames that all stacks of a branch share: "main (train.py:90) > step
 * (train.py:44)". Its sub-branches follow, indented. Branches with the fewest ranks come first,
 * because the user looks for the odd one among 1,024 ranks.
 */
#include "report/text/render_stack_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "report/json_util.h"
#include "report/stacks/stack_nodes.h"
#include "report/stacks/stack_tree.h"

/* Line limit per tree, unless the user asks for all frames. */
#define MAX_LINES 12u
/*
 * Number of frames that we show at the start and at the end of a chain. The frames between say
 * less.
 */
#define CHAIN_FIRST 1u
#define CHAIN_LAST 4u
#define MAX_RANKS_COLUMNS 40u
#define INDENT 4

struct view {
	const struct cw_text *t;
	bool all;
	unsigned lines_left;
};

/* Prints "rank 3", "ranks 0-2,4-7", "ranks 0,2,4,… (512)" or "2 processes without rank number". */
static void put_ranks(const struct cw_text *t, enum cw_text_style style, const json_t *node)
{
	const char *ranks = cw_json_str(node, "ranks", "");
	json_int_t n = cw_json_int(node, "n", 0);
	char text[MAX_RANKS_COLUMNS + 64];
	size_t len = strlen(ranks);

	if (len > MAX_RANKS_COLUMNS) {
		for (len = MAX_RANKS_COLUMNS; len > 0 && ranks[len] != ',';)
			len--;
		snprintf(text, sizeof(text), "ranks %.*s,… (%" JSON_INTEGER_FORMAT " stacks)",
			 (int)len, ranks, n);
	} else if (len > 0) {
		snprintf(text, sizeof(text), "rank%s %s", strpbrk(ranks, ",-") ? "s" : "", ranks);
	} else {
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT " process%s without number", n,
			 n == 1 ? "" : "es");
	}
	cw_text_put(t, style, text);
}

/* Writes a frame: "read_sample (train_loop.py:88)" or "read (libc.so.6)". */
static void write_frame(FILE *out, const json_t *node)
{
	const char *file = cw_json_str(node, "file", ""), *name = cw_json_str(node, "name", "");
	const char *module = cw_json_str(node, "module", "");
	json_int_t line = cw_json_int(node, "line", 0);

	fputs(*name ? name : "?", out);
	if (*file && line > 0)
		fprintf(out, " (%s:%" JSON_INTEGER_FORMAT ")", cw_text_base_name(file), line);
	else if (*file || *module)
		fprintf(out, " (%s)", cw_text_base_name(*file ? file : module));
}

/*
 * Returns the only child of the node if all of the node's stacks continue there. NULL: the stacks
 * branch here, or some end here.
 */
static const json_t *only_call(const json_t *node)
{
	const json_t *calls = json_object_get(node, "calls");
	const json_t *call = json_array_get(calls, 0);

	return json_array_size(calls) == 1 && cw_json_int(node, "ends", 0) == 0 ? call : NULL;
}

static size_t chain_length(const json_t *node)
{
	size_t n = 1;

	while ((node = only_call(node)))
		n++;
	return n;
}

/*
 * Writes the text of the chain that begins at node, and returns its last node. The caller releases
 * *ret_text with free(); NULL = out of memory.
 */
static const json_t *chain_text(const struct view *v, const json_t *node, char **ret_text)
{
	size_t n = chain_length(node), size;
	FILE *out = open_memstream(ret_text, &size);

	for (size_t i = 0;; i++) {
		const json_t *next = only_call(node);
		bool is_omitted = !v->all && n > CHAIN_FIRST + CHAIN_LAST + 1 && i >= CHAIN_FIRST &&
				  i < n - CHAIN_LAST;

		if (out && i > 0 && (!is_omitted || i == CHAIN_FIRST))
			fputs(" > ", out);
		if (out && !is_omitted)
			write_frame(out, node);
		else if (out && i == CHAIN_FIRST)
			fprintf(out, "… %zu frames …", n - CHAIN_FIRST - CHAIN_LAST);
		if (!next)
			break;
		node = next;
	}
	if (!out || fclose(out) != 0)
		*ret_text = NULL;
	return node;
}

static void put_nodes(struct view *v, const json_t *nodes, int indent)
{
	const json_t *node;
	size_t i;

	json_array_foreach (nodes, i, node) {
		_cleanup_(freep) char *text = NULL;
		const json_t *last;

		if (v->lines_left == 0) {
			fprintf(v->t->out, "%*s… %zu more branch%s\n", indent, "",
				json_array_size(nodes) - i,
				json_array_size(nodes) - i == 1 ? "" : "es");
			return;
		}
		v->lines_left--;
		last = chain_text(v, node, &text);
		if (!text)
			cw_text_set_short(v->t);
		fprintf(v->t->out, "%*s", indent, "");
		put_ranks(v->t, i == 0 && json_array_size(nodes) > 1 ? CW_TEXT_BOLD : CW_TEXT_PLAIN,
			  node);
		fputs(": ", v->t->out);
		cw_text_wrap(v->t, indent + 20, indent + 4, text ? text : "?");
		put_nodes(v, json_object_get(last, "calls"), indent + 2);
	}
}

static void put_tree(const struct cw_text *t, const json_t *tree, bool all)
{
	const char *thread = cw_json_str(tree, "thread", "?");
	bool is_python = strcmp(cw_json_str(tree, "kind", ""), "python") == 0;
	struct view v = { .t = t, .all = all, .lines_left = all ? UINT32_MAX : MAX_LINES };
	json_t *folded = all ? NULL : cw_stack_tree_fold(json_object_get(tree, "roots"));

	if (!all && !folded)
		cw_text_set_short(t);
	fputs(is_python ? "  Python" : "  native", t->out);
	if (strcmp(thread, CW_STACK_MAIN) == 0) {
		fputs(is_python ? "" : ", main thread", t->out);
	} else {
		fputs(", thread ", t->out);
		cw_text_put(t, CW_TEXT_PLAIN, thread);
	}
	fputs(":\n", t->out);
	put_nodes(&v, folded ? folded : json_object_get(tree, "roots"), INDENT);
	json_decref(folded);
}

static void put_coverage(const struct cw_text *t, const json_t *stacks)
{
	const json_t *list = json_object_get(stacks, "not_collected"), *not_collected;
	json_int_t seen = cw_json_int(stacks, "seen", 0),
		   awaited = cw_json_int(stacks, "awaited", 0);
	json_int_t processes = cw_json_int(stacks, "processes", 0);
	size_t i;

	if (seen == processes)
		return;
	fprintf(t->out, "  %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " process%s", seen,
		processes, processes == 1 ? "" : "es");
	if (awaited > 0)
		fprintf(t->out, ", %" JSON_INTEGER_FORMAT " still awaited", awaited);
	fputc('\n', t->out);
	json_array_foreach (list, i, not_collected) {
		fputs("    ", t->out);
		put_ranks(t, CW_TEXT_YELLOW, not_collected);
		fputs(": ", t->out);
		cw_text_wrap(t, 24, 8, cw_json_str(not_collected, "why", "?"));
	}
}

/* Prints the ranks that differ from their peers, which the user wants to see first. */
static void put_different(const struct cw_text *t, const json_t *stacks)
{
	const json_t *list = json_object_get(stacks, "different"), *each;
	size_t i;

	json_array_foreach (list, i, each) {
		const char *thread = cw_json_str(each, "thread", CW_STACK_MAIN);
		bool is_main = strcmp(thread, CW_STACK_MAIN) == 0;
		json_int_t n = cw_json_int(each, "n", 0);
		char text[768];

		fputs("  ", t->out);
		put_ranks(t, CW_TEXT_BOLD, each);
		snprintf(text, sizeof(text),
			 "%s differ%s from %s peers%s%s: %s in %s. %" JSON_INTEGER_FORMAT
			 " of %" JSON_INTEGER_FORMAT " peers: %s.",
			 strcmp(cw_json_str(each, "confidence", ""), "likely") == 0 ? "likely"
										    : "possibly",
			 n == 1 ? "s" : "", n == 1 ? "its" : "their", is_main ? "" : " in thread ",
			 is_main ? "" : thread, n == 1 ? "it is" : "they are",
			 cw_json_str(each, "where", "?"), cw_json_int(each, "usual_n", 0),
			 cw_json_int(each, "peers", 0), cw_json_str(each, "usual", "?"));
		fputc(' ', t->out);
		cw_text_wrap(t, 16, 4, text);
	}
}

void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, bool all_frames)
{
	const json_t *trees = json_object_get(stacks, "trees"), *tree;
	size_t i, hidden = 0;

	if (strcmp(cw_json_str(stacks, "schema", ""), "collwatch.stacks/1") != 0)
		return;
	cw_text_title(t, "Where all ranks were seen, outermost call first");
	put_different(t, stacks);
	put_coverage(t, stacks);
	json_array_foreach (trees, i, tree) {
		if (all_frames || strcmp(cw_json_str(tree, "thread", ""), CW_STACK_MAIN) == 0)
			put_tree(t, tree, all_frames);
		else
			hidden++;
	}
	if (hidden)
		fprintf(t->out, "  %zu more thread%s (--all-frames)\n", hidden,
			hidden == 1 ? "" : "s");
	if (cw_json_int(stacks, "cut", 0) > 0)
		fprintf(t->out, "  %" JSON_INTEGER_FORMAT " stack%s not, or not whole, in here\n",
			cw_json_int(stacks, "cut", 0),
			cw_json_int(stacks, "cut", 0) == 1 ? " is" : "s are");
}
