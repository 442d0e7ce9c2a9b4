/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/user_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/account.h"
#include "loop/children.h"

/* Deadline of a child, in ms. It must be longer than CW_ACCOUNT_MS. */
#define LOOK_UP_MS 10000
/* Limit of parallel look-ups. A service that hangs holds up at most this many children. */
#define MAX_LOOK_UPS 2u

struct entry {
	struct cw_user_names *owner; /* NULL = this entry is free */
	uint32_t uid;
	int64_t asked_ns, known_ns;
	bool is_known;
	struct cw_child *child;         /* NULL = no look-up is running for this entry */
	char name[CW_ACCOUNT_NAME_MAX]; /* "" = the user has no name */
};

struct cw_user_names {
	struct cw_user_names_config config;
	struct cw_children *children;
	struct entry entries[CW_USER_NAMES_MAX];
};

struct question {
	cw_user_look_up_fn look_up;
	uint32_t uid;
};

/*
 * Looks up one name in the child. For the name service, cw_account_user() starts a child of its
 * own: see common/account.h.
 */
static int look_up(int out_fd, const void *arg)
{
	const struct question *q = arg;
	char name[CW_ACCOUNT_NAME_MAX] = "";
	size_t len;
	int r = q->look_up(q->uid, name);

	if (r < 0)
		return r != -ENOENT;
	len = strlen(name);
	return write(out_fd, name, len) != (ssize_t)len;
}

static void on_answer(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct entry *e = user;

	e->child = NULL;
	e->is_known = true;
	e->known_ns = cw_clock_now_ns(e->owner->config.clock);
	e->name[0] = '\0';
	if (end != CW_CHILD_EXITED || len >= sizeof(e->name) || memchr(output, '\0', len))
		return;
	memcpy(e->name, output, len);
	e->name[len] = '\0';
}

static void start(struct cw_user_names *names, struct entry *e)
{
	const struct question question = {
		.look_up = names->config.look_up ? names->config.look_up : cw_account_user,
		.uid = e->uid,
	};
	const struct cw_child_config config = {
		.main = look_up,
		.arg = &question,
		.deadline_ms = LOOK_UP_MS,
		.max_output = CW_ACCOUNT_NAME_MAX,
		.fn = on_answer,
		.user = e,
	};
	unsigned n = cw_children_abandoned(names->children);

	for (size_t i = 0; i < CW_USER_NAMES_MAX; i++)
		n += names->entries[i].child != NULL;
	if (n < MAX_LOOK_UPS)
		/* After an error the next call tries again. */
		(void)cw_child_start(names->children, &config, &e->child);
}

static struct entry *find(struct cw_user_names *names, uint32_t uid)
{
	for (size_t i = 0; i < CW_USER_NAMES_MAX; i++)
		if (names->entries[i].owner && names->entries[i].uid == uid)
			return &names->entries[i];
	return NULL;
}

/*
 * Returns a free entry, or else the entry with the oldest query. Skips entries with a running
 * look-up.
 */
static struct entry *make(struct cw_user_names *names, uint32_t uid)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < CW_USER_NAMES_MAX; i++) {
		struct entry *e = &names->entries[i];

		if (e->child)
			continue;
		if (!oldest || (oldest->owner && (!e->owner || e->asked_ns < oldest->asked_ns)))
			oldest = e;
	}
	/*
	 * An entry exists, because fewer entries than CW_USER_NAMES_MAX have a child: at most
	 * MAX_LOOK_UPS.
	 */
	*oldest = (struct entry){ .owner = names, .uid = uid };
	return oldest;
}

const char *cw_user_names_get(struct cw_user_names *names, uint32_t uid)
{
	int64_t now_ns = cw_clock_now_ns(names->config.clock);
	struct entry *e = find(names, uid);

	if (!e)
		e = make(names, uid);
	e->asked_ns = now_ns;
	if (!e->child && (!e->is_known || now_ns - e->known_ns >= CW_USER_NAME_NS))
		start(names, e);
	return *e->name ? e->name : NULL;
}

int cw_user_names_new(const struct cw_user_names_config *config, struct cw_user_names **ret)
{
	struct cw_user_names *names = calloc(1, sizeof(*names));
	int r;

	if (!names)
		return -ENOMEM;
	names->config = *config;
	r = cw_children_new(config->base, &names->children);
	if (r < 0) {
		free(names);
		return r;
	}
	*ret = names;
	return 0;
}

struct cw_user_names *cw_user_names_free(struct cw_user_names *names)
{
	if (!names)
		return NULL;
	cw_children_free(names->children);
	free(names);
	return NULL;
}
