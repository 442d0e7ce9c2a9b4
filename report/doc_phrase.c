/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc_phrase.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/json_util.h"

__attribute__((format(printf, 3, 4))) static void add(char *buf, size_t len, const char *fmt, ...)
{
	size_t used = strlen(buf);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(buf + used, len - used, fmt, args);
	va_end(args);
}

char *phrase_doc_op(const json_t *op, char *buf, size_t len)
{
	const char *dtype = cw_json_str(op, "dtype", "none");
	const char *redop = cw_json_str(op, "redop", "none");
	uint64_t count = 0;

	(void)snprintf(buf, len, "%s", cw_json_str(op, "kind", "?"));
	if (strcmp(dtype, "none") != 0) {
		(void)cw_json_read_u64(json_object_get(op, "count"), &count); /* stays 0 */
		add(buf, len, " %s x %llu", dtype, (unsigned long long)count);
	}
	if (strcmp(redop, "none") != 0)
		add(buf, len, " %s", redop);
	if (json_is_integer(json_object_get(op, "root")))
		add(buf, len, " root %" JSON_INTEGER_FORMAT, cw_json_int(op, "root", 0));
	if (json_is_integer(json_object_get(op, "peer")))
		add(buf, len, " peer %" JSON_INTEGER_FORMAT, cw_json_int(op, "peer", 0));
	return buf;
}

char *phrase_doc_comm(const json_t *at, char *buf, size_t len)
{
	const char *name = cw_json_str(at, "comm_name", "");

	if (*name)
		(void)snprintf(buf, len, "%s", name);
	else
		(void)snprintf(buf, len, "communicator %s", cw_json_str(at, "comm", "?"));
	return buf;
}

char *phrase_doc_rank(const json_t *who, char *buf, size_t len)
{
	json_int_t rank = cw_json_int(who, "rank", -1);

	if (rank >= 0)
		(void)snprintf(buf, len, "rank %" JSON_INTEGER_FORMAT, rank);
	else
		(void)snprintf(buf, len, "a process without rank number");
	return buf;
}

bool phrase_is_many(const char *rank_set)
{
	return strpbrk(rank_set, ",-");
}

const char *phrase_doc_absence(const json_t *incident)
{
	return strcmp(cw_json_str(incident, "class", ""), "process_dead") == 0
		       ? "ended before it was done"
		       : "did not enter";
}

bool doc_is_culprit(const json_t *incident, const json_t *evidence)
{
	const json_t *culprits = json_object_get(incident, "culprits"), *culprit;
	size_t i;

	json_array_foreach (culprits, i, culprit)
		if (cw_json_int(culprit, "pid", -1) == cw_json_int(evidence, "pid", -2) &&
		    strcmp(cw_json_str(culprit, "host", ""), cw_json_str(evidence, "host", "")) ==
			    0)
			return true;
	return false;
}
