/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by capture.c (queue, deadlines, documents) and capture_steps.c (the parts). */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/evidence/capture.h"
#include "daemon/system/children.h"

struct event;

struct cw_capture_job {
	struct cw_capture *owner;
	struct cw_capture_job *next, **link;
	struct cw_msg_evidence_target target;
	cw_capture_fn fn;
	void *user;
	int64_t deadline_ns;
	struct event *timer;
	unsigned step; /* of enum cw_capture_step; 0 also while queued */
	bool is_running, is_gone, is_stopped;
	bool is_displaced; /* its place in the queue went to another user */
	int32_t rank;
	uid_t uid; /* whose process it is */
	struct cw_child *child;
	bool is_asking_python;
	uint64_t python_handle;
	json_t *proc, *native, *python;
};

struct cw_capture {
	struct cw_capture_config config;
	struct cw_children *children;
	struct event *pump;
	struct cw_capture_job *first, **last; /* running and queued, in order of arrival */
	struct cw_capture_stats stats;
	uid_t started_uid;                /* whose capture was started last */
	struct cw_kernel_threads *kernel; /* NULL = not to be had here */
	char *kernel_text;                /* what it read last: for the child that is forked next */
};

/* Goes on with the next part that is wanted; false: there is none. */
bool cw_capture_step(struct cw_capture_job *job);
/* A part has come to its end. In capture.c. */
void cw_capture_step_done(struct cw_capture_job *job);
