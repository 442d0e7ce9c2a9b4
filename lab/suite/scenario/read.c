/* SPDX-License-Identifier: Apache-2.0 */
/* Reads scenario files, line by line (docs/lab/suite.md). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "lab/suite/scenario/reader.h"

#define MAX_FILE_BYTES (4u << 20)
#define MAX_RUN_NS (INT64_C(14) * 86400 * 1000000000)

static const char *const layout_names[SUITE_LAYOUT__MAX] = {
	[SUITE_OTHER] = "other", [SUITE_DP] = "dp", [SUITE_TP_DP] = "tp_dp",
	[SUITE_3D] = "3d",       [SUITE_EP] = "ep", [SUITE_ZERO] = "zero",
};

const char *suite_layout_name(unsigned layout)
{
	return layout < SUITE_LAYOUT__MAX ? layout_names[layout] : "?";
}

bool cw_suite_set_has(const struct suite_set *set, uint32_t rank)
{
	bool in = set->n == 0;

	for (uint32_t i = 0; i < set->n && !in; i++)
		in = rank >= set->ranges[i].first && rank <= set->ranges[i].last;
	if (set->step)
		in = in && rank % set->step == set->phase;
	return in != set->is_negated;
}

static bool has_program(const struct suite_scenario *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->n_programs; i++)
		if (cw_suite_set_has(&s->programs[i].set, rank))
			return true;
	return false;
}

bool cw_suite_scenario_scale(struct suite_scenario *s, uint32_t k)
{
	if (k == 1)
		return true;
	if (k == 0 || s->n_ranks > SUITE_MAX_RANKS / k)
		return false;
	for (uint32_t i = s->n_ranks; i < s->n_ranks * k; i++)
		if (!has_program(s, i))
			return false;
	s->n_ranks *= k;
	return true;
}

/* ---- the head of a scenario ---- */

static void free_scenario(struct reader *r)
{
	if (!r->s)
		return;
	for (uint32_t i = 0; i < SUITE_MAX_PROGRAMS; i++)
		read_free_program(&r->s->programs[i]);
	free(r->s);
	r->s = NULL;
	r->program = NULL;
}

static int begin_scenario(struct reader *r)
{
	const char *w;
	size_t n = 0;

	r->s = cw_or_exit(calloc(1, sizeof(*r->s)));
	r->s->line = r->words->line;
	r->s->run_ns = INT64_C(60) * 1000000000;
	(void)snprintf(r->s->file, sizeof(r->s->file), "%s", r->file);
	while (n < SUITE_TITLE && (w = read_word(r)))
		n += (size_t)snprintf(&r->s->name[n], SUITE_TITLE - n, "%s%s", n ? " " : "", w);
	if (n == 0 || n >= SUITE_TITLE)
		return read_fail(r, "a scenario needs a name, and a short one", NULL);
	r->has_layout = r->has_ranks = r->has_expect = false;
	r->n_open = 0;
	return 0;
}

static int finish_scenario(struct reader *r)
{
	struct suite_scenario *s = r->s;
	int res;

	if (!r->has_ranks || !s->n_families || !s->n_programs)
		return read_fail(r, "a scenario needs ranks, a comm and a program", NULL);
	if (!r->has_expect)
		return read_fail(r, "what is expected?", NULL);
	res = read_end(r);
	if (res == 0)
		res = r->fn(r->user, s);
	free_scenario(r);
	return res;
}

static int read_ranks(struct reader *r)
{
	uint64_t n, per, together = 1;

	if (read_u64(r, SUITE_MAX_RANKS, &n) < 0)
		return -EINVAL;
	per = n;
	if (read_is(r, "per-node") && read_u64(r, SUITE_MAX_RANKS, &per) < 0)
		return -EINVAL;
	if (read_is(r, "per-process") && read_u64(r, SUITE_MAX_RANKS, &together) < 0)
		return -EINVAL;
	if (n < 2 || per == 0)
		return read_fail(r, "too few ranks", NULL);
	if (together == 0 || per % together || n % together)
		return read_fail(r, "processes that cannot have as many ranks each", NULL);
	r->s->n_ranks = (uint32_t)n;
	r->s->per_node = (uint32_t)per;
	r->s->per_process = (uint32_t)together;
	r->has_ranks = true;
	return read_end(r);
}

/* Reads: comm NAME RANKS [by init|split], or: comms NAME size N|rest [stride S] [by …] */
static int read_comm(struct reader *r, bool is_partition)
{
	struct suite_family *f = &r->s->families[r->s->n_families];
	const char *name = read_word(r);
	uint64_t size = 0, stride = 1;

	if (r->s->n_families == SUITE_MAX_FAMILIES)
		return read_fail(r, "too many comms", NULL);
	if (!name || strlen(name) >= sizeof(f->name))
		return read_fail(r, "a comm needs a name, and a short one", NULL);
	*f = (struct suite_family){ .is_partition = is_partition };
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	if (!is_partition && read_set(r, &f->set) < 0)
		return -EINVAL;
	if (is_partition) {
		if (!read_is(r, "size"))
			return read_fail(r, "of what size?", NULL);
		if (!read_is(r, "rest") && (read_u64(r, SUITE_MAX_RANKS, &size) < 0 || size == 0))
			return read_fail(r, "not a size", NULL);
		if (read_is(r, "stride") &&
		    (read_u64(r, SUITE_MAX_RANKS, &stride) < 0 || stride == 0))
			return read_fail(r, "not a stride", NULL);
	}
	f->size = (uint32_t)size;
	f->stride = (uint32_t)stride;
	if (read_is(r, "by")) {
		if (read_is(r, "init"))
			f->made = SUITE_BY_INIT;
		else if (read_is(r, "split"))
			f->made = SUITE_BY_SPLIT;
		else
			return read_fail(r, "made by init or by split", NULL);
	}
	r->s->n_families++;
	return read_end(r);
}

/* Reads: lazy COMM */
static int read_lazy(struct reader *r)
{
	uint32_t family;

	if (read_family(r, &family) < 0)
		return -EINVAL;
	r->s->families[family].is_lazy = true;
	return read_end(r);
}

static int read_layout(struct reader *r)
{
	const char *w = read_word(r);

	for (unsigned i = 0; w && i < SUITE_LAYOUT__MAX; i++)
		if (strcmp(w, layout_names[i]) == 0) {
			r->s->layout = i;
			return read_end(r);
		}
	return read_fail(r, "no such layout:", w);
}

static int read_policy(struct reader *r)
{
	if (read_is(r, "training"))
		r->s->policy = CW_POLICY_TRAINING;
	else if (read_is(r, "serving"))
		r->s->policy = CW_POLICY_SERVING;
	else if (read_is(r, "off"))
		r->s->policy = CW_POLICY_OFF;
	else
		return read_fail(r, "training, serving or off?", NULL);
	return read_end(r);
}

static int read_completion(struct reader *r)
{
	if (read_is(r, "barrier"))
		r->s->completion = SUITE_BARRIER;
	else if (read_is(r, "nccl"))
		r->s->completion = SUITE_NCCL;
	else
		return read_fail(r, "as a barrier does, or as nccl?", NULL);
	return read_end(r);
}

static int begin_program(struct reader *r)
{
	struct suite_program *p = &r->s->programs[r->s->n_programs];

	if (r->s->n_programs == SUITE_MAX_PROGRAMS)
		return read_fail(r, "too many programs", NULL);
	if (r->at < r->words->n && read_set(r, &p->set) < 0)
		return -EINVAL;
	r->s->n_programs++;
	r->program = p;
	return read_end(r);
}

static int read_seed(struct reader *r)
{
	uint64_t n;

	if (read_u64(r, UINT32_MAX, &n) < 0)
		return -EINVAL;
	r->s->seed = (uint32_t)n;
	return read_end(r);
}

static int read_run(struct reader *r)
{
	if (read_time(r, &r->s->run_ns) < 0)
		return -EINVAL;
	if (r->s->run_ns <= 0 || r->s->run_ns > MAX_RUN_NS)
		return read_fail(r, "not between 1 s and 14 days", NULL);
	return read_end(r);
}

static int read_job_timeout(struct reader *r)
{
	if (read_time(r, &r->s->job_timeout_ns) < 0)
		return -EINVAL;
	if (r->s->job_timeout_ns <= 0 || r->s->job_timeout_ns > MAX_RUN_NS)
		return read_fail(r, "not between 1 s and 14 days", NULL);
	return read_end(r);
}

/* Reads: watchdog TIME [of RANKS] [on COMM] */
static int read_watchdog(struct reader *r)
{
	struct suite_watchdog *w = &r->s->watchdogs[r->s->n_watchdogs];

	if (r->s->n_watchdogs == SUITE_MAX_WATCHDOGS)
		return read_fail(r, "too many watchdogs", NULL);
	*w = (struct suite_watchdog){ .family = SUITE_NONE };
	if (read_time(r, &w->after_ns) < 0)
		return -EINVAL;
	if (w->after_ns <= 0 || w->after_ns > MAX_RUN_NS)
		return read_fail(r, "not between 1 s and 14 days", NULL);
	if (read_is(r, "of") && read_set(r, &w->set) < 0)
		return -EINVAL;
	if (read_is(r, "on") && read_family(r, &w->family) < 0)
		return -EINVAL;
	r->s->n_watchdogs++;
	return read_end(r);
}

/* Reads: launcher [grace TIME] [apart TIME] [saves TIME] */
static int read_launcher(struct reader *r)
{
	struct suite_launcher l = { .is_there = true, .grace_ns = INT64_C(30) * 1000000000 };

	while (r->at < r->words->n) {
		int64_t *ns = read_is(r, "grace")   ? &l.grace_ns
			      : read_is(r, "apart") ? &l.apart_ns
			      : read_is(r, "saves") ? &l.saves_ns
						    : NULL;

		if (!ns)
			return read_fail(r, "grace, apart or saves, not", read_word(r));
		if (read_time(r, ns) < 0)
			return -EINVAL;
		if (*ns < 0 || *ns > MAX_RUN_NS)
			return read_fail(r, "not between 0 and 14 days", NULL);
	}
	r->s->launcher = l;
	return 0;
}

/* Reads: leader-iteration N */
static int read_leader_iteration(struct reader *r)
{
	uint64_t n;

	if (read_u64(r, UINT32_MAX, &n) < 0 || n == 0)
		return read_fail(r, "how many memberships?", NULL);
	r->s->iteration_members = (uint32_t)n;
	return read_end(r);
}

/* Reads: fast-forward, or: fast-forward waits */
static int read_fast_forward(struct reader *r)
{
	const char *w;

	if (r->at == r->words->n) {
		r->s->is_fast_forwarding = true;
		return 0;
	}
	w = read_word(r);
	if (strcmp(w, "waits"))
		return read_fail(r, "fast-forward, or fast-forward waits, not fast-forward", w);
	r->s->is_fast_forwarding_waits = true;
	return read_end(r);
}

static int read_head(struct reader *r, const char *w)
{
	if (strcmp(w, "end") == 0)
		return finish_scenario(r);
	if (strcmp(w, "layout") == 0)
		return read_layout(r);
	if (strcmp(w, "ranks") == 0)
		return read_ranks(r);
	if (strcmp(w, "comm") == 0 || strcmp(w, "comms") == 0)
		return read_comm(r, w[4] == 's');
	if (strcmp(w, "lazy") == 0)
		return read_lazy(r);
	if (strcmp(w, "policy") == 0)
		return read_policy(r);
	if (strcmp(w, "completion") == 0)
		return read_completion(r);
	if (strcmp(w, "run") == 0)
		return read_run(r);
	if (strcmp(w, "seed") == 0)
		return read_seed(r);
	if (strcmp(w, "program") == 0)
		return begin_program(r);
	if (strcmp(w, "fault") == 0)
		return read_fault(r);
	if (strcmp(w, "node") == 0)
		return read_node_fault(r);
	if (strcmp(w, "leader") == 0)
		return read_leader_fault(r);
	if (strcmp(w, "alerts") == 0)
		return read_alerts_fault(r);
	if (strcmp(w, "crowd") == 0)
		return read_crowd(r);
	if (strcmp(w, "digests") == 0)
		return read_digests_fault(r);
	if (strcmp(w, "machine") == 0)
		return read_machine(r);
	if (strcmp(w, "job") == 0)
		return read_job_fault(r);
	if (strcmp(w, "daemons") == 0)
		return read_daemons_fault(r);
	if (strcmp(w, "clock") == 0)
		return read_clock_fault(r);
	if (strcmp(w, "expect") == 0)
		return read_expect(r);
	if (strcmp(w, "also") == 0)
		return read_also(r);
	if (strcmp(w, "nccl") == 0)
		return read_version(r);
	if (strcmp(w, "environment") == 0)
		return read_environment(r);
	if (strcmp(w, "told") == 0)
		return read_told(r);
	if (strcmp(w, "starts") == 0)
		return read_starts(r);
	if (strcmp(w, "no-progress") == 0) {
		r->s->has_no_progress = true;
		return read_end(r);
	}
	if (strcmp(w, "leader-iteration") == 0)
		return read_leader_iteration(r);
	if (strcmp(w, "job-timeout") == 0)
		return read_job_timeout(r);
	if (strcmp(w, "watchdog") == 0)
		return read_watchdog(r);
	if (strcmp(w, "launcher") == 0)
		return read_launcher(r);
	if (strcmp(w, "no-notices") == 0) {
		r->s->has_no_notices = true;
		return read_end(r);
	}
	if (strcmp(w, "whole") == 0) {
		r->s->is_whole = true;
		return read_end(r);
	}
	if (strcmp(w, "usual-wait") == 0) {
		r->s->is_usual_wait = true;
		return read_end(r);
	}
	if (strcmp(w, "recorded") == 0) {
		r->s->is_recorded = true;
		return read_end(r);
	}
	if (strcmp(w, "fast-forward") == 0)
		return read_fast_forward(r);
	return read_fail(r, "no such line in a scenario:", w);
}

static int on_line(void *user, const struct lexer_line *words)
{
	struct reader *r = user;
	const char *w;
	int res;

	r->words = words;
	r->at = 0;
	if (r->program) {
		res = read_insn(r);
		return res < 0 ? res : 0;
	}
	w = read_word(r);
	if (r->s)
		return read_head(r, w);
	if (strcmp(w, "scenario") == 0)
		return begin_scenario(r);
	return read_fail(r, "only scenarios can stand here, not", w);
}

int cw_suite_read_text(const char *text, size_t len, const char *file, uint64_t max_lines,
		       suite_scenario_fn fn, void *user, struct cw_err *err)
{
	struct reader r = { .file = file, .fn = fn, .user = user, .err = err };
	int res = lexer_read(text, len, file, max_lines, on_line, &r, err);

	if (res == 0 && r.s)
		res = cw_err_set(err, EINVAL, "%s:%u: this scenario does not end", file, r.s->line);
	free_scenario(&r);
	return res;
}

/* ---- files ---- */

static int read_file(const char *path, suite_scenario_fn fn, void *user, struct cw_err *err)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (st.st_size > MAX_FILE_BYTES)
		return cw_err_set(err, E2BIG, "%s: too large", path);
	text = cw_or_exit(malloc((size_t)st.st_size + 1));
	while (len < (size_t)st.st_size) {
		n = read(fd, text + len, (size_t)st.st_size - len);
		if (n < 0)
			return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return cw_suite_read_text(text, len, path, SUITE_MAX_LINES, fn, user, err);
}

static int is_scenario_file(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return n > 4 && strcmp(d->d_name + n - 4, ".scn") == 0;
}

int cw_suite_read_path(const char *path, suite_scenario_fn fn, void *user, struct cw_err *err)
{
	struct dirent **entries;
	struct stat st;
	int n, r = 0;

	if (stat(path, &st) < 0)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return read_file(path, fn, user, err);
	n = scandir(path, &entries, is_scenario_file, alphasort);
	if (n < 0)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		_cleanup_(freep) char *file = cw_or_exit_printf("%s/%s", path, entries[i]->d_name);

		if (r == 0)
			r = read_file(file, fn, user, err);
		free(entries[i]);
	}
	free(entries);
	return r < 0 || n ? r : cw_err_set(err, ENOENT, "%s: no *.scn in it", path);
}
