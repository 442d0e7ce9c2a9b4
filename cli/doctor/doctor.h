/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings of `doctor`: reasons why collwatch cannot see a job. A finding has a fixed name, a
 * description, and the command that fixes it; docs/collwatch.1.scd lists the names. Each check adds
 * a finding per fault. Checks read and change nothing. They may block for a few seconds.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct doctor {
	json_t *findings; /* array of {"name","what","fix"} */
	json_t *notes;    /* sentences about facts that are fine, but worth knowing */
	json_t *checked;  /* names of the checks that ran */
	const char *control, *agent_socket, *config;
};

/*
 * Adds a finding. fix: a command line, or NULL if an administrator has to decide. fmt: the format
 * of the finding's description.
 */
void doctor_find(struct doctor *d, const char *name, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void doctor_note(struct doctor *d, const char *text);
void doctor_checked(struct doctor *d, const char *name);

#define DOCTOR_AGENT_SOCKET "/run/collwatch/agent.sock"

/* True if this machine seems to need no daemon. Then also adds a finding about it. */
bool doctor_check_workstation(struct doctor *d);
/*
 * Checks that the daemon runs and that its configuration is valid. Adds the problems that the
 * daemon itself reports.
 */
void doctor_check_daemon(struct doctor *d);
/* Notes the known hangs of the NCCL versions that ranks of this machine use. */
void doctor_check_known_hangs(struct doctor *d);
/* Checks whether this user's ranks may register. */
void doctor_check_agent_socket(struct doctor *d);
/*
 * Checks whether the program can load the agent, and whether the agent can see its NCCL. We find
 * the program as execvp() does.
 */
void doctor_check_program(struct doctor *d, const char *program);
/* True if this process seems to run in a container. */
bool doctor_is_container(void);
/* Checks whether the process can see the agent and the agent's socket in its mounts. */
void doctor_check_mounts(struct doctor *d, int32_t pid);
/* Checks whether a running process has loaded the agent, and whether the agent can see its NCCL. */
void doctor_check_process(struct doctor *d, int32_t pid);
