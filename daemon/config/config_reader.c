/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child returns the values in a memfd that only this child and the daemon have. The values
 * contain webhook_url. MADV_DONTFORK therefore hides these pages from other children, and
 * MADV_DONTDUMP from core dumps.
 */
#include "daemon/config/config_reader.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "daemon/config/config_values.h"
#include "loop/children.h"

/* The argument of the child. The values are at CW_CHILD_FD. */
struct order {
	bool may_be_missing;
	char path[PATH_MAX];
};

struct cw_config_reader {
	struct cw_children *children;
	struct cw_fork_server *forks;
	struct cw_child *child; /* NULL = no read in progress */
	struct cw_config_values *values;
	struct cw_config_source source;
	cw_config_read_fn fn;
	void *user;
};

static struct cw_config_values *map_values(int fd)
{
	struct cw_config_values *v =
		mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return v == MAP_FAILED ? NULL : v;
}

/* Makes the memfd and maps it here. Returns the descriptor or -errno. */
static int make_values(struct cw_config_values **ret)
{
	_cleanup_(closep) int fd = memfd_create("collwatch-config", MFD_CLOEXEC);
	struct cw_config_values *v;

	if (fd < 0 || ftruncate(fd, sizeof(*v)) < 0)
		return -errno;
	v = map_values(fd);
	if (!v)
		return -ENOMEM;
	/* Both may fail on an old kernel, which then dumps or copies the pages. */
	(void)madvise(v, sizeof(*v), MADV_DONTDUMP);
	(void)madvise(v, sizeof(*v), MADV_DONTFORK);
	*ret = v;
	return steal_fd(&fd);
}

static void unmap_values(struct cw_config_reader *r)
{
	if (r->values)
		/* Cannot fail: this is a valid mapping. */
		(void)munmap(r->values, sizeof(*r->values));
	r->values = NULL;
}

/*
 * Reads the file with the webhook's headers, unless the configuration is invalid. The daemon will
 * find and report the same error.
 */
static void read_headers(const char *path, struct cw_config_values *v)
{
	struct cw_config_value_file *to = &v->headers;
	struct cw_config *c = NULL;

	if (cw_config_make(path, v, &c, NULL) < 0)
		return;
	if (*c->webhook_url && *c->webhook_header_file) {
		to->is_begun = true;
		to->r = cw_header_file_read(c->webhook_header_file, to->text, sizeof(to->text),
					    &to->err);
		to->is_done = true;
	}
	(void)cw_config_free(c); /* always NULL */
}

static int child_main(int out_fd, const void *arg)
{
	struct cw_config_values *values = map_values(CW_CHILD_FD);
	const struct order *order = arg;
	const char *path = order->path;

	(void)out_fd;
	if (!values)
		return 1;
	if (order->may_be_missing && access(path, F_OK) < 0)
		path = NULL;
	cw_config_parse(path, values);
	read_headers(path, values);
	return 0;
}

int cw_config_reader_child(int fd)
{
	return cw_child_run(fd, child_main);
}

static int explain(const struct cw_config_reader *r, enum cw_child_end end, struct cw_err *err)
{
	if (end == CW_CHILD_TIMED_OUT || end == CW_CHILD_ABANDONED)
		return cw_err_set(err, ETIMEDOUT, "%s: reading %s takes longer than %u s",
				  r->source.path,
				  r->values->headers.is_begun ? "the webhook_header_file" : "it",
				  r->source.within_ms / 1000);
	return cw_err_set(err, EINVAL, "%s: the process that read it crashed", r->source.path);
}

static void on_read(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_config_reader *r = user;
	struct cw_config *config = NULL;
	struct cw_err err = { "" };
	int result;

	r->child = NULL;
	if (end == CW_CHILD_EXITED && r->values->is_done)
		result = cw_config_make(r->source.path, r->values, &config, &err);
	else
		result = explain(r, end, &err);
	unmap_values(r);
	r->fn(config, result, &err, r->user);
}

int cw_config_reader_start(struct cw_config_reader *r, const struct cw_config_source *source,
			   cw_config_read_fn fn, void *user, struct cw_err *err)
{
	struct order order = { .may_be_missing = source->may_be_missing };
	struct cw_child_config config = {
		.main = child_main,
		.forks = r->forks,
		.job = cw_config_reader_child,
		.arg = &order,
		.arg_len = sizeof(order),
		.n_fds = 1,
		.deadline_ms = source->within_ms,
		.max_output = 1,
		.fn = on_read,
		.user = r,
	};
	int result;

	if (r->child || cw_children_abandoned(r->children))
		return cw_err_set(err, EBUSY, "%s: an earlier attempt to read it has not finished",
				  source->path);
	r->source = *source;
	r->fn = fn;
	r->user = user;
	/* The child does not find a path that was cut. */
	(void)snprintf(order.path, sizeof(order.path), "%s", source->path);
	result = config.fds[0] = make_values(&r->values);
	if (result >= 0) {
		result = cw_child_start(r->children, &config, &r->child);
		(void)close(config.fds[0]);
	}
	if (result < 0) {
		unmap_values(r);
		return cw_err_set(err, -result, "%s: cannot start a process to read it: %s",
				  source->path, strerror(-result));
	}
	return 0;
}

int cw_config_reader_new(struct event_base *base, struct cw_fork_server *forks,
			 struct cw_config_reader **ret)
{
	struct cw_config_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (cw_children_new(base, &r->children) < 0) {
		free(r);
		return -ENOMEM;
	}
	r->forks = forks;
	*ret = r;
	return 0;
}

struct cw_config_reader *cw_config_reader_free(struct cw_config_reader *r)
{
	if (!r)
		return NULL;
	(void)cw_children_free(r->children); /* always NULL */
	unmap_values(r);
	free(r);
	return NULL;
}

/* ---- reading in a child while the caller waits ---- */

struct answer {
	struct cw_config *config;
	struct cw_err err;
	int r;
	bool is_there;
};

static void on_answer(struct cw_config *config, int r, const struct cw_err *err, void *user)
{
	*(struct answer *)user = (struct answer){ config, *err, r, true };
}

int cw_config_load_from(const char *path, bool may_be_missing, struct cw_config **ret,
			struct cw_err *err)
{
	const struct cw_config_source source = { path, may_be_missing, CW_CONFIG_READ_MS };
	struct event_base *base = event_base_new();
	struct cw_config_reader *reader = NULL;
	struct answer answer = { .r = -ENOMEM, .err = { "out of memory" } };

	if (base && cw_config_reader_new(base, NULL, &reader) == 0) {
		answer.r = cw_config_reader_start(reader, &source, on_answer, &answer, &answer.err);
		while (answer.r == 0 && !answer.is_there)
			if (event_base_loop(base, EVLOOP_ONCE) < 0)
				answer.r = cw_err_set(&answer.err, EIO, "the event loop failed");
	}
	(void)cw_config_reader_free(reader); /* always NULL */
	if (base)
		event_base_free(base);
	if (answer.r == 0)
		*ret = answer.config;
	else if (err)
		*err = answer.err;
	return answer.r;
}

int cw_config_load(const char *path, struct cw_config **ret, struct cw_err *err)
{
	return path ? cw_config_load_from(path, false, ret, err)
		    : cw_config_load_here(NULL, ret, err);
}
