/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps collwatch from seeing a job, as findings: a fixed name, what is wrong, and the command
 * that mends it. Each check adds what it finds and stays silent else; docs/collwatch.1.scd lists
 * the names. Checks look, they change nothing. They may block for a few seconds.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct doctor {
	json_t *findings; /* array of {"name","what","fix"} */
	json_t *notes;    /* sentences about what is right but worth knowing */
	json_t *checked;  /* names of the checks that were made */
	const char *control, *agent_socket, *config;
};

/* fix: a command line, or NULL where people have to decide. Formats `what`. */
void doctor_find(struct doctor *d, const char *name, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void doctor_note(struct doctor *d, const char *text);
void doctor_checked(struct doctor *d, const char *name);

#define DOCTOR_AGENT_SOCKET "/run/collwatch/agent.sock"

/* True: no daemon belongs on this machine, as far as it shows, and the finding says so. */
bool doctor_check_workstation(struct doctor *d);
/* The daemon: does it run, is its configuration good, what does it say of itself. */
void doctor_check_daemon(struct doctor *d);
/* May this user's ranks register? */
void doctor_check_agent_socket(struct doctor *d);
/* Could the agent be loaded into this program, and see its NCCL? argv[0] as execvp() finds it. */
void doctor_check_program(struct doctor *d, const char *program);
/* Does it run in a container, as far as it shows? */
bool doctor_is_container(void);
/* Does that process see the agent and its socket? */
void doctor_check_mounts(struct doctor *d, int32_t pid);
/* The same for a process that runs: is the agent in it? */
void doctor_check_process(struct doctor *d, int32_t pid);
