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
	json_t *notes;    /* sentences about facts that are fine, but worth knowing */
	json_t *checked;  /* names of the checks that were made */
	const char *control, *agent_socket, *config;
};

/*
 * Adds a finding. fix: a command line, or NULL if an administrator has to decide. fmt is the format
 * of its description.
 */
void doctor_find(struct doctor *d, const char *name, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void doctor_note(struct doctor *d, const char *text);
void doctor_checked(struct doctor *d, const char *name);

#define DOCTOR_AGENT_SOCKET "/run/collwatch/agent.sock"

/* True if this machine seems to need no daemon. A finding then says so. */
bool doctor_check_workstation(struct doctor *d);
/*
 * Checks that the daemon runs and that its configuration is valid. Also adds the daemon's own
 * complaints.
 */
void doctor_check_daemon(struct doctor *d);
/* Checks whether this user's ranks may register. */
void doctor_check_agent_socket(struct doctor *d);
/*
 * Checks whether this program can load the agent, and whether the agent can see its NCCL. Finds the
 * program as execvp() does.
 */
void doctor_check_program(struct doctor *d, const char *program);
/* True if this process seems to run in a container. */
bool doctor_is_container(void);
/* Checks whether the process sees the agent and the agent's socket. */
void doctor_check_mounts(struct doctor *d, int32_t pid);
/* Checks whether a running process has the agent. Otherwise works like doctor_check_program(). */
void doctor_check_process(struct doctor *d, int32_t pid);
