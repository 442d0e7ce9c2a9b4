/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/baseline_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "record/summary_taken.h"

#define RANKS_MAX 65536u

static bool ends_with(const char *name, const char *suffix)
{
	size_t len = strlen(name), suffix_len = strlen(suffix);

	return len > suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

static bool is_baseline(const char *name)
{
	return ends_with(name, CW_BASELINE_SUFFIX);
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

bool baseline_dir_has(const char *dir)
{
	_cleanup_(close_dir) DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (is_baseline(entry->d_name))
			return true;
	return false;
}

void baseline_dir_remove(const char *dir)
{
	_cleanup_(close_dir) DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (is_baseline(entry->d_name) || ends_with(entry->d_name, CW_SUMMARY_TAKEN_SUFFIX))
			(void)unlinkat(dirfd(d), entry->d_name, 0);
	(void)rmdir(dir);
}

int baseline_listed_compare(const void *x, const void *y)
{
	const struct baseline_listed *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->part < b->part ? -1 : a->part > b->part;
}

static int list_one(struct baseline_listing *l, const char *dir, const char *name,
		    struct cw_err *err)
{
	struct baseline_listed *to;
	struct cw_baseline_head head;
	_cleanup_(closep) int fd = -1;
	struct cw_err why;

	if (l->n == RANKS_MAX)
		return cw_err_set(err, E2BIG, "%s: more than %u baselines", dir, RANKS_MAX);
	if (!(l->n & (l->n - 1)))
		l->files = cw_or_exit(
			reallocarray(l->files, l->n ? 2 * (size_t)l->n : 1, sizeof(*to)));
	to = &l->files[l->n];
	if (snprintf(to->path, sizeof(to->path), "%s/%s", dir, name) >= (int)sizeof(to->path))
		return cw_err_set(err, ENAMETOOLONG, "%s/%s: %s", dir, name,
				  strerror(ENAMETOOLONG));
	fd = open(to->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return cw_err_set(err, errno, "%s: %s", to->path, strerror(errno));
	if (cw_baseline_file_head(fd, &head, &why) < 0)
		return cw_err_set(err, EBADMSG, "%s %s", to->path, why.text);
	to->rank = head.rank;
	to->world_size = head.world_size;
	to->part = head.part;
	l->n++;
	return 0;
}

int baseline_dir_list(const char *dir, struct baseline_listing *l, struct cw_err *err)
{
	_cleanup_(close_dir) DIR *d = opendir(dir);
	struct dirent *entry;
	int r = 0;

	if (!d)
		return cw_err_set(err, errno, "%s: %s", dir, strerror(errno));
	while (r == 0 && (entry = readdir(d)))
		if (is_baseline(entry->d_name))
			r = list_one(l, dir, entry->d_name, err);
	if (r < 0)
		return r;
	if (l->n == 0)
		return cw_err_set(err, ENOENT, "%s: no baselines in it", dir);
	qsort(l->files, l->n, sizeof(*l->files), baseline_listed_compare);
	for (uint32_t i = 1; i < l->n; i++)
		if (baseline_listed_compare(&l->files[i - 1], &l->files[i]) == 0)
			return cw_err_set(err, EEXIST, "%s and %s are both of rank %d",
					  l->files[i - 1].path, l->files[i].path, l->files[i].rank);
	return 0;
}

void baseline_listing_fini(struct baseline_listing *l)
{
	free(l->files);
	*l = (struct baseline_listing){ .files = NULL };
}
