/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the daemon together: it creates the parts and passes data from each to the next. There is
 * one event base and one thread; the parts do not know each other.
 *
 *	agents → node → digest → election → transport → leader → incident → store, webhook
 *	                                      ↕ peers            ↘ responder → node, capture
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
 * clock is the machine's or a test's. forks has the jobs of cw_service_jobs. The service borrows
 * both for life. It takes config on success. Returns 0, or -errno with err set.
 */
int cw_service_new(struct event_base *base, const struct cw_clock *clock,
		   struct cw_fork_server *forks, struct cw_config *config, struct cw_service **ret,
		   struct cw_err *err);
/* Takes NULL; returns NULL. Disconnects from the peers. */
struct cw_service *cw_service_free(struct cw_service *s);

/*
 * Applies the settings that may change while running (log level, thresholds, webhook). Takes the
 * config, except on failure. *ret_restart is the name of a changed key that needs a restart, or
 * NULL. If it is set, or on failure, all settings stay.
 */
int cw_service_reload(struct cw_service *s, struct cw_config *config, const char **ret_restart,
		      struct cw_err *err);

/*
 * Records the result of a reload for status and metrics. why is the key that needs a restart, or
 * the error. We copy it.
 */
void cw_service_note_reload(struct cw_service *s, enum cw_reload_result result, const char *why);

/* The judge of tensor summaries that the service uses (digest/extension.h). */
extern const struct cw_extension *const cw_service_extension;

/* The jobs that the fork server runs for the service. */
#define CW_SERVICE_JOBS 3u
extern const cw_fork_child_fn cw_service_jobs[CW_SERVICE_JOBS];

/* Call it after each iteration of the loop. */
void cw_service_end_iteration(struct cw_service *s);

/* Writes a status of one line for the service manager. */
void cw_service_status(const struct cw_service *s, char *buf, unsigned len);
