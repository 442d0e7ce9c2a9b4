/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of a directory as a set of dumps. */
#include "import/flight_recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/verdict.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/or_exit/or_exit.h"
#include "common/text.h"

#define MAX_SOURCES 65536u
/*
 * The largest rank that a name may have at its end. No job has a higher rank, and a time of day has
 * six digits.
 */
#define LAST_RANK_AT_END 99999
/* The maximum number of notes. No user reads more. */
#define MAX_NOTES 64u

void cw_fr_set_note(struct cw_fr_set *set, const char *fmt, ...)
{
	char text[320];
	va_list args;

	if (set->n_notes == MAX_NOTES)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cw_text_sanitise_line(text);
	set->notes = cw_or_exit(realloc(set->notes, (set->n_notes + 1) * sizeof(*set->notes)));
	set->notes[set->n_notes++] = cw_or_exit(strdup(text));
}

/* Returns the value of the n digits at text. CW_FR_NONE = there are no digits, or too many. */
static int32_t number_of(const char *text, size_t n)
{
	int32_t number = 0;

	if (n == 0 || n > 6)
		return CW_FR_NONE;
	for (size_t i = 0; i < n; i++)
		number = number * 10 + (text[i] - '0');
	return number;
}

static const char *extension_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	/* ".json" and ".pt2" are extensions, but ".rank_3" is not. */
	if (dot && (strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz") == strlen(dot + 1) ||
		    strcmp(dot, ".pt2") == 0))
		return dot;
	return name + strlen(name);
}

/*
 * Returns the number at the end of a name, before the extension: 12 for "trace_12.json". CW_FR_NONE
 * = no number.
 */
static int32_t number_at_end(const char *name)
{
	size_t end = (size_t)(extension_of(name) - name), start = end;

	while (start > 0 && name[start - 1] >= '0' && name[start - 1] <= '9')
		start--;
	return number_of(name + start, end - start);
}

/*
 * Returns the first number after the word `what`: 12 for "rank_12_of_day_3" and "rank". CW_FR_NONE
 * = no number.
 */
static int32_t number_behind(const char *name, const char *what)
{
	const char *word = strstr(name, what);
	size_t len = strlen(what);

	for (; word; word = strstr(word + len, what)) {
		const char *digits = word + len + strspn(word + len, "_-");
		int32_t number = number_of(digits, strspn(digits, "0123456789"));

		if (number != CW_FR_NONE)
			return number;
	}
	return CW_FR_NONE;
}

/*
 * Returns the rank in a file name; CW_FR_NONE = the name contains no rank. PyTorch appends the rank
 * to TORCH_FR_DUMP_TEMP_FILE, which may be any path. So we prefer the number at the end of the
 * name, because a number after "rank" may be a node's. A longer number at the end is a time of day,
 * as in "rank_3_142501".
 */
static int32_t rank_of_name(const char *name)
{
	int32_t global = number_behind(name, "global_rank"), last = number_at_end(name);
	int32_t rank = number_behind(name, "rank");

	if (global != CW_FR_NONE)
		return global;
	if (last != CW_FR_NONE && (last <= LAST_RANK_AT_END || rank == CW_FR_NONE))
		return last;
	return rank;
}

static int keep(struct cw_fr_set *set, int32_t rank, const char *file_name, int64_t file_ns,
		const struct cw_fr_dump *dump)
{
	if (set->n_sources == MAX_SOURCES)
		return -E2BIG;
	if (set->n_sources == set->room) {
		set->room = set->room ? set->room * 2 : 16;
		set->sources = cw_or_exit(realloc(set->sources, set->room * sizeof(*set->sources)));
	}
	set->sources[set->n_sources++] =
		(struct cw_fr_source){ .rank = rank,
				       .named_rank = number_behind(file_name, "rank"),
				       .file_ns = file_ns,
				       .dump = *dump };
	return 0;
}

/*
 * True if the file was meant to be a dump. We report an unreadable dump, because it is evidence. We
 * do not report logs, which often lie in the same directory.
 */
static bool looks_like_dump(const char *name, const uint8_t *data, size_t size, int32_t rank)
{
	static const char *const logs[] = { ".log", ".txt", ".out", ".err" };
	const char *extension = extension_of(name);

	if (size && (data[0] == 0x80 || data[0] == '{'))
		return true;
	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++)
		if (strcmp(extension, logs[i]) == 0)
			return false;
	return rank != CW_FR_NONE;
}

/*
 * Chooses the rank of a dump. On entry, *rank is the number in the file's name, and we prefer this
 * number. PyTorch (2.4 to 2.10) writes the rank into the name and not into the dump. If the dump
 * names a rank, another tool added it and may have meant another number.
 */
static void settle_rank(struct cw_fr_set *set, const char *file_name, const struct cw_fr_dump *dump,
			int32_t *rank)
{
	if (*rank == CW_FR_NONE && dump->rank == CW_FR_NONE)
		cw_fr_set_note(set, "%s: neither the dump nor its name has a rank number",
			       file_name);
	else if (*rank == CW_FR_NONE)
		*rank = dump->rank;
	else if (dump->rank != CW_FR_NONE && dump->rank != *rank)
		cw_fr_set_note(set, "%s: the dump says rank %d, but we use rank %d", file_name,
			       dump->rank, *rank);
}

int cw_fr_set_add(struct cw_fr_set *set, const char *file_name, const void *data, size_t size,
		  int64_t file_ns)
{
	int32_t rank = rank_of_name(file_name);
	struct cw_fr_dump dump;
	struct cw_err err = { "" };
	int r = 0;

	if (cw_fr_dump_read(data, size, &dump, &err) < 0) {
		/* Any other file is unrelated. */
		if (looks_like_dump(file_name, data, size, rank))
			cw_fr_set_note(set, "%s cannot be used: %s", file_name, err.text);
		return 0;
	}
	settle_rank(set, file_name, &dump, &rank);
	if (rank != CW_FR_NONE)
		r = keep(set, rank, file_name, file_ns, &dump);
	if (r < 0 || rank == CW_FR_NONE)
		cw_fr_dump_fini(&dump);
	return r;
}

void cw_fr_set_fini(struct cw_fr_set *set)
{
	for (uint32_t i = 0; i < set->n_sources; i++)
		cw_fr_dump_fini(&set->sources[i].dump);
	for (uint32_t i = 0; i < set->n_notes; i++)
		free(set->notes[i]);
	free(set->sources);
	free(set->notes);
	*set = (struct cw_fr_set){ 0 };
}

/* ---- files ---- */

static int read_all(int fd, uint8_t *data, size_t size)
{
	size_t n = 0;

	while (n < size) {
		ssize_t r = read(fd, data + n, size - n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			return -EIO; /* the file shrinks while we read it */
		n += (size_t)r;
	}
	return 0;
}

/* Returns the file's time; 0 = the time is not plausible. A tool can give a file any time. */
static int64_t file_time_ns(const struct stat *st)
{
	if (st->st_mtim.tv_sec < 0 || st->st_mtim.tv_sec >= INT64_MAX / CW_NS_PER_S)
		return 0;
	return st->st_mtim.tv_sec * CW_NS_PER_S + st->st_mtim.tv_nsec;
}

static int add_file(struct cw_fr_set *set, int dirfd, const char *name)
{
	_cleanup_(closep) int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(freep) uint8_t *data = NULL;
	struct stat st;
	int r;

	if (fd < 0) {
		cw_fr_set_note(set, "%s cannot be read: %s", name, strerror(errno));
		return 0;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_size > (off_t)CW_FR_MAX_FILE) {
		cw_fr_set_note(set, "%s is larger than %u MiB: omitted", name,
			       CW_FR_MAX_FILE >> 20);
		return 0;
	}
	data = cw_or_exit(malloc((size_t)st.st_size + 1));
	r = read_all(fd, data, (size_t)st.st_size);
	if (r < 0) {
		cw_fr_set_note(set, "%s cannot be read: %s", name, strerror(-r));
		return 0;
	}
	return cw_fr_set_add(set, name, data, (size_t)st.st_size, file_time_ns(&st));
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static uint32_t count_files(DIR *dir)
{
	struct dirent *entry;
	uint32_t n = 0;

	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	rewinddir(dir);
	return n;
}

static int add_directory(struct cw_fr_set *set, const char *path,
			 const struct cw_import_watch *watch, struct cw_err *err)
{
	_cleanup_(close_dir) DIR *dir = opendir(path);
	uint32_t done = 0, total;
	struct dirent *entry;
	int r;

	if (!dir && errno == ENOTDIR)
		return cw_err_set(err, ENOTDIR,
				  "%s is a file: give the directory with the dumps of all ranks",
				  path);
	if (!dir)
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	total = count_files(dir);
	while ((errno = 0, entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		r = add_file(set, dirfd(dir), entry->d_name);
		if (r < 0)
			return cw_err_set(err, -r, "%s/%s: %s", path, entry->d_name, strerror(-r));
		done++;
		cw_import_watch_note(watch, done, total > done ? total : done);
	}
	return errno ? cw_err_set(err, errno, "%s: %s", path, strerror(errno)) : 0;
}

/*
 * Examines the verdict on a snapshot. *ret_all_in: no rank is missing anywhere. *ret_has_cycle: it
 * shows a cycle, or a message that alone closes one.
 */
static void judge(const struct cw_snapshot *snap, bool *ret_all_in, bool *ret_has_cycle)
{
	struct cw_verdict v;

	(void)cw_or_exit_result(cw_verdict_compute(snap, &v));
	*ret_all_in = v.verdict_class == CW_CLASS_UNKNOWN && v.detail == CW_DETAIL_PROGRESS_UNKNOWN;
	*ret_has_cycle = v.verdict_class == CW_CLASS_DEADLOCK || v.detail == CW_DETAIL_PAIR;
	cw_verdict_fini(&v);
}

int cw_fr_snapshot_best(struct cw_fr_set *set, struct cw_snapshot **ret)
{
	struct cw_snapshot *plain, *ordered;
	bool all_in, has_cycle;
	int r = cw_fr_snapshot(set, false, &plain);

	if (r < 0)
		return r;
	*ret = plain;
	judge(plain, &all_in, &has_cycle);
	if (!all_in)
		return 0;
	r = cw_fr_snapshot(set, true, &ordered);
	if (r < 0) {
		*ret = cw_snapshot_free(plain);
		return r;
	}
	judge(ordered, &all_in, &has_cycle);
	if (has_cycle) {
		*ret = ordered;
		ordered = plain;
	}
	(void)cw_snapshot_free(ordered);
	return 0;
}

int cw_flight_recorder_read(const char *dir, const struct cw_import_watch *watch,
			    struct cw_snapshot **ret, struct cw_err *err)
{
	_cleanup_(cw_fr_set_fini) struct cw_fr_set set = { 0 };
	int r = add_directory(&set, dir, watch, err);

	if (r < 0)
		return r;
	r = cw_fr_snapshot_best(&set, ret);
	if (r == -ENODATA)
		return cw_err_set(
			err, ENODATA, "%s: no Flight Recorder dump that can be read%s%s", dir,
			set.n_notes ? ": " : "; torch names them after TORCH_FR_DUMP_TEMP_FILE",
			set.n_notes ? set.notes[0] : "");
	return r < 0 ? cw_err_set(err, -r, "%s: %s", dir, strerror(-r)) : 0;
}
