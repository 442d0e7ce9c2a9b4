/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the verbs of the control socket: status, ops, incidents, report, mute, summaries
 * (docs/schemas.md). This file turns a request into a reply; control_socket.c owns the socket. A
 * caller sees its own jobs. Root, the daemon's own user and the control group see all jobs.
 *
 * Loop thread only; reads bundles from local disk.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "daemon/control/status_doc.h"
#include "daemon/store/store.h"
#include "digest/extension.h"

struct cw_control_source {
	/* Fills *ret, the data for a status document. */
	void (*status)(struct cw_status_source *ret, void *user);
	struct cw_store *store;
	struct cw_mutes *mutes;
	const struct cw_extension *extension; /* formats pages of tensor summaries */
	const char *node_name;
	void *user;
};

/*
 * Number of digits for a double. A double that we write with this many digits is read back with the
 * same bits.
 */
#define CW_CONTROL_EXACT 17

struct cw_control_answer {
	uint32_t code; /* exit status of the command line: 0 = success, 1 = error, 3 = not found */
	char *json;    /* the document, on the heap; "" = none */
	char error[256];
};

/* Answers one request. Always fills *ret, which the caller frees with cw_control_answer_fini(). */
void cw_control_handle(const struct cw_control_source *s, const struct cw_caller *caller,
		       const char *verb, const char *arguments, struct cw_control_answer *ret);
void cw_control_answer_fini(struct cw_control_answer *answer);
