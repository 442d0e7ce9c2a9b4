/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of others are read whole, or not, when memory runs out. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "import/flight_recorder.h"
#include "report/doc/snapshot_doc.h"
#include "tests/support/memory/no_memory.h"

static json_t *doc_of(const struct cw_snapshot *snap)
{
	json_t *doc = cw_snapshot_doc(snap);

	cr_assert_not_null(doc);
	return doc;
}

struct import {
	char dir[512];
	json_t *right;
};

/* The content does not depend on the time of the read, because its time is the dumps'. */
static void read_dumps(void *userdata)
{
	const struct import *x = userdata;
	struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };
	json_t *doc;
	int r;

	no_memory_begin();
	r = cw_flight_recorder_read(x->dir, NULL, &snap, &err);
	no_memory_end();
	if (r != 0) {
		cr_assert(no_memory_happened(), "%d: %s", r, err.text);
		cr_assert_eq(r, -ENOMEM, "%d: %s", r, err.text);
		cr_assert_null(snap);
		cr_assert_eq(cw_flight_recorder_read(x->dir, NULL, &snap, &err), 0, "%s", err.text);
	}
	doc = doc_of(snap);
	cr_assert(json_equal(doc, x->right), "%s is not read whole", x->dir);
	json_decref(doc);
	cw_snapshot_free(snap);
}

static void expect_read(const char *name)
{
	struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };
	struct import x;

	(void)snprintf(x.dir, sizeof(x.dir), "%s/flight_recorder/%s", CW_TEST_DATA, name);
	cr_assert_eq(cw_flight_recorder_read(x.dir, NULL, &snap, &err), 0, "%s", err.text);
	x.right = doc_of(snap);
	cw_snapshot_free(snap);
	no_memory_walk(name, read_dumps, &x);
	json_decref(x.right);
}

Test(import_no_memory, pickles_are_read_whole_or_not)
{
	expect_read("never_entered");
	expect_read("no_send");
}

Test(import_no_memory, so_is_json)
{
	expect_read("quiet_rank");
}
