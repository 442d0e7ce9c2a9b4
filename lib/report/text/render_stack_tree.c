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
#define MAX_RANKS_COLUMNS 24u
#define INDENT 4
/* Deeper branches have this indentation, so that their lines do not become too narrow. */
#define MAX_INDENT 24
/* We show ages above this separately. */
#define OLD_S 2.0

struct view {
	const struct cw_text *t;
	bool all;
	unsigned lines_left;
};

/*
 * Prints "rank 3", "ranks 0-2,4-7", "ranks 0,2,4,… (512)" or "2 processes without rank number".
 * Returns the number of columns, or a little more.
 */
static int put_ranks(const struct cw_text *t, enum cw_text_style style, const json_t *node)
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
	return (int)strlen(text);
}

/* Prints ": " and value, which begins on a new line if its first word does not fit. */
static void put_value(const struct cw_text *t, int column, int indent, const char *value)
{
	fputc(':', t->out);
	if (column + 2 + (int)strcspn(value, " ") > t->width) {
		fprintf(t->out, "\n%*s", indent, "");
		column = indent;
	} else {
		fputc(' ', t->out);
		column += 2;
	}
	cw_text_wrap(t, column, indent, value);
}

/* Writes text. Shortens each word to max bytes, so that it fits a line. */
static void write_words(FILE *out, const char *text, size_t max)
{
	while (*text) {
		size_t blank = strspn(text, " "), len = strcspn(text + blank, " "), kept = len;

		if (len > max) {
			for (kept = max; kept && (text[blank + kept] & 0xc0) == 0x80;)
				kept--; /* never cut a character in half */
		}
		fprintf(out, "%.*s%s", (int)(blank + kept), text, kept < len ? "…" : "");
		text += blank + len;
	}
}

/* Writes a frame: "read_sample (train_loop.py:88)" or "read (libc.so.6)". */
static void write_frame(FILE *out, const json_t *node, size_t max)
{
	const char *file = cw_json_str(node, "file", ""), *name = cw_json_str(node, "name", "");
	const char *module = cw_json_str(node, "module", "");
	json_int_t line = cw_json_int(node, "line", 0);

	write_words(out, *name ? name : "?", max);
	if (!*file && !*module)
		return;
	fputs(" (", out);
	write_words(out, cw_text_base_name(*file ? file : module), max - 12);
	if (*file && line > 0)
		fprintf(out, ":%" JSON_INTEGER_FORMAT, line);
	fputc(')', out);
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

/* Returns the longest word that fits a line with the largest indentation. */
static size_t max_word(const struct cw_text *t)
{
	return t->width > MAX_INDENT + 40 ? (size_t)(t->width - MAX_INDENT - 8) : 32;
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
			write_frame(out, node, max_word(v->t));
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
		int columns;

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
		columns = put_ranks(
			v->t, i == 0 && json_array_size(nodes) > 1 ? CW_TEXT_BOLD : CW_TEXT_PLAIN,
			node);
		put_value(v->t, indent + columns, indent + 4, text ? text : "?");
		put_nodes(v, json_object_get(last, "calls"),
			  indent < MAX_INDENT ? indent + 2 : indent);
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
		int columns;

		fputs("    ", t->out);
		columns = put_ranks(t, CW_TEXT_YELLOW, not_collected);
		put_value(t, 4 + columns, 8, cw_json_str(not_collected, "why", "?"));
	}
}

static double age_of(const json_t *group)
{
	return json_number_value(json_object_get(group, "age_s"));
}

/* Prints the age of the stacks: one line for all young stacks, and one for each older group. */
static void put_ages(const struct cw_text *t, const json_t *stacks)
{
	const json_t *list = json_object_get(stacks, "ages"), *group;
	double oldest = -1;
	size_t i;

	json_array_foreach (list, i, group)
		if (age_of(group) <= OLD_S && age_of(group) > oldest)
			oldest = age_of(group);
	if (oldest >= 0)
		fprintf(t->out, "  stacks at most %.1f s old\n", oldest < 0.1 ? 0.1 : oldest);
	json_array_foreach (list, i, group) {
		if (age_of(group) <= OLD_S)
			continue;
		fputs("  ", t->out);
		put_ranks(t, CW_TEXT_PLAIN, group);
		fprintf(t->out, ": stacks %.1f s old\n", age_of(group));
	}
}

/* Writes the sentence about ranks that differ. The caller releases it; NULL = out of memory. */
static char *difference_text(const struct cw_text *t, const json_t *each)
{
	const char *thread = cw_json_str(each, "thread", CW_STACK_MAIN);
	bool is_main = strcmp(thread, CW_STACK_MAIN) == 0;
	bool is_one = cw_json_int(each, "n", 0) == 1;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s differ%s from %s peers%s%s: %s in ",
		strcmp(cw_json_str(each, "confidence", ""), "likely") == 0 ? "likely" : "possibly",
		is_one ? "s" : "", is_one ? "its" : "their", is_main ? "" : " in thread ",
		is_main ? "" : thread, is_one ? "it is" : "they are");
	write_words(out, cw_json_str(each, "where", "?"), max_word(t));
	fprintf(out, ". %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " peers: ",
		cw_json_int(each, "usual_n", 0), cw_json_int(each, "peers", 0));
	write_words(out, cw_json_str(each, "usual", "?"), max_word(t));
	fputc('.', out);
	return fclose(out) == 0 ? text : NULL;
}

/* Prints the ranks that differ from their peers, which the user wants to see first. */
static void put_different(const struct cw_text *t, const json_t *stacks)
{
	const json_t *list = json_object_get(stacks, "different"), *each;
	size_t i;

	json_array_foreach (list, i, each) {
		_cleanup_(freep) char *text = difference_text(t, each);
		int columns;

		if (!text)
			cw_text_set_short(t);
		fputs("  ", t->out);
		columns = put_ranks(t, CW_TEXT_BOLD, each);
		fputc(' ', t->out);
		cw_text_wrap(t, columns + 3, 4, text ? text : "?");
	}
}

void cw_render_stack_tree(const struct cw_text *t, const json_t *stacks, unsigned what)
{
	const json_t *trees = json_object_get(stacks, "trees"), *tree;
	size_t i, hidden = 0;

	if (strcmp(cw_json_str(stacks, "schema", ""), "collwatch.stacks/1") != 0)
		return;
	cw_text_title(t, "Where all ranks were seen, outermost call first");
	put_different(t, stacks);
	put_coverage(t, stacks);
	put_ages(t, stacks);
	json_array_foreach (trees, i, tree) {
		if (what & CW_SHOW_ALL_THREADS ||
		    strcmp(cw_json_str(tree, "thread", ""), CW_STACK_MAIN) == 0)
			put_tree(t, tree, what & CW_SHOW_ALL_FRAMES);
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
