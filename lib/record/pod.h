/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process's place in Kubernetes: its pod and its container. If the pod's template passes both
 * from the downward API, the environment names them. Otherwise the path of the control group
 * contains the pod's uid and the container's id. kubelet and the container runtimes build that path
 * in a fixed form.
 *
 * Environment and path are text that other people wrote. We use them as labels for people and never
 * as an identity. We accept only the letters that Kubernetes allows in a name.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>

struct cw_env;

/* A pod's name is a DNS subdomain; namespaces and containers have DNS labels. */
#define CW_POD_NAME_BYTES 254
#define CW_POD_LABEL_BYTES 64
/* Length of a container's id as we show it, in digits, like `crictl ps` and `docker ps`. */
#define CW_POD_ID_DIGITS 12u

/* "" = not known. A namespace or a container's name appears only together with a pod's name. */
struct cw_pod {
	char name[CW_POD_NAME_BYTES]; /* the pod's name, or its uid */
	char ns[CW_POD_LABEL_BYTES];
	char container[CW_POD_LABEL_BYTES]; /* the name, or the id's first digits */
};

/* Accepts lower-case letters, digits, '-' and '.', but no '-' or '.' at either end. */
bool cw_pod_is_name(const char *text);

void cw_pod_of_environment(const struct cw_env *env, struct cw_pod *ret);

/*
 * group: "/kubepods.slice/…", from a line of /proc/PID/cgroup. Returns false if the group is not a
 * pod's.
 */
bool cw_pod_of_group(const char *group, struct cw_pod *ret);

/*
 * Takes the text of /proc/PID/cgroup and uses the first line that names a pod. If the last line has
 * no newline, it is truncated and we skip it.
 */
bool cw_pod_of_groups(const char *groups, struct cw_pod *ret);

/* Fills the empty fields of `names` from `ids`, which may be NULL. */
void cw_pod_complete(struct cw_pod *names, const struct cw_pod *ids);
