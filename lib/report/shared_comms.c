/* SPDX-License-Identifier: Apache-2.0 */
#include "report/shared_comms.h"

#include <stdio.h>
#include <string.h>

#include "common/job_env.h"
#include "common/text.h"
#include "report/json_util.h"

/* Limits on the jobs that we list per communicator, and on the communicators in all. */
#define MAX_JOBS 8u
#define MAX_SHARED 16u

static const char *const causes[CW_SPLIT__MAX] = {
	[CW_SPLIT_USERS] = "users",
	[CW_SPLIT_NAMESPACES] = "namespaces",
	[CW_SPLIT_NAMESPACE_MISSING] = "namespace_missing",
	[CW_SPLIT_JOB_MISSING] = "job_missing",
	[CW_SPLIT_JOB_DIFFERS] = "job_differs",
};

static const char *const missing_variables[CW_SPLIT__MAX] = {
	[CW_SPLIT_NAMESPACE_MISSING] = "COLLWATCH_POD_NAMESPACE",
	[CW_SPLIT_JOB_MISSING] = "COLLWATCH_JOB",
};

bool cw_shared_comms_may_be(const json_t *status)
{
	const json_t *job;
	size_t i;

	json_array_foreach (json_object_get(status, "jobs"), i, job) {
		if (!json_is_true(json_object_get(job, "led_here")) ||
		    cw_json_int(job, "ranks", 0) < cw_json_int(job, "ranks_expected", 0))
			return true;
	}
	return false;
}

/* ---- which jobs share a communicator ---- */

static bool has_job(const json_t *jobs, const json_t *job)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (jobs, i, entry)
		if (cw_json_int(entry, "uid", -1) == cw_json_int(job, "uid", -1) &&
		    strcmp(cw_json_str(entry, "job", ""), cw_json_str(job, "job", "")) == 0)
			return true;
	return false;
}

static bool lacks(const json_t *entry, enum cw_split_cause cause)
{
	if (cause == CW_SPLIT_NAMESPACE_MISSING)
		return !*cw_json_str(entry, "namespace", "");
	return cause == CW_SPLIT_JOB_MISSING && !cw_job_env_is_given(cw_json_str(entry, "job", ""));
}

static bool are_alike(const json_t *entries, const char *key)
{
	const json_t *first = json_object_get(json_array_get(entries, 0), key), *entry;
	size_t i;

	json_array_foreach (entries, i, entry)
		if (!json_equal(json_object_get(entry, key), first))
			return false;
	return true;
}

static bool some_lack(const json_t *entries, enum cw_split_cause cause)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (entries, i, entry)
		if (lacks(entry, cause))
			return true;
	return false;
}

static enum cw_split_cause cause_of(const json_t *entries)
{
	if (!are_alike(entries, "uid"))
		return CW_SPLIT_USERS;
	if (!are_alike(entries, "namespace"))
		return some_lack(entries, CW_SPLIT_NAMESPACE_MISSING) ? CW_SPLIT_NAMESPACE_MISSING
								      : CW_SPLIT_NAMESPACES;
	return some_lack(entries, CW_SPLIT_JOB_MISSING) ? CW_SPLIT_JOB_MISSING
							: CW_SPLIT_JOB_DIFFERS;
}

/*
 * Describes a shared communicator. entries: the list entries of this communicator, one per job or
 * more.
 */
static json_t *describe(const char *comm, const json_t *entries)
{
	enum cw_split_cause cause = cause_of(entries);
	json_t *jobs = json_array(), *missing_in = json_array();
	const json_t *entry;
	size_t i;

	json_array_foreach (entries, i, entry) {
		(void)json_array_append_new(jobs, json_pack("{s:O, s:O}", "job",
							    json_object_get(entry, "job"), "uid",
							    json_object_get(entry, "uid")));
		if (lacks(entry, cause))
			(void)json_array_append(missing_in, json_object_get(entry, "job"));
	}
	return json_pack("{s:s, s:O, s:o, s:s, s:o, s:o}", "comm", comm, "nranks",
			 json_object_get(json_array_get(entries, 0), "nranks"), "jobs", jobs,
			 "cause", causes[cause], "missing", cw_json_text(missing_variables[cause]),
			 "missing_in", missing_in);
}

/*
 * True if the list has a communicator with the same jobs. Two jobs that share one usually share
 * several, and one is enough for the report.
 */
static bool is_listed(const json_t *list, const json_t *entries)
{
	const json_t *shared, *entry;
	size_t i, k;

	json_array_foreach (list, i, shared) {
		bool has_all = true;

		json_array_foreach (entries, k, entry)
			has_all = has_all && has_job(json_object_get(shared, "jobs"), entry);
		if (has_all)
			return true;
	}
	return false;
}

json_t *cw_shared_comms_find(const json_t *doc)
{
	json_t *by_comm = json_object(), *list = json_array(), *entries;
	const json_t *entry;
	const char *comm;
	size_t i;

	json_array_foreach (json_object_get(doc, "communicators"), i, entry) {
		comm = cw_json_str(entry, "comm", "");
		entries = json_object_get(by_comm, comm);
		if (!entries) {
			entries = json_array();
			(void)json_object_set_new(by_comm, comm, entries);
		}
		if (json_array_size(entries) < MAX_JOBS && !has_job(entries, entry))
			(void)json_array_append(entries, (json_t *)entry);
	}
	json_object_foreach (by_comm, comm, entries) {
		if (json_array_size(entries) > 1 && json_array_size(list) < MAX_SHARED &&
		    !is_listed(list, entries))
			(void)json_array_append_new(list, describe(comm, entries));
	}
	json_decref(by_comm);
	return list;
}

/* ---- as a sentence ---- */

static void name_jobs(char *buf, size_t len, const json_t *jobs, bool with_uid)
{
	const json_t *entry;
	size_t i, n = json_array_size(jobs);

	json_array_foreach (jobs, i, entry) {
		const char *label = json_is_string(entry) ? json_string_value(entry)
							  : cw_json_str(entry, "job", "?");

		cw_text_append(buf, len, "%s%s",
			       !i           ? ""
			       : i + 1 == n ? " and "
					    : ", ",
			       cw_job_env_shown(label));
		if (with_uid)
			cw_text_append(buf, len, " (uid %" JSON_INTEGER_FORMAT ")",
				       cw_json_int(entry, "uid", -1));
	}
}

void cw_shared_comms_format(const json_t *shared, char *buf, size_t len)
{
	static const char *const advice[CW_SPLIT__MAX + 1] = {
		[CW_SPLIT_USERS] = "Ranks of different users are never one job: run all ranks as "
				   "one user",
		[CW_SPLIT_NAMESPACES] = "Pods of different namespaces are never one job: run all "
					"pods in one namespace",
		[CW_SPLIT_NAMESPACE_MISSING] =
			": set it from metadata.namespace in the template of these pods",
		[CW_SPLIT_JOB_MISSING] = ": set it to one value for all ranks",
		[CW_SPLIT_JOB_DIFFERS] = "COLLWATCH_JOB differs between them: set it to one value "
					 "for all ranks",
		[CW_SPLIT__MAX] = "",
	};
	const json_t *jobs = json_object_get(shared, "jobs");
	const char *missing = cw_json_str(shared, "missing", NULL);
	unsigned cause = 0;

	if (!len)
		return;
	while (cause < CW_SPLIT__MAX &&
	       strcmp(causes[cause], cw_json_str(shared, "cause", "")) != 0)
		cause++;
	buf[0] = '\0';
	cw_text_append(buf, len, "jobs ");
	name_jobs(buf, len, jobs, cause == CW_SPLIT_USERS);
	cw_text_append(buf, len,
		       " share communicator %.20s of %" JSON_INTEGER_FORMAT
		       " ranks, so they are one job that is watched as %zu jobs, and its hangs may "
		       "not be found. ",
		       cw_json_str(shared, "comm", "?"), cw_json_int(shared, "nranks", 0),
		       json_array_size(jobs));
	if (missing) {
		cw_text_append(buf, len, "%.40s is missing in ", missing);
		name_jobs(buf, len, json_object_get(shared, "missing_in"), false);
	}
	cw_text_append(buf, len, "%s", advice[cause]);
}
