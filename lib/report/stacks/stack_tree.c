/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stack of a rank's evidence is a path in the tree of its kind and thread, outermost frame
 * first. We create missing nodes and add the rank to each node of the path. We count the stacks
 * that exceed a limit. A rank without a readable stack goes to the list of omitted ranks, with the
 * reason.
 */
#include "report/stacks/stack_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/frames.h"
#include "report/json_util.h"
#include "report/stacks/stack_nodes.h"

#define MAX_REASONS 16u

/* Ranks that we omit for the same reason. */
struct not_collected {
	char *why;
	struct cw_stack_ranks ranks;
};

struct tree {
	const char *kind; /* "python", "native"; static */
	char *thread;
	struct cw_stack_node root; /* the root's own frame is empty */
};

struct cw_stack_tree {
	struct tree trees[CW_STACK_TREE_MAX_TREES];
	struct not_collected not_collected[MAX_REASONS];
	unsigned n_trees, n_not_collected;
	uint32_t n_nodes;
	uint32_t seen;
	struct cw_stack_ranks ranks; /* ranks with stacks */
	bool all_python;
	uint64_t cut; /* stacks that are missing from the trees, or shortened */
};

struct cw_stack_tree *cw_stack_tree_new(bool all_python)
{
	struct cw_stack_tree *tree = calloc(1, sizeof(*tree));

	if (tree)
		tree->all_python = all_python;
	return tree;
}

struct cw_stack_tree *cw_stack_tree_free(struct cw_stack_tree *tree)
{
	if (!tree)
		return NULL;
	for (unsigned i = 0; i < tree->n_trees; i++) {
		free(tree->trees[i].thread);
		cw_stack_node_fini(&tree->trees[i].root);
	}
	for (unsigned i = 0; i < tree->n_not_collected; i++) {
		free(tree->not_collected[i].why);
		cw_stack_ranks_fini(&tree->not_collected[i].ranks);
	}
	cw_stack_ranks_fini(&tree->ranks);
	free(tree);
	return NULL;
}

/* ---- adding ---- */

static int find_tree(struct cw_stack_tree *t, const char *kind, const char *thread,
		     struct tree **ret)
{
	struct tree *tree;

	*ret = NULL;
	for (unsigned i = 0; i < t->n_trees; i++) {
		tree = &t->trees[i];
		if (strcmp(tree->kind, kind) == 0 && strcmp(tree->thread, thread) == 0) {
			*ret = tree;
			return 0;
		}
	}
	if (t->n_trees == CW_STACK_TREE_MAX_TREES)
		return 0;
	tree = &t->trees[t->n_trees];
	tree->thread = strdup(thread);
	if (!tree->thread)
		return -ENOMEM;
	tree->kind = kind;
	t->n_trees++;
	*ret = tree;
	return 0;
}

/* Adds one stack to its tree. frames: innermost first, as in evidence. */
static int add_stack(struct cw_stack_tree *t, const char *kind, const char *thread, int32_t rank,
		     const json_t *frames)
{
	size_t n = json_array_size(frames);
	struct cw_stack_node *node;
	struct tree *tree;
	int r;

	r = find_tree(t, kind, thread, &tree);
	if (r < 0)
		return r;
	if (!tree) {
		t->cut++;
		return 0;
	}
	node = &tree->root;
	r = cw_stack_node_enter(node, rank);
	/* we cut the outermost frames, because the thread waits in the inner ones */
	if (n > CW_STACK_TREE_MAX_FRAMES) {
		t->cut++;
		n = CW_STACK_TREE_MAX_FRAMES;
	}
	while (r == 0 && n-- > 0) {
		struct cw_stack_frame frame = cw_stack_frame_read(json_array_get(frames, n), kind);
		struct cw_stack_node *next = cw_stack_node_find(node, &frame);

		if (!next && t->n_nodes >= CW_STACK_TREE_MAX_NODES) {
			t->cut++;
			break;
		}
		if (!next) {
			next = cw_stack_node_append(node, &frame);
			t->n_nodes++;
		}
		r = next ? cw_stack_node_enter(next, rank) : -ENOMEM;
		node = next;
	}
	if (r == 0)
		node->n_ends++;
	return r;
}

/*
 * If we could not read a rank's Python stack, adds a node with the reason in place of the frames. A
 * program without an interpreter gets no such node.
 */
static int add_python_reason(struct cw_stack_tree *t, int32_t rank, const json_t *evidence,
			     unsigned *stacks)
{
	const json_t *python = json_object_get(evidence, "python");
	const json_t *thread = cw_frame_python_thread(evidence);
	const char *status = cw_json_str(python, "status", "");
	const char *note = cw_json_str(thread, "note", "");
	char text[320];
	json_t *frames;
	int r;

	if (strcmp(status, "refused") != 0 && strcmp(status, "failed") != 0 && !*note)
		return 0;
	(void)snprintf(text, sizeof(text), "no Python stack: %s",
		       *note ? note : cw_json_str(python, "reason", "?"));
	frames = json_pack("[{s:s}]", "function", text);
	r = frames ? add_stack(t, "python", CW_STACK_MAIN, rank, frames) : -ENOMEM;
	json_decref(frames);
	(*stacks)++;
	return r;
}

static int add_python(struct cw_stack_tree *t, int32_t rank, const json_t *evidence,
		      unsigned *stacks)
{
	const json_t *frames = json_object_get(cw_frame_python_thread(evidence), "frames");

	if (json_array_size(frames) == 0)
		return add_python_reason(t, rank, evidence, stacks);
	(*stacks)++;
	return add_stack(t, "python", CW_STACK_MAIN, rank, frames);
}

/* Adds the Python threads other than the most informative one. */
static int add_other_python(struct cw_stack_tree *t, int32_t rank, const json_t *evidence,
			    unsigned *stacks)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "python"), "threads");
	const json_t *shown = cw_frame_python_thread(evidence), *thread;
	int r = 0;
	size_t i;

	json_array_foreach (threads, i, thread) {
		const json_t *frames = json_object_get(thread, "frames");

		if (thread == shown || json_array_size(frames) == 0)
			continue;
		if (*stacks == CW_STACK_TREE_MAX_STACKS) {
			t->cut++;
			break;
		}
		(*stacks)++;
		r = add_stack(t, "python", cw_json_str(thread, "name", "?"), rank, frames);
		if (r < 0)
			break;
	}
	return r;
}

static int add_native(struct cw_stack_tree *t, int32_t rank, const json_t *evidence,
		      unsigned *stacks)
{
	const json_t *threads = json_object_get(json_object_get(evidence, "native"), "threads");
	json_int_t pid = cw_json_int(evidence, "pid", 0);
	const json_t *thread;
	int r = 0;
	size_t i;

	json_array_foreach (threads, i, thread) {
		bool is_main = cw_json_int(thread, "tid", -1) == pid;
		const json_t *frames = json_object_get(thread, "frames");

		if (json_array_size(frames) == 0)
			continue;
		if (*stacks == CW_STACK_TREE_MAX_STACKS) {
			t->cut++;
			break;
		}
		(*stacks)++;
		r = add_stack(t, "native",
			      is_main ? CW_STACK_MAIN : cw_json_str(thread, "name", "?"), rank,
			      frames);
		if (r < 0)
			break;
	}
	return r;
}

/*
 * If a rank with Python stacks has no native ones, adds a node with the reason in place of the
 * frames. One reason is a debugger that holds the process.
 */
static int add_native_reason(struct cw_stack_tree *t, int32_t rank, const json_t *evidence)
{
	const json_t *native = json_object_get(evidence, "native");
	const char *status = cw_json_str(native, "status", "");
	char text[320];
	json_t *frames;
	int r;

	if (strcmp(status, "refused") != 0 && strcmp(status, "failed") != 0)
		return 0;
	(void)snprintf(text, sizeof(text), "no native stack: %s",
		       cw_json_str(native, "reason", "?"));
	frames = json_pack("[{s:s}]", "symbol", text);
	r = frames ? add_stack(t, "native", CW_STACK_MAIN, rank, frames) : -ENOMEM;
	json_decref(frames);
	return r;
}

/*
 * Adds a frame for the uninterruptible sleep of a main thread and its place in the kernel. We do
 * not unwind such a thread, so it has no other frames.
 */
static int add_kernel(struct cw_stack_tree *t, int32_t rank, const json_t *evidence,
		      unsigned *stacks)
{
	const json_t *thread = frame_proc_main(evidence);
	const json_t *names = json_object_get(thread, "kernel_stack"), *name;
	json_t *frames;
	size_t i;
	int r;

	if (strcmp(cw_json_str(thread, "state", ""), "D") != 0)
		return 0;
	frames = json_array();
	json_array_foreach (names, i, name)
		(void)json_array_append_new(
			frames, json_pack("{s:O, s:s}", "symbol", name, "module", CW_STACK_KERNEL));
	if (json_array_size(frames) == 0)
		(void)json_array_append_new(frames, json_pack("{s:s, s:s}", "symbol",
							      cw_json_str(thread, "wchan", "?"),
							      "module", CW_STACK_KERNEL));
	r = frames ? add_stack(t, "native", CW_STACK_MAIN, rank, frames) : -ENOMEM;
	json_decref(frames);
	(*stacks)++;
	return r;
}

/* Returns the reason that the first part without data states in the evidence. */
static const char *why_nothing(const json_t *evidence)
{
	static const char *const parts[] = { "native", "python", "proc" };
	const char *state = cw_json_str(json_object_get(evidence, "proc"), "state", "");

	if (*state == 'Z')
		return "it is a zombie: it has ended, and its parent has not waited for it";

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		const json_t *part = json_object_get(evidence, parts[i]);
		const char *reason = cw_json_str(part, "reason", "");

		if (*reason && strcmp(cw_json_str(part, "status", ""), "ok") != 0)
			return reason;
	}
	return "the node had no stacks of it";
}

int cw_stack_tree_add(struct cw_stack_tree *t, int32_t rank, const json_t *evidence)
{
	unsigned stacks = 0, native;
	int r;

	r = add_python(t, rank, evidence, &stacks);
	if (r == 0 && t->all_python)
		r = add_other_python(t, rank, evidence, &stacks);
	native = stacks;
	if (r == 0)
		r = add_native(t, rank, evidence, &stacks);
	if (r == 0 && stacks == native)
		r = add_kernel(t, rank, evidence, &stacks);
	if (r == 0 && stacks == native && stacks > 0)
		r = add_native_reason(t, rank, evidence);
	if (r == 0 && stacks == 0)
		return cw_stack_tree_not_collected(t, rank, why_nothing(evidence));
	t->seen++;
	return r < 0 ? r : cw_stack_ranks_add(&t->ranks, rank);
}

int cw_stack_tree_not_collected(struct cw_stack_tree *t, int32_t rank, const char *why)
{
	struct not_collected *l = t->not_collected;
	unsigned i;

	for (i = 0; i < t->n_not_collected; i++)
		if (strcmp(l[i].why, why) == 0)
			break;
	/*
	 * the table of reasons is full: add the rank under the last reason, so that it is not lost
	 */
	if (i == MAX_REASONS)
		i--;
	if (i == t->n_not_collected) {
		l[i].why = strdup(why);
		if (!l[i].why)
			return -ENOMEM;
		t->n_not_collected++;
	}
	return cw_stack_ranks_add(&l[i].ranks, rank);
}

/* ---- writing ---- */

static json_t *not_collected_doc(const struct cw_stack_tree *t, uint32_t *n)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned i = 0; i < t->n_not_collected; i++) {
		const struct not_collected *l = &t->not_collected[i];

		*n += l->ranks.n_all;
		bad |= json_array_append_new(list, json_pack("{s:o, s:I, s:o}", "ranks",
							     cw_stack_ranks_text(&l->ranks), "n",
							     (json_int_t)l->ranks.n_all, "why",
							     cw_json_text(l->why)));
	}
	return cw_json_finish(list, bad);
}

static json_t *trees_doc(const struct cw_stack_tree *t)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned i = 0; i < t->n_trees; i++) {
		const struct tree *tree = &t->trees[i];

		bad |= json_array_append_new(
			list, json_pack("{s:s, s:o, s:I, s:o, s:o}", "kind", tree->kind, "thread",
					cw_json_text(tree->thread), "n",
					(json_int_t)tree->root.ranks.n_all, "ranks",
					cw_stack_ranks_text(&tree->root.ranks), "roots",
					cw_stack_nodes_doc(&tree->root)));
	}
	return cw_json_finish(list, bad);
}

json_t *cw_stack_tree_doc(const struct cw_stack_tree *t, uint32_t awaited)
{
	uint32_t n_not_collected = 0;
	json_t *not_collected = not_collected_doc(t, &n_not_collected);

	return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "schema", "collwatch.stacks/1",
			 "processes", (json_int_t)(t->seen + n_not_collected + awaited), "seen",
			 (json_int_t)t->seen, "awaited", (json_int_t)awaited, "ranks",
			 cw_stack_ranks_text(&t->ranks), "not_collected", not_collected, "cut",
			 (json_int_t)t->cut, "trees", trees_doc(t));
}
