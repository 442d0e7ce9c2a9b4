/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/control_mute.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Ten years. A longer mute has no end. */
#define MAX_FOR_S (10.0 * 366 * 86400)
#define MAX_LABEL 1024

enum { CODE_OK = 0, CODE_ERROR = 1, CODE_NO_DATA = 3 };

/* The search for a job by name. The name is the job's label, or the part of it after the colon. */
struct search {
	const struct cw_caller *caller;
	const char *name;
	json_int_t uid; /* -1 = a job of any user */
	uint32_t found_uid;
	char found[MAX_LABEL + 1];
	bool is_exact, is_ambiguous;
};

static void consider(struct search *s, uint32_t uid, const char *label)
{
	const char *colon = strchr(label, ':');
	bool is_exact = !strcmp(label, s->name);

	if (!cw_caller_may_see(s->caller, uid) || (s->uid >= 0 && (json_int_t)uid != s->uid) ||
	    (!is_exact && (!colon || strcmp(colon + 1, s->name) != 0)) ||
	    (s->is_exact && !is_exact) || strlen(label) > MAX_LABEL)
		return;
	if (*s->found && is_exact == s->is_exact &&
	    (uid != s->found_uid || strcmp(label, s->found) != 0))
		s->is_ambiguous = true;
	if (is_exact && !s->is_exact)
		s->is_ambiguous = false;
	s->is_exact = is_exact;
	s->found_uid = uid;
	(void)snprintf(s->found, sizeof(s->found), "%s", label);
}

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	consider(user, digests->uid, digests->label);
}

static void on_local_job(const struct cw_election_job *job, void *user)
{
	consider(user, job->uid, job->label);
}

static void on_mute(uint32_t uid, const char *label, int64_t until_wall_ns, void *user)
{
	consider(user, uid, label);
}

static void refuse(struct cw_mute_answer *a, uint32_t code, const char *text)
{
	a->code = code;
	(void)snprintf(a->error, sizeof(a->error), "%s", text);
}

json_t *cw_control_mute_doc(struct cw_mutes *mutes, uint32_t uid, const char *label,
			    const char *self)
{
	const char *where = mutes ? cw_mutes_where(mutes, uid, label) : NULL;
	int64_t until = where ? cw_mutes_until(mutes, uid, label) : 0;
	char wall[32];

	if (!where)
		return json_null();
	return json_pack("{s:o, s:s}", "until",
			 until == CW_MUTE_FOR_EVER ? json_null()
						   : json_string(cw_wall_format(until, wall)),
			 "node", *where ? where : self);
}

/*
 * True if the caller may mute the job. A caller on this node always may. Another node may mute only
 * jobs whose ranks it runs or that it leads. It may always unmute: this suppresses no alert, and
 * its ranks of the job may have ended.
 */
static bool is_believed(const struct cw_status_source *status, const struct search *s,
			const json_t *arguments)
{
	struct cw_job_id job;

	if (!s->caller->node || json_is_true(json_object_get(arguments, "unmute")))
		return true;
	return cw_job_id_make(s->found_uid, s->found, &job) == 0 &&
	       cw_leader_has_part(status->leader, &job, s->caller->node);
}

static int apply(struct cw_mutes *m, const struct search *s, const json_t *arguments,
		 const struct cw_clock *clock)
{
	const json_t *for_s = json_object_get(arguments, "for_s");
	double seconds = json_number_value(for_s);
	int64_t until = CW_MUTE_FOR_EVER;

	if (json_is_true(json_object_get(arguments, "unmute")))
		return cw_mutes_unset(m, s->found_uid, s->found);
	if (json_is_number(for_s) && !(seconds > 0))
		return -EINVAL;
	if (json_is_number(for_s) && seconds < MAX_FOR_S)
		until = cw_clock_wall_ns(clock) + (int64_t)(seconds * CW_NS_PER_S);
	return cw_mutes_set(m, s->found_uid, s->found, until);
}

static void explain(struct cw_mute_answer *a, struct cw_mutes *m, const struct search *s, int error)
{
	const char *where = cw_mutes_where(m, s->found_uid, s->found);

	/*
	 * Use CODE_NO_DATA for a job that is not muted here. It is not an error, because another
	 * node may have the mute.
	 */
	a->code = error == ENOENT ? CODE_NO_DATA : CODE_ERROR;
	if (error == ENOENT && where && *where)
		(void)snprintf(a->error, sizeof(a->error),
			       "the job was muted on %.64s: unmute it there", where);
	else if (error == ENOENT)
		refuse(a, CODE_NO_DATA, "the job is not muted");
	else if (error == EDQUOT)
		refuse(a, CODE_ERROR, "this user has muted too many jobs: unmute some of them");
	else if (error == ENOSPC)
		refuse(a, CODE_ERROR, "too many jobs are muted, or the state directory is full");
	else
		(void)snprintf(a->error, sizeof(a->error),
			       "done, but the mute cannot be written to disk (%s), so it is lost "
			       "when the daemon restarts",
			       strerror(error));
}

void cw_control_mute(struct cw_mutes *mutes, const struct cw_status_source *status,
		     const struct cw_caller *caller, const json_t *arguments,
		     struct cw_mute_answer *ret)
{
	const json_t *uid = json_object_get(arguments, "uid");
	struct search s = {
		.caller = caller,
		.name = json_string_value(json_object_get(arguments, "job")),
		.uid = json_is_integer(uid) ? json_integer_value(uid) : -1,
	};
	json_t *mute;
	int r;

	*ret = (struct cw_mute_answer){ 0 };
	if (!s.name || !*s.name) {
		refuse(ret, CODE_ERROR, "mute: the request names no job");
		return;
	}
	cw_leader_jobs(status->leader, on_job, &s);
	cw_election_each(status->members, on_local_job, &s);
	cw_mutes_each(mutes, on_mute, &s);
	if (s.is_ambiguous) {
		refuse(ret, CODE_ERROR,
		       "several jobs have this name: give the complete name, or --uid");
		return;
	}
	if (!*s.found) {
		refuse(ret, CODE_NO_DATA,
		       "no such job here: `collwatch status` lists the jobs of this node");
		return;
	}
	if (!is_believed(status, &s, arguments)) {
		cw_mutes_note_unconfirmed(mutes, s.caller->node, s.found_uid, s.found);
		refuse(ret, CODE_NO_DATA, "no rank of this job is known on your node");
		return;
	}
	r = apply(mutes, &s, arguments, status->clock);
	if (r < 0) {
		explain(ret, mutes, &s, -r);
		return;
	}
	mute = cw_control_mute_doc(mutes, s.found_uid, s.found,
				   cw_transport_self(status->transport));
	ret->doc = json_pack("{s:s, s:s, s:I, s:o}", "schema", "collwatch.mute/1", "job", s.found,
			     "uid", (json_int_t)s.found_uid, "muted", mute);
	if (!ret->doc)
		refuse(ret, CODE_ERROR, "the daemon is out of memory");
}
