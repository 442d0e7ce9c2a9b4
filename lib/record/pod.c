/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of containers, from kubelet's two drivers and the runtimes:
 *
 *   /kubepods/burstable/pod5f1c…-…/0a1b… (cgroupfs)
 *   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f1c…_….slice/cri-containerd-0a1b….scope
 *
 * A path from another control group namespace begins with "/../" and lacks its upper part. We
 * therefore search for the part that names the pod. The next part names the container. The uid of a
 * static pod is 32 digits without dashes.
 */
#include "record/pod.h"

#include <stdio.h>
#include <string.h>

#include "common/job_env.h"

#define UID_DIGITS 32u
#define UID_BYTES (UID_DIGITS + 4)
#define ID_DIGITS 64u
#define HEX "0123456789abcdef"

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool cw_pod_is_name(const char *text)
{
	size_t n = strlen(text);

	if (!n || !is_alphanumeric(text[0]) || !is_alphanumeric(text[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_alphanumeric(text[i]) && text[i] != '-' && text[i] != '.')
			return false;
	return true;
}

/* Copies the first variable that is set, unless it is too long or not a Kubernetes name. */
static void read_name(const struct cw_env *env, const char *const *names, char *to, size_t len)
{
	const char *value = NULL;

	for (; *names && !value; names++)
		value = cw_env_get(env, *names);
	if (value && strnlen(value, len) < len && cw_pod_is_name(value))
		memcpy(to, value, strlen(value) + 1);
}

void cw_pod_of_environment(const struct cw_env *env, struct cw_pod *ret)
{
	static const char *const name[] = { "COLLWATCH_POD_NAME", "POD_NAME", NULL };
	static const char *const container[] = { "COLLWATCH_CONTAINER", NULL };

	const char *ns;

	*ret = (struct cw_pod){ 0 };
	read_name(env, name, ret->name, sizeof(ret->name));
	if (!ret->name[0])
		return;
	ns = cw_job_env_namespace(env);
	if (ns)
		memcpy(ret->ns, ns, strlen(ns) + 1); /* fits */
	read_name(env, container, ret->container, sizeof(ret->container));
}

/*
 * Accepts 8-4-4-4-12 digits with '-', or with '_' in a slice's name, or 32 digits alone. Returns
 * false if the text is not a uid.
 */
static bool read_uid(const char *text, size_t len, char *to)
{
	static const unsigned dashes[] = { 8, 13, 18, 23 };
	char uid[UID_BYTES + 1] = "";
	unsigned next = 0;

	if (len == UID_DIGITS && strspn(text, HEX) >= len) {
		memcpy(to, text, len);
		to[len] = '\0';
		return true;
	}
	if (len != UID_BYTES)
		return false;
	for (unsigned i = 0; i < UID_BYTES; i++) {
		bool is_dash = next < 4 && i == dashes[next];

		if (is_dash ? text[i] != '-' && text[i] != '_' : !strchr(HEX, text[i]))
			return false;
		next += is_dash;
		uid[i] = is_dash ? '-' : text[i];
	}
	memcpy(to, uid, sizeof(uid));
	return true;
}

/* Accepts "pod<uid>" or "kubepods-<class>-pod<uid>.slice". */
static bool read_pod(const char *part, size_t len, char *to)
{
	static const char slice[] = ".slice", *const before[] = { "kubepods-burstable-pod",
								  "kubepods-besteffort-pod",
								  "kubepods-pod" };

	if (len > 3 && strncmp(part, "pod", 3) == 0)
		return read_uid(part + 3, len - 3, to);
	if (len <= strlen(slice) || strncmp(part + len - strlen(slice), slice, strlen(slice)) != 0)
		return false;
	len -= strlen(slice);
	for (unsigned i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (len > strlen(before[i]) && strncmp(part, before[i], strlen(before[i])) == 0)
			return read_uid(part + strlen(before[i]), len - strlen(before[i]), to);
	return false;
}

/* Accepts "<id>" or "<runtime>-<id>.scope". */
static void read_container(const char *part, size_t len, char *to)
{
	static const char scope[] = ".scope";
	const char *id = part;

	if (len > strlen(scope) && strncmp(part + len - strlen(scope), scope, strlen(scope)) == 0)
		len -= strlen(scope);
	if (len < ID_DIGITS)
		return;
	id += len - ID_DIGITS;
	if (strspn(id, HEX) < ID_DIGITS || (id > part && id[-1] != '-'))
		return;
	memcpy(to, id, CW_POD_ID_DIGITS);
	to[CW_POD_ID_DIGITS] = '\0';
}

bool cw_pod_of_group(const char *group, struct cw_pod *ret)
{
	const char *part = group;

	*ret = (struct cw_pod){ 0 };
	while (*part == '/') {
		size_t len = strcspn(++part, "/");

		if (read_pod(part, len, ret->name)) {
			part += len;
			if (*part == '/')
				read_container(part + 1, strcspn(part + 1, "/"), ret->container);
			return true;
		}
		part += len;
	}
	return false;
}

bool cw_pod_of_groups(const char *groups, struct cw_pod *ret)
{
	const char *end;

	*ret = (struct cw_pod){ 0 };
	for (; (end = strchr(groups, '\n')); groups = end + 1) {
		const char *path = memchr(groups, '/', (size_t)(end - groups));
		char line[512];

		/* Skip a longer line: kubelet never makes such a path. */
		if (path && (size_t)(end - path) < sizeof(line)) {
			memcpy(line, path, (size_t)(end - path));
			line[end - path] = '\0';
			if (cw_pod_of_group(line, ret))
				return true;
		}
	}
	return false;
}

void cw_pod_complete(struct cw_pod *names, const struct cw_pod *ids)
{
	if (!ids || !ids->name[0])
		return;
	if (!names->name[0])
		*names = *ids;
	else if (!names->container[0])
		memcpy(names->container, ids->container, sizeof(names->container));
}
