/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: make_bundle SCENARIO-FILE SECONDS DIRECTORY
 *
 * Runs the file's scenario in the virtual cluster for that many seconds. Then it takes the state of
 * the job's leader, with all windows, and writes the bundle that the leader would write. Tests use
 * it for the bundle of a job that is too large to run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/stall/stall.h"
#include "analysis/verdict.h"
#include "common/clock.h"
#include "common/parse.h"
#include "lab/suite/watch.h"
#include "report/bundle.h"
#include "report/doc/incident_doc.h"
#include "report/doc/snapshot_doc.h"
#include "tests/support/snapshot/said_text.h"

/*
 * The time of the bundle, 2026-11-21T00:00:00Z. It is fixed, because no test may depend on the time
 * of its run.
 */
#define WALL_NS (INT64_C(1795219200) * CW_NS_PER_S)

struct job {
	int64_t seconds;
	const char *dir;
	bool is_done;
};

static int write_bundle(const struct job *job, struct cw_snapshot *snap, const struct cw_verdict *v)
{
	struct cw_incident_info info = {
		.id = "0123456789abcdef",
		.confidence = v->confidence,
		.last_progress_wall_ns = WALL_NS - (snap->now_ns - v->last_progress_ns),
		.stall_wall_ns = WALL_NS - CW_NS_PER_S,
		.confirmed_wall_ns = WALL_NS,
		.leader = "node0",
		.bundle = job->dir,
	};
	struct cw_bundle bundle = { 0 };
	struct cw_err err = { "" };
	int fd, r;

	info.severity = cw_stall_severity(snap, v, &info.hang);
	snap->wall_ns = WALL_NS;
	bundle.incident = cw_incident_doc(snap, v, &info);
	bundle.snapshot = cw_snapshot_doc(snap);
	if (mkdir(job->dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = open(job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = cw_bundle_write(fd, info.id, &bundle, &err);
	(void)close(fd);
	cw_bundle_fini(&bundle);
	if (r < 0)
		fprintf(stderr, "make_bundle: %s\n", err.text);
	else
		printf("%s %s\n", cw_class_name(v->verdict_class), said_text(&v->said));
	return r;
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	struct job *job = user;
	struct cw_snapshot *snap = NULL;
	struct cw_verdict v = { 0 };
	struct cw_err err = { "" };
	int r;

	if (job->is_done)
		return 0;
	job->is_done = true;
	r = cw_watch_snapshot(s, job->seconds * CW_NS_PER_S, &err, &snap);
	if (r == 0)
		r = cw_verdict_compute(snap, &v);
	if (r == 0)
		r = write_bundle(job, snap, &v);
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	return r;
}

int main(int argc, char **argv)
{
	struct cw_err err = { "" };
	struct job job = { 0 };

	if (argc != 4 || cw_parse_i64(argv[2], 1, 86400, &job.seconds) < 0) {
		fprintf(stderr, "usage: make_bundle SCENARIO-FILE SECONDS DIRECTORY\n");
		return 1;
	}
	job.dir = argv[3];
	if (cw_suite_read_path(argv[1], on_scenario, &job, &err) < 0) {
		fprintf(stderr, "make_bundle: %s\n", err.text);
		return 1;
	}
	return 0;
}
