/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The removal of a frame may make siblings of cousins. For example, two branches that differ only
 * in a C library frame become one. So we build the tree anew and join the sets of ranks.
 *
 * A set such as "0-1048575" is short in a file and long in memory. We also compare each frame with
 * its siblings. So a malicious tree could take gigabytes of memory, or hours. We count the work and
 * return such a tree unchanged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"
#include "report/json_util.h"
#include "report/stacks/stack_nodes.h"
#include "report/stacks/stack_tree.h"

/* The limit on the ranks of a snapshot applies here too. */
#define MAX_RANKS (1u << 20)
/*
 * Limit on the work. Each rank that we read costs one unit. COMPARED comparisons of a frame with a
 * sibling cost another. Our own trees, at their largest number of siblings, take half of the limit.
 * It allows 128 MiB at most.
 */
#define MAX_WORK (1u << 24)
/* This many comparisons take as long as reading and storing one rank. */
#define COMPARED 16u

struct fold {
	size_t work_left;
};

struct set {
	int32_t *list;
	size_t n;
};

static void set_fini(struct set *s)
{
	free(s->list);
}

static int spend(struct fold *f, size_t work)
{
	if (work > f->work_left)
		return -E2BIG;
	f->work_left -= work;
	return 0;
}

static int read_set(struct fold *f, const json_t *node, struct set *ret)
{
	int r = cw_rankset_parse(cw_json_str(node, "ranks", ""), MAX_RANKS, &ret->list, &ret->n);

	/* Text that is not a set of ranks counts as an empty set. */
	return r == -ENOMEM ? r : spend(f, ret->n);
}

static uint32_t number(const json_t *node, const char *key)
{
	json_int_t n = cw_json_int(node, key, 0);

	return n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0;
}

/* Removes the members of `other` from s. Both are ascending. */
static void subtract(struct set *s, const struct set *other)
{
	size_t kept = 0, at = 0;

	for (size_t i = 0; i < s->n; i++) {
		while (at < other->n && other->list[at] < s->list[i])
			at++;
		if (at == other->n || other->list[at] != s->list[i])
			s->list[kept++] = s->list[i];
	}
	s->n = kept;
}

static int join(struct cw_stack_node *node, const struct set *ranks, uint32_t n)
{
	uint32_t before = node->ranks.n_all;
	int r = 0;

	for (size_t i = 0; i < ranks->n && r == 0; i++)
		r = cw_stack_ranks_add(&node->ranks, ranks->list[i]);
	node->ranks.n_all = before + n;
	return r;
}

static int find_or_append(struct fold *f, struct cw_stack_node *out, const json_t *from,
			  struct cw_stack_node **ret)
{
	struct cw_stack_frame frame = {
		.name = cw_json_str(from, "name", ""),
		.file = cw_json_str(from, "file", ""),
		.module = cw_json_str(from, "module", ""),
		.line = cw_json_int(from, "line", 0),
		.is_folded = json_is_true(json_object_get(from, "fold")),
	};
	int r = spend(f, 1 + out->n_calls / COMPARED);
	struct cw_stack_node *node = r == 0 ? cw_stack_node_find(out, &frame) : NULL;

	if (r == 0 && !node) {
		node = cw_stack_node_append(out, &frame);
		r = node ? 0 : -ENOMEM;
	}
	*ret = node;
	return r;
}

/* Adds the stacks that end in a folded node. */
static int add_ends(struct fold *f, struct cw_stack_node *out, const json_t *from)
{
	const json_t *calls = json_object_get(from, "calls"), *call;
	_cleanup_(set_fini) struct set ranks = { 0 };
	uint32_t ends = number(from, "ends");
	struct cw_stack_node *node;
	int r = read_set(f, from, &ranks);
	size_t i;

	if (r < 0 || ends == 0)
		return r;
	json_array_foreach (calls, i, call) {
		_cleanup_(set_fini) struct set deeper = { 0 };

		r = read_set(f, call, &deeper);
		if (r < 0)
			return r;
		r = spend(f, ranks.n);
		if (r < 0)
			return r;
		subtract(&ranks, &deeper);
	}
	r = find_or_append(f, out, from, &node);
	if (r < 0)
		return r;
	node->n_ends += ends;
	return join(node, &ranks, ends);
}

static int fold_into(struct fold *f, struct cw_stack_node *out, const json_t *nodes)
{
	const json_t *from;
	size_t i;
	int r = 0;

	json_array_foreach (nodes, i, from) {
		const json_t *calls = json_object_get(from, "calls");
		_cleanup_(set_fini) struct set ranks = { 0 };
		struct cw_stack_node *node;

		if (json_is_true(json_object_get(from, "fold")) && json_array_size(calls)) {
			r = add_ends(f, out, from);
			if (r == 0)
				r = fold_into(f, out, calls);
			if (r < 0)
				return r;
			continue;
		}
		r = read_set(f, from, &ranks);
		if (r == 0)
			r = find_or_append(f, out, from, &node);
		if (r == 0)
			r = join(node, &ranks, number(from, "n"));
		if (r < 0)
			return r;
		node->n_ends += number(from, "ends");
		r = fold_into(f, node, calls);
		if (r < 0)
			return r;
	}
	return r;
}

json_t *cw_stack_tree_fold(const json_t *roots)
{
	struct fold f = { .work_left = MAX_WORK };
	struct cw_stack_node root = { 0 };
	int r = fold_into(&f, &root, roots);
	json_t *folded = r == 0 ? cw_stack_nodes_doc(&root) : NULL;

	cw_stack_node_fini(&root);
	return r == -E2BIG ? json_deep_copy(roots) : folded;
}
