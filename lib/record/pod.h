/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's place in Kubernetes: its pod and its container. The environment names both if the
 * pod's template passes them from the downward API. Otherwise we read the path of the control
 * group, which contains the pod's uid and the container's id. kubelet and the container runtimes
 * build that path in a fixed form.
 *
 * The environment and the path are text that other people wrote. We use them as labels for people
 * and never as an identity. We accept only the letters that Kubernetes allows in a name.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>

struct cw_env;

/* A pod's name is a DNS subdomain; namespaces and containers have DNS labels. */
#define CW_POD_NAME_BYTES 254
#define CW_POD_LABEL_BYTES 64
/* We show this many digits of a container's id, like `crictl ps` and `docker ps`. */
#define CW_POD_ID_DIGITS 12u

/*
 * A field holds "" if its value is not known. A namespace or a container's name appears only
 * together with a pod's name.
 */
struct cw_pod {
	char name[CW_POD_NAME_BYTES]; /* the pod's name, or its uid */
	char ns[CW_POD_LABEL_BYTES];
	char container[CW_POD_LABEL_BYTES]; /* the name, or the id's first digits */
};

/* Accepts lower-case letters, digits, '-' and '.', but no '-' or '.' at either end. */
bool cw_pod_is_name(const char *text);

void cw_pod_of_environment(const struct cw_env *env, struct cw_pod *ret);

/*
 * Reads the pod from a control group's path ("/kubepods.slice/…" in a line of /proc/PID/cgroup).
 * Returns false if the group does not belong to a pod.
 */
bool cw_pod_of_group(const char *group, struct cw_pod *ret);

/*
 * Reads the pod from the text of /proc/PID/cgroup. We use the first line that names a pod. A last
 * line without a newline is truncated, so we skip that line.
 */
bool cw_pod_of_groups(const char *groups, struct cw_pod *ret);

/* Fills the empty fields of `names` from `ids`, which may be NULL. */
void cw_pod_complete(struct cw_pod *names, const struct cw_pod *ids);
