/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page shows the frames that users look for. It folds all others into <details>, which one
 * click opens without a script.
 */
#include "report/html/html_stacks.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "report/frames.h"
#include "report/html/html.h"
#include "report/json_util.h"
#include "report/stacks/stack_nodes.h"
#include "report/stacks/stack_tree.h"

/*
 * Limits on the parts of a page. A larger page is useless, and only a hostile document asks for
 * one.
 */
#define MAX_FRAMES 256u
#define MAX_THREADS 64u
#define MAX_NODES 400u
#define MAX_DEPTH 64u

/* ---- one process ---- */

static void put_location(FILE *out, const json_t *frame)
{
	const char *file = cw_json_str(frame, "file", "");
	json_int_t line = cw_json_int(frame, "line", 0);

	if (!*file) {
		html_put(out, cw_text_base_name(cw_json_str(frame, "module", "")));
		return;
	}
	html_put(out, file);
	if (line > 0)
		fprintf(out, ":%" JSON_INTEGER_FORMAT, line);
}

static void put_frame(FILE *out, const json_t *frame, const char *name_key, bool is_own)
{
	const char *name = cw_json_str(frame, name_key, "");
	size_t len = strcspn(name, "@");
	char text[256];

	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, name, len);
	text[len] = '\0';
	fprintf(out, "<tr%s><td>", is_own ? " class=\"own\"" : "");
	html_put(out, *text ? text : cw_json_str(frame, "pc", "?"));
	fputs("</td><td>", out);
	put_location(out, frame);
	fputs("</td></tr>\n", out);
}

/*
 * Writes the folded frames (want_folded) or the other ones as one table. Returns the number of
 * frames.
 */
static size_t put_frames(FILE *out, const json_t *frames, const char *name_key,
			 bool (*is_folded)(const json_t *), bool want_folded)
{
	const json_t *frame;
	size_t i, n = 0;

	json_array_foreach (frames, i, frame) {
		/* We never fold the innermost frame, because the process waits in it. */
		bool folded = i > 0 && is_folded(frame);

		if (i == MAX_FRAMES)
			break;
		if (folded && !want_folded)
			continue;
		put_frame(out, frame, name_key, !folded);
		n++;
	}
	return n;
}

static void put_stack(FILE *out, const json_t *frames, const char *name_key,
		      bool (*is_folded)(const json_t *))
{
	size_t all = json_array_size(frames), shown;

	fputs("<table class=\"frames\">\n", out);
	shown = put_frames(out, frames, name_key, is_folded, false);
	fputs("</table>\n", out);
	if (shown >= all)
		return;
	fprintf(out,
		"<details><summary>all %zu frames</summary>\n"
		"<table class=\"frames\">\n",
		all);
	(void)put_frames(out, frames, name_key, is_folded, true);
	fputs("</table></details>\n", out);
}

/* True if the evidence contains the part. Otherwise writes the reason why the part is missing. */
static bool part_is_there(FILE *out, const json_t *part, const char *what)
{
	const char *status = cw_json_str(part, "status", ""), *reason;

	if (!json_is_object(part) || strcmp(status, "absent") == 0)
		return false;
	if (strcmp(status, "ok") == 0)
		return true;
	reason = cw_json_str(part, "reason", "");
	fprintf(out, "<p class=\"warn\">%s: ", what);
	html_put(out, status);
	fputs(*reason ? ": " : "", out);
	html_put(out, reason);
	fputs("</p>\n", out);
	return strcmp(status, "partial") == 0;
}

static void put_python(FILE *out, const json_t *evidence)
{
	const json_t *python = json_object_get(evidence, "python");
	const json_t *main_thread = cw_frame_python_thread(evidence), *thread;
	const json_t *threads = json_object_get(python, "threads");
	size_t i;

	if (!part_is_there(out, python, "Python stacks") || !main_thread)
		return;
	fputs("<h4>Python, innermost first</h4>\n", out);
	put_stack(out, json_object_get(main_thread, "frames"), "function", frame_is_library_python);
	if (json_array_size(threads) < 2)
		return;
	fprintf(out, "<details><summary>%zu Python threads</summary>\n", json_array_size(threads));
	json_array_foreach (threads, i, thread) {
		if (i == MAX_THREADS)
			break;
		fputs("<h4>", out);
		html_put(out, cw_json_str(thread, "name", "thread"));
		fputs("</h4>\n", out);
		put_stack(out, json_object_get(thread, "frames"), "function",
			  frame_is_library_python);
	}
	fputs("</details>\n", out);
}

/* Writes the title of a thread: "thread 812 python3, state S, in read(), waits in pipe_read". */
static void put_thread_title(FILE *out, const json_t *evidence, const json_t *thread)
{
	json_int_t tid = cw_json_int(thread, "tid", 0);
	const json_t *proc = frame_proc_thread(evidence, tid);
	const char *wchan = cw_json_str(proc, "wchan", "");

	fprintf(out, "<h4>native, thread %" JSON_INTEGER_FORMAT " ", tid);
	html_put(out, cw_json_str(thread, "name", ""));
	if (*cw_json_str(proc, "state", "")) {
		fputs(", state ", out);
		html_put(out, cw_json_str(proc, "state", ""));
	}
	if (*cw_json_str(proc, "syscall", "")) {
		fputs(", in ", out);
		html_put(out, cw_json_str(proc, "syscall", ""));
		fputs("()", out);
	}
	if (*wchan && strcmp(wchan, "0") != 0) {
		fputs(", waits in ", out);
		html_put(out, wchan);
	}
	fputs("</h4>\n", out);
}

static void put_native_thread(FILE *out, const json_t *evidence, const json_t *thread)
{
	const char *note = cw_json_str(thread, "note", "");

	put_thread_title(out, evidence, thread);
	if (*note) {
		fputs("<p class=\"warn\">", out);
		html_put(out, note);
		fputs("</p>\n", out);
	}
	if (json_array_size(json_object_get(thread, "frames")))
		put_stack(out, json_object_get(thread, "frames"), "symbol", frame_is_folded_native);
}

static void put_native(FILE *out, const json_t *evidence)
{
	const json_t *native = json_object_get(evidence, "native");
	const json_t *threads = json_object_get(native, "threads"), *thread;
	json_int_t shown = cw_frame_shown_tid(evidence);
	size_t i, others = 0;

	if (!part_is_there(out, native, "native stacks"))
		return;
	json_array_foreach (threads, i, thread) {
		if (cw_json_int(thread, "tid", -1) == shown)
			put_native_thread(out, evidence, thread);
		else
			others++;
	}
	if (!others)
		return;
	fprintf(out, "<details><summary>%zu more thread%s</summary>\n", others,
		others == 1 ? "" : "s");
	json_array_foreach (threads, i, thread) {
		if (i == MAX_THREADS)
			break;
		if (cw_json_int(thread, "tid", -1) != shown)
			put_native_thread(out, evidence, thread);
	}
	fputs("</details>\n", out);
}

/* Writes the source of a crash's stacks, or the reason why there are none. */
static void put_crash(FILE *out, const json_t *evidence, const char *signal)
{
	if (*signal) {
		fprintf(out,
			"<p>from its core file: <b>%s</b> in thread %" JSON_INTEGER_FORMAT "</p>\n",
			signal, cw_frame_shown_tid(evidence));
		put_python(out, evidence);
		put_native(out, evidence);
		return;
	}
	fputs("<p class=\"dim\">no stacks: it had ended; ", out);
	html_put(out, cw_json_str(json_object_get(evidence, "core"), "reason", "?"));
	fputs("</p>\n", out);
}

void html_put_evidence(FILE *out, const json_t *evidence)
{
	const json_t *proc = json_object_get(evidence, "proc");
	const char *command = cw_json_str(proc, "command", "");
	char kernel[512];
	const char *signal = cw_frame_crash(evidence, kernel, sizeof(kernel));

	if (signal) {
		put_crash(out, evidence, signal);
		return;
	}
	if (part_is_there(out, proc, "process facts") && *command) {
		fputs("<pre class=\"dim\">", out);
		html_put(out, command);
		fputs("</pre>\n", out);
	}
	if (*cw_evidence_kernel(evidence, kernel, sizeof(kernel))) {
		fputs("<p>main thread: ", out);
		html_put(out, kernel);
		fputs("</p>\n", out);
	}
	put_python(out, evidence);
	put_native(out, evidence);
}

/* ---- all ranks ---- */

/*
 * Returns the only child of the node if all of the node's stacks continue there. NULL: the stacks
 * branch here, or some end here.
 */
static const json_t *only_call(const json_t *node)
{
	const json_t *calls = json_object_get(node, "calls");

	return json_array_size(calls) == 1 && cw_json_int(node, "ends", 0) == 0
		       ? json_array_get(calls, 0)
		       : NULL;
}

static void put_node_frame(FILE *out, const json_t *node)
{
	const char *file = cw_json_str(node, "file", ""), *module = cw_json_str(node, "module", "");
	json_int_t line = cw_json_int(node, "line", 0);

	fputs("<code>", out);
	html_put(out, cw_json_str(node, "name", "?"));
	fputs("</code>", out);
	if (!*file && !*module)
		return;
	fputs(" <span class=\"dim\">", out);
	html_put(out, cw_text_base_name(*file ? file : module));
	if (*file && line > 0)
		fprintf(out, ":%" JSON_INTEGER_FORMAT, line);
	fputs("</span>", out);
}

static void put_node_ranks(FILE *out, const json_t *node)
{
	const char *ranks = cw_json_str(node, "ranks", "");
	json_int_t n = cw_json_int(node, "n", 0);

	fputs("<b>", out);
	if (*ranks)
		fputs(strpbrk(ranks, ",-") ? "ranks " : "rank ", out);
	html_put_short(out, *ranks ? ranks : "without number", 60);
	fputs("</b>", out);
	if (!*ranks || strpbrk(ranks, ",-"))
		fprintf(out, " (%" JSON_INTEGER_FORMAT ")", n);
}

/*
 * Writes one list item per branch: first the frames that all its stacks share, then its
 * own branches.
 */
static void put_nodes(FILE *out, const json_t *nodes, unsigned depth, unsigned *left)
{
	const json_t *node;
	size_t i;

	if (!json_array_size(nodes))
		return;
	fputs("<ul>\n", out);
	json_array_foreach (nodes, i, node) {
		const json_t *last = node, *next = node;

		if (*left == 0 || depth == MAX_DEPTH) {
			fprintf(out, "<li>… %zu more branch%s</li>\n", json_array_size(nodes) - i,
				json_array_size(nodes) - i == 1 ? "" : "es");
			break;
		}
		(*left)--;
		fputs("<li>", out);
		put_node_ranks(out, node);
		for (unsigned n = 0; next && n < MAX_FRAMES; n++, next = only_call(next)) {
			fputs(n ? " › " : ": ", out);
			put_node_frame(out, next);
			last = next;
		}
		put_nodes(out, json_object_get(last, "calls"), depth + 1, left);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

static bool is_python_tree(const json_t *tree)
{
	return strcmp(cw_json_str(tree, "kind", ""), "python") == 0;
}

static int put_tree(FILE *out, const json_t *tree)
{
	const char *thread = cw_json_str(tree, "thread", "?");
	bool is_python = is_python_tree(tree);
	bool is_main = strcmp(thread, CW_STACK_MAIN) == 0;
	json_t *folded = cw_stack_tree_fold(json_object_get(tree, "roots"));
	int r = folded ? 0 : -ENOMEM;
	unsigned left = MAX_NODES;

	fprintf(out, "<details%s><summary>%s, ", is_main ? " open=\"open\"" : "",
		is_python ? "Python" : "native");
	fputs(is_main ? "main thread" : "thread ", out);
	html_put(out, is_main ? "" : thread);
	fputs("</summary>\n<div class=\"tree\">\n", out);
	put_nodes(out, folded, 0, &left);
	fputs("</div></details>\n", out);
	json_decref(folded);
	return r;
}

static void put_not_collected(FILE *out, const json_t *stacks)
{
	const json_t *list = json_object_get(stacks, "not_collected"), *each;
	json_int_t seen = cw_json_int(stacks, "seen", 0);
	json_int_t processes = cw_json_int(stacks, "processes", 0);
	size_t i;

	if (seen == processes)
		return;
	fprintf(out,
		"<p>Stacks of %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " process%s.</p>\n"
		"<ul>\n",
		seen, processes, processes == 1 ? "" : "es");
	json_array_foreach (list, i, each) {
		fputs("<li>", out);
		put_node_ranks(out, each);
		fputs(": ", out);
		html_put(out, cw_json_str(each, "why", "?"));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

static void put_different(FILE *out, const json_t *stacks)
{
	const json_t *list = json_object_get(stacks, "different"), *each;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	fputs("<p>Different from their peers:</p>\n<ul>\n", out);
	json_array_foreach (list, i, each) {
		const char *thread = cw_json_str(each, "thread", CW_STACK_MAIN);

		if (i == MAX_THREADS)
			break;
		fputs("<li><b>", out);
		put_node_ranks(out, each);
		fputs("</b> (", out);
		html_put(out, cw_json_str(each, "confidence", "possible"));
		fputs(strcmp(thread, CW_STACK_MAIN) == 0 ? "): " : "), thread ", out);
		if (strcmp(thread, CW_STACK_MAIN) != 0) {
			html_put(out, thread);
			fputs(": ", out);
		}
		html_put(out, cw_json_str(each, "where", "?"));
		fprintf(out, "; %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " peers: ",
			cw_json_int(each, "usual_n", 0), cw_json_int(each, "peers", 0));
		html_put(out, cw_json_str(each, "usual", "?"));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

int html_put_stack_tree(FILE *out, const json_t *stacks)
{
	const json_t *trees = json_object_get(stacks, "trees"), *tree;
	int r = 0;
	size_t i;

	if (strcmp(cw_json_str(stacks, "schema", ""), "collwatch.stacks/1") != 0)
		return 0;
	put_different(out, stacks);
	put_not_collected(out, stacks);
	/* Python trees come first, because users look for their own lines. */
	for (int python = 1; python >= 0; python--)
		json_array_foreach (trees, i, tree)
			if (i < MAX_THREADS && is_python_tree(tree) == python &&
			    put_tree(out, tree) < 0)
				r = -ENOMEM;
	if (cw_json_int(stacks, "cut", 0) > 0)
		fprintf(out,
			"<p class=\"dim\">%" JSON_INTEGER_FORMAT
			" stacks are not, or not whole, in here.</p>\n",
			cw_json_int(stacks, "cut", 0));
	return r;
}
