/* SPDX-License-Identifier: Apache-2.0 */
#include "record/nccl_variables.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "NCCL_"
#define SEPARATOR " " PREFIX
#define HIDDEN "(hidden)"

/*
 * NCCL's own message about a difference between ranks names these two variables (socketProgress in
 * src/transport/net_socket.cc).
 */
#define NCCL_SOCKET "https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/transport/net_socket.cc"
#define VLLM "https://docs.vllm.ai/en/v0.9.2/usage/troubleshooting.html"

/*
 * We omit addresses and devices on purpose (SOCKET_IFNAME, IB_HCA, HOSTID, COMM_ID, TOPO_FILE
 * differ between healthy nodes). We also omit all variables that only control what NCCL prints.
 */
const struct cw_nccl_variable_rule cw_nccl_variable_rules[] = {
	/* sorted */
	{ "NCCL_ALGO", true, NCCL_SOCKET },
	{ "NCCL_BUFFSIZE", true, NULL },
	{ "NCCL_CGA_CLUSTER_SIZE", true, NULL },
	{ "NCCL_COLLNET_ENABLE", true, NULL },
	{ "NCCL_CROSS_NIC", true, NULL },
	{ "NCCL_CTA_POLICY", true, NULL },
	{ "NCCL_CUMEM_ENABLE", false, VLLM },
	{ "NCCL_GRAPH_MIXING_SUPPORT", true, NULL },
	{ "NCCL_LAUNCH_ORDER_IMPLICIT", true, NULL },
	{ "NCCL_LL128_BUFFSIZE", true, NULL },
	{ "NCCL_LL128_NTHREADS", true, NULL },
	{ "NCCL_LL_BUFFSIZE", true, NULL },
	{ "NCCL_MAX_CTAS", true, NULL },
	{ "NCCL_MAX_NCHANNELS", true, NULL },
	{ "NCCL_MAX_NRINGS", true, NULL },
	{ "NCCL_MAX_P2P_NCHANNELS", true, NULL },
	{ "NCCL_MIN_CTAS", true, NULL },
	{ "NCCL_MIN_NCHANNELS", true, NULL },
	{ "NCCL_MIN_NRINGS", true, NULL },
	{ "NCCL_MIN_P2P_NCHANNELS", true, NULL },
	{ "NCCL_MNNVL_ENABLE", true, NULL },
	{ "NCCL_NCHANNELS_PER_NET_PEER", true, NULL },
	{ "NCCL_NTHREADS", true, NULL },
	{ "NCCL_NVLS_CHUNKSIZE", true, NULL },
	{ "NCCL_NVLS_ENABLE", true, NULL },
	{ "NCCL_NVLS_NCHANNELS", true, NULL },
	{ "NCCL_P2P_LL_THRESHOLD", true, NULL },
	{ "NCCL_P2P_NET_CHUNKSIZE", true, NULL },
	{ "NCCL_P2P_NVL_CHUNKSIZE", true, NULL },
	{ "NCCL_P2P_PCI_CHUNKSIZE", true, NULL },
	{ "NCCL_PROTO", true, NCCL_SOCKET },
	{ "NCCL_PXN_C2C", true, NULL },
	{ "NCCL_PXN_DISABLE", true, NULL },
	{ "NCCL_SHRINK_SHARE", true, NULL },
	{ "NCCL_THREAD_THRESHOLDS", true, NULL },
	{ "NCCL_TREE_THRESHOLD", true, NULL },
};
const size_t cw_n_nccl_variable_rules =
	sizeof(cw_nccl_variable_rules) / sizeof(cw_nccl_variable_rules[0]);

const struct cw_nccl_variable_rule *cw_nccl_variable_rule(const char *name, size_t len)
{
	for (size_t i = 0; i < cw_n_nccl_variable_rules; i++) {
		const struct cw_nccl_variable_rule *rule = &cw_nccl_variable_rules[i];

		if (strlen(rule->name) == len && memcmp(rule->name, name, len) == 0)
			return rule;
	}
	return NULL;
}

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

/* The order of the text: variables with a rule come first, because the text may be too short. */
static bool is_before(const char *a, const char *b)
{
	bool a_has_rule = cw_nccl_variable_rule(a, name_length(a));
	bool b_has_rule = cw_nccl_variable_rule(b, name_length(b));

	return a_has_rule == b_has_rule ? strcmp(a, b) < 0 : a_has_rule;
}

/* Variables of NCCL's encryption and of plugins may hold keys. */
static bool may_be_secret(const char *name, size_t len)
{
	static const char *const parts[] = { "KEY", "PSK", "SECRET", "TOKEN", "PASSW", "CRED" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *at = strstr(name, parts[i]);

		if (at && at < name + len)
			return true;
	}
	return false;
}

/* FNV-1a: it only has to distinguish the values of one variable. */
static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

/* Copies a value. A longer value ends in "~" and a hash, so that different values stay different.
 */
static void copy_value(const char *value, char to[CW_NCCL_VARIABLE_VALUE_BYTES])
{
	size_t n = strnlen(value, CW_NCCL_VARIABLE_VALUE_BYTES);
	bool is_long = n == CW_NCCL_VARIABLE_VALUE_BYTES;

	if (is_long)
		n = CW_NCCL_VARIABLE_VALUE_BYTES - sizeof("~01234567");
	memcpy(to, value, n);
	to[n] = '\0';
	for (char *p = to; *p; p++)
		if (*p < ' ' || *p > '~' || strncmp(p, SEPARATOR, strlen(SEPARATOR)) == 0)
			*p = '?';
	if (is_long)
		(void)snprintf(to + n, CW_NCCL_VARIABLE_VALUE_BYTES - n, "~%08x", hash_of(value));
}

/* Writes "NAME=VALUE" of an entry of the environment. Returns false if the name is impossible. */
static bool make_piece(const char *entry, char *piece, size_t len)
{
	size_t n = name_length(entry);
	char value[CW_NCCL_VARIABLE_VALUE_BYTES] = HIDDEN;

	if (n >= CW_NCCL_VARIABLE_NAME_BYTES ||
	    strspn(entry, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != n)
		return false;
	if (!may_be_secret(entry, n))
		copy_value(entry + n + 1, value);
	(void)snprintf(piece, len, "%.*s=%s", (int)n, entry, value);
	return true;
}

/* Finds at most CW_NCCL_VARIABLES_MAX variables, in the order of the text. */
static unsigned find_variables(char *const *environment, const char *found[CW_NCCL_VARIABLES_MAX],
			       uint32_t *omitted)
{
	unsigned n = 0;

	for (; environment && *environment; environment++) {
		unsigned at;

		if (strncmp(*environment, PREFIX, strlen(PREFIX)) != 0 ||
		    !strchr(*environment, '='))
			continue;
		if (n == CW_NCCL_VARIABLES_MAX) {
			++*omitted;
			continue;
		}
		for (at = n++; at && is_before(*environment, found[at - 1]); at--)
			found[at] = found[at - 1];
		found[at] = *environment;
	}
	return n;
}

uint32_t cw_nccl_variables_write(char *const *environment, char *to, size_t len)
{
	const char *found[CW_NCCL_VARIABLES_MAX];
	uint32_t omitted = 0;
	unsigned n = find_variables(environment, found, &omitted);
	size_t used = 0;

	if (!len)
		return omitted + n;
	to[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		char piece[CW_NCCL_VARIABLE_NAME_BYTES + CW_NCCL_VARIABLE_VALUE_BYTES];
		size_t bytes;

		if (!make_piece(found[i], piece, sizeof(piece))) {
			omitted++;
			continue;
		}
		bytes = strlen(piece) + (used > 0);
		if (bytes >= len - used) {
			omitted++;
			continue;
		}
		(void)snprintf(to + used, len - used, "%s%s", used ? " " : "", piece);
		used += bytes;
	}
	if (!used && !omitted)
		(void)snprintf(to, len, "%s", CW_NCCL_VARIABLES_NONE);
	return omitted;
}

const char *cw_nccl_variables_check(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	if (n == size)
		return "";
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return "";
	return strcmp(text, CW_NCCL_VARIABLES_NONE) == 0 ||
			       strncmp(text, PREFIX, strlen(PREFIX)) == 0
		       ? text
		       : "";
}

bool cw_nccl_variables_next(const char **at, struct cw_nccl_variable *ret)
{
	const char *name = *at, *end, *equals;

	while (strncmp(name, PREFIX, strlen(PREFIX)) == 0) {
		end = strstr(name, SEPARATOR);
		end = end ? end : name + strlen(name);
		equals = memchr(name, '=', (size_t)(end - name));
		*at = *end ? end + 1 : end;
		if (equals) {
			*ret = (struct cw_nccl_variable){
				.name = name,
				.value = equals + 1,
				.name_len = (size_t)(equals - name),
				.value_len = (size_t)(end - equals - 1),
			};
			return true;
		}
		name = *at;
	}
	return false;
}
