/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/stacks_folded.h"

#include <string.h>

#include "common/text.h"
#include "report/json_util.h"
#include "report/text.h"

/* A frame, and the frames that called it. */
struct path {
	const json_t *node;
	const struct path *outer; /* NULL = this is the outermost one */
};

/* Prints a name. Separators of the format become commas. */
static void put_name(const struct cw_text *t, const char *name)
{
	char text[256];
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof(text); n++)
		text[n] = name[n] == ';' ? ',' : name[n];
	text[n] = '\0';
	cw_text_put(t, CW_TEXT_PLAIN, text);
}

static void put_path(const struct cw_text *t, const struct path *path)
{
	const char *file = cw_json_str(path->node, "file", "");
	const char *module = cw_json_str(path->node, "module", "");
	json_int_t line = cw_json_int(path->node, "line", 0);

	if (path->outer)
		put_path(t, path->outer);
	fputc(';', t->out);
	put_name(t, cw_json_str(path->node, "name", "?"));
	if (!*file && !*module)
		return;
	fputs(" (", t->out);
	put_name(t, cw_text_base_name(*file ? file : module));
	if (*file && line > 0)
		fprintf(t->out, ":%" JSON_INTEGER_FORMAT, line);
	fputc(')', t->out);
}

static void put_nodes(const struct cw_text *t, const json_t *tree, const json_t *nodes,
		      const struct path *outer)
{
	struct path path = { .outer = outer };
	size_t i;

	json_array_foreach (nodes, i, path.node) {
		json_int_t ends = cw_json_int(path.node, "ends", 0);

		if (ends > 0) {
			put_name(t, cw_json_str(tree, "kind", "?"));
			fputc(' ', t->out);
			put_name(t, cw_json_str(tree, "thread", "?"));
			put_path(t, &path);
			fprintf(t->out, " %" JSON_INTEGER_FORMAT "\n", ends);
		}
		put_nodes(t, tree, json_object_get(path.node, "calls"), &path);
	}
}

void cw_render_stacks_folded(FILE *out, const json_t *stacks)
{
	const struct cw_text t = { .out = out, .width = 80 };
	const json_t *trees = json_object_get(stacks, "trees"), *tree;
	size_t i;

	if (strcmp(cw_json_str(stacks, "schema", ""), "collwatch.stacks/1") != 0)
		return;
	json_array_foreach (trees, i, tree)
		put_nodes(&t, tree, json_object_get(tree, "roots"), NULL);
}
