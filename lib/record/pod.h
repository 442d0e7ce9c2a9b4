/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's place in Kubernetes: its pod and its container. The environment names both if the
 * pod's template passes them from the downward API. Else the path of the control group contains
 * the pod's uid and the container's id. kubelet and the container runtimes build that path in a
 * fixed form.
 *
 * Environment and path are other people's text: labels for people, never an identity. We accept
 * only the letters that Kubernetes allows in a name.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>

struct cw_env;

/* A pod's name is a DNS subdomain; namespaces and containers have DNS labels. */
#define CW_POD_NAME_BYTES 254
#define CW_POD_LABEL_BYTES 64
/* Digits of a container's id, as in `crictl ps` and `docker ps`. */
#define CW_POD_ID_DIGITS 12u

/* "" = not known. A namespace or a container's name never appears without a pod's. */
struct cw_pod {
	char name[CW_POD_NAME_BYTES]; /* or, from a control group, its uid */
	char ns[CW_POD_LABEL_BYTES];
	char container[CW_POD_LABEL_BYTES]; /* its name, or the first digits of its id */
};

/* Accepts lower-case letters, digits, '-' and '.', but no '-' or '.' at either end. */
bool cw_pod_is_name(const char *text);

void cw_pod_of_environment(const struct cw_env *env, struct cw_pod *ret);

/* group: "/kubepods.slice/…", from a line of /proc/PID/cgroup. False: not a pod's group. */
bool cw_pod_of_group(const char *group, struct cw_pod *ret);

/*
 * Takes the text of /proc/PID/cgroup and uses the first line that names a pod. Skips a last line
 * without a newline, which is truncated.
 */
bool cw_pod_of_groups(const char *groups, struct cw_pod *ret);

/* Fills gaps in names from ids. ids may be NULL. */
void cw_pod_complete(struct cw_pod *names, const struct cw_pod *ids);
