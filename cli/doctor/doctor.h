/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings of `doctor`: reasons why collwatch cannot see a job. A finding has a fixed name, a
 * description, and the command that fixes it. Each check adds its findings, and adds nothing if all
 * is well; docs/collwatch.1.scd lists the names. Checks only read, and change nothing. They may
 * block for a few seconds.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct doctor {
	json_t *findings; /* array of {"name","what","fix"} */
	json_t *notes;    /* sentences about facts that are fine but worth knowing */
	json_t *checked;  /* names of the checks that were made */
	const char *control, *agent_socket, *config;
};

/* fix: a command line, or NULL if an administrator has to decide. Formats `what`. */
void doctor_find(struct doctor *d, const char *name, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void doctor_note(struct doctor *d, const char *text);
void doctor_checked(struct doctor *d, const char *name);

#define DOCTOR_AGENT_SOCKET "/run/collwatch/agent.sock"

/* True: this machine seems to need no daemon, and a finding says so. */
bool doctor_check_workstation(struct doctor *d);
/* Checks that the daemon runs and its configuration is valid; adds the daemon's complaints. */
void doctor_check_daemon(struct doctor *d);
/* Checks whether this user's ranks may register. */
void doctor_check_agent_socket(struct doctor *d);
/*
 * Checks whether this program can load the agent, and whether the agent can see its NCCL. argv[0]
 * as execvp() finds it.
 */
void doctor_check_program(struct doctor *d, const char *program);
/* True if this process seems to run in a container. */
bool doctor_is_container(void);
/* Checks whether that process sees the agent and its socket. */
void doctor_check_mounts(struct doctor *d, int32_t pid);
/* As doctor_check_program(), for a running process: does it have the agent? */
void doctor_check_process(struct doctor *d, int32_t pid);
