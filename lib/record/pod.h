/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in Kubernetes a process is: its pod and its container. Its environment names them, where
 * the pod's template has them from the downward API; else the path of its control group has the
 * pod's uid and the container's id in it, as kubelet and the container runtimes make such paths.
 *
 * Both are what somebody else wrote: labels for people, never an identity. A name has only letters
 * that Kubernetes allows there, or is none.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>

struct cw_env;

/* A pod's name is a DNS subdomain; those of namespaces and containers are DNS labels. */
#define CW_POD_NAME_BYTES 254
#define CW_POD_LABEL_BYTES 64
/* Of a container's id, as `crictl ps` and `docker ps` show it. */
#define CW_POD_ID_DIGITS 12u

/* "" = not known. A namespace and a container's name only with a pod's. */
struct cw_pod {
	char name[CW_POD_NAME_BYTES]; /* or, from a control group, its uid */
	char ns[CW_POD_LABEL_BYTES];
	char container[CW_POD_LABEL_BYTES]; /* its name, or the first digits of its id */
};

/* Lower-case letters, digits, '-' and '.', and the first and the last no '-' or '.'. */
bool cw_pod_is_name(const char *text);

void cw_pod_of_environment(const struct cw_env *env, struct cw_pod *ret);

/* group: "/kubepods.slice/…", of a line of /proc/PID/cgroup. False: it is no pod's. */
bool cw_pod_of_group(const char *group, struct cw_pod *ret);

/* Text of /proc/PID/cgroup: the first line that says it. A last line without an end is cut off. */
bool cw_pod_of_groups(const char *groups, struct cw_pod *ret);

/* What names does not say, ids do. ids may be NULL. */
void cw_pod_complete(struct cw_pod *names, const struct cw_pod *ids);
