/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles the daemon. The service creates the parts and passes data from each part to the next.
 * There is one event base and one thread. The parts do not know each other.
 *
 * agents → node → digest → election → transport → leader → incident → store, webhook
 *                                       ↕ peers            ↘ responder → node, capture
 */
#pragma once

#include "common/err.h"
#include "daemon/config/config.h"
#include "loop/fork_server.h"
#include "loop/reload_state.h"

struct cw_clock;
struct cw_extension;
struct event_base;
struct cw_service;

/*
 * Creates all parts. Borrows clock and forks for the service's life. clock: the machine's clock, or
 * that of a test. forks: a fork server with the jobs of cw_service_jobs. Owns config from now on,
 * except on failure. Returns 0, or -errno with err set.
 */
int cw_service_new(struct event_base *base, const struct cw_clock *clock,
		   struct cw_fork_server *forks, struct cw_config *config, struct cw_service **ret,
		   struct cw_err *err);
/* Disconnects from the peers and frees all parts. Takes NULL; returns NULL. */
struct cw_service *cw_service_free(struct cw_service *s);

/*
 * Applies the settings that can change while the daemon runs (log level, thresholds, webhook). Owns
 * config from now on, except on failure. *ret_restart: the name of a changed key that needs a
 * restart; NULL = there is none. If *ret_restart is not NULL, or on failure, all settings stay.
 * Returns 0, or -errno with err set.
 */
int cw_service_reload(struct cw_service *s, struct cw_config *config, const char **ret_restart,
		      struct cw_err *err);

/*
 * Stores the result of a reload for status and metrics. why: the key that needs a restart, or the
 * text of the error; we copy it.
 */
void cw_service_note_reload(struct cw_service *s, enum cw_reload_result result, const char *why);

/* The extension that judges tensor summaries (digest/extension.h). */
extern const struct cw_extension *const cw_service_extension;

/* The functions that the fork server runs in children of the service. */
#define CW_SERVICE_JOBS 12u
extern const struct cw_fork_job cw_service_jobs[CW_SERVICE_JOBS];

/* Measures the iteration. Call this after each iteration of the loop. */
void cw_service_end_iteration(struct cw_service *s);

/* Writes the daemon's status as one line, for the service manager. */
void cw_service_status(const struct cw_service *s, char *buf, unsigned len);
