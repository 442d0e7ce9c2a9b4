/* SPDX-License-Identifier: Apache-2.0 */
/* Exported Flight Recorder dumps read back as the same verdict on the same ranks. */
#include "import/fr_export.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/verdict.h"
#include "import/flight_recorder.h"
#include "lab/suite/watch.h"

#define S INT64_C(1000000000)
#define WALL_NS (INT64_C(1795219200) * S)
#define HEAD "scenario s\nranks 8 per-node 4\ncomm world all\ncomms tp size 4\n"
#define LOOP                                                                                       \
	"program\nloop\nwork 20ms\nall_reduce tp 8192\ncompute 20ms\nbroadcast tp 4096\n"          \
	"reduce_scatter world 16384\nall_gather world 16384\nsync\nend\nend\n"
#define PIPE                                                                                       \
	"program\nloop\nrecv world 4096 from prev\ncompute 10ms\nsend world 4096 to next\n"        \
	"recv world 4096 from next\nsend world 4096 to prev\nall_reduce world\nsync\nend\nend\n"
#define RING                                                                                       \
	"program\nloop\ncompute 10ms\ngroup\nsend world 64 to ring-next\n"                         \
	"recv world 64 from ring-prev\nend\nall_reduce tp\nsync\nend\nend\n"

static char dir[] = "/tmp/cw-fr-XXXXXX";

static void init(void)
{
	cr_assert_not_null(mkdtemp(dir));
}

static void fini(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = readdir(d)))
		(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	rmdir(dir);
}

TestSuite(fr_export, .init = init, .fini = fini);

static int look(void *user, const struct suite_scenario *s)
{
	struct cw_snapshot **ret = user;
	struct cw_err err = { "" };

	cr_assert_eq(cw_watch_snapshot(s, 40 * S, &err, ret), 0, "%s", err.text);
	(*ret)->wall_ns = WALL_NS;
	return 0;
}

static struct cw_snapshot *run(const char *program, const char *fault)
{
	struct cw_snapshot *snap = NULL;
	struct cw_err err = { "" };
	char text[2048];

	(void)snprintf(text, sizeof(text), HEAD "%s%s\nexpect silence\nend\n", program, fault);
	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 1000, look, &snap, &err), 0, "%s",
		     err.text);
	return snap;
}

/* "never_entered 2" */
static void say(const struct cw_snapshot *snap, char *buf, size_t len)
{
	struct cw_verdict v;

	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	(void)snprintf(buf, len, "%s", cw_class_name(v.verdict_class));
	for (uint32_t i = 0; i < v.n_culprits; i++)
		(void)snprintf(buf + strlen(buf), len - strlen(buf), " %d",
			       snap->ranks[v.culprits[i].rank].rank);
	cw_verdict_fini(&v);
}

struct round {
	char program[512], fault[96], verdict[64], again[64];
};

ParameterizedTestParameters(fr_export, the_verdict_survives_the_format)
{
	static struct round rounds[] = {
		{ LOOP, "fault 2 at 8s on tp all_reduce block", "never_entered 2", "" },
		{ LOOP, "fault 2 at 8s on tp all_reduce change count 77", "mismatch 2", "" },
		{ LOOP, "fault 2 at 8s on tp all_reduce change kind all_gather", "mismatch 2", "" },
		{ LOOP, "fault 2 at 8s on tp all_reduce skip", "mismatch 2", "" },
		{ LOOP, "fault 2 at 8s on tp all_reduce stuck", "device_stalled 2", "" },
		{ LOOP, "fault 2 at 8s on tp all_reduce wedge", "in_collective", "" },
		{ PIPE, "fault 2 at 8s on world recv skip", "deadlock 1 2", "" },
		{ PIPE, "fault 2 at 8s on world recv change count 8192", "p2p_unmatched 1 2", "" },
		{ RING, "fault 2 at 8s on world send block", "p2p_unmatched 2", "" },
		/* The format has no field for live ranks. */
		{ LOOP, "fault 2 at 8s on tp all_reduce kill 9", "process_dead 2",
		  "never_entered 2" },
	};

	return cr_make_param_array(struct round, rounds, sizeof(rounds) / sizeof(*rounds), NULL);
}

ParameterizedTest(struct round *p, fr_export, the_verdict_survives_the_format)
{
	struct cw_snapshot *snap = run(p->program, p->fault), *again;
	struct cw_fr_export done;
	struct cw_err err = { "" };
	char text[128];

	say(snap, text, sizeof(text));
	cr_expect_str_eq(text, p->verdict, "%s: %s", p->fault, text);
	cr_assert_eq(cw_flight_recorder_write(snap, dir, &done, &err), 0, "%s", err.text);
	cr_expect_eq(done.n_dumps, 8);
	cr_expect_eq(done.n_unnamed + done.n_unnumbered, 0);
	cr_assert_eq(cw_flight_recorder_read(dir, NULL, &again, &err), 0, "%s", err.text);
	say(again, text, sizeof(text));
	cr_expect_str_eq(text, *p->again ? p->again : p->verdict, "%s: %s", p->fault, text);
	cr_expect_eq(again->now_ns, WALL_NS, "the file's time is the snapshot's");
	(void)cw_snapshot_free(again);
	(void)cw_snapshot_free(snap);
}

Test(fr_export, nothing_is_written_over)
{
	struct cw_snapshot *snap = run(LOOP, "");
	struct cw_fr_export done;
	struct cw_err err = { "" };

	cr_assert_eq(cw_flight_recorder_write(snap, dir, &done, &err), 0);
	cr_assert_eq(cw_flight_recorder_write(snap, dir, &done, &err), -EEXIST);
	cr_assert_not_null(strstr(err.text, "nccl_trace_rank_0"));
	cr_assert_eq(cw_flight_recorder_write(snap, "/proc/nowhere", &done, &err), -ENOENT);
	(void)cw_snapshot_free(snap);
}

Test(fr_export, what_has_no_number_is_counted_and_omitted)
{
	struct cw_snapshot *snap = run(LOOP, "");
	struct cw_fr_export done;
	struct cw_err err = { "" };

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].rank == 3)
			snap->ranks[i].rank = -1;
	cr_assert_eq(cw_flight_recorder_write(snap, dir, &done, &err), 0, "%s", err.text);
	cr_expect_eq(done.n_dumps, 7);
	cr_expect_eq(done.n_unnumbered, 1);
	cr_expect_eq(done.n_unnamed, 1, "of world the missing number is known, of its tp not");
	(void)cw_snapshot_free(snap);
}

/* A rank states its own number: it may claim a number that no dump can have. */
Test(fr_export, a_number_beyond_what_readers_take_is_none)
{
	struct cw_snapshot *snap = run(LOOP, ""), *again = NULL;
	struct cw_fr_export done;
	struct cw_err err = { "" };
	uint32_t n_dumps = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		if (snap->ranks[i].rank == 3 || snap->ranks[i].rank == 5)
			snap->ranks[i].rank = snap->ranks[i].rank == 3 ? INT32_MAX : 1 << 20;
	cr_assert_eq(cw_flight_recorder_write(snap, dir, &done, &err), 0, "%s", err.text);
	cr_expect_eq(done.n_dumps, 6);
	cr_expect_eq(done.n_unnumbered, 2);
	cr_assert_eq(cw_flight_recorder_read(dir, NULL, &again, &err), 0, "%s", err.text);
	for (uint32_t i = 0; i < again->n_ranks; i++)
		n_dumps += !!(again->ranks[i].flags & CW_RANKF_HAS_RECORD);
	cr_expect_eq(n_dumps, done.n_dumps, "%u", n_dumps);
	(void)cw_snapshot_free(again);
	(void)cw_snapshot_free(snap);
}
