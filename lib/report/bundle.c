/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We write a bundle beside its final place and rename it into place, so that no reader sees half a
 * bundle. A later change replaces one document in the same way. A bundle may come from anywhere.
 * The reader limits sizes before it parses a file, and then checks types.
 */
#include "report/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "report/json_util.h"

#define INCIDENT_FILE "incident.json"
#define SNAPSHOT_FILE "snapshot.json"
#define EVIDENCE_FILE "evidence.json"
#define STACKS_FILE "stacks.json"
#define OPS_FILE "ops.json"
#define SUMMARIES_FILE "summaries.json"
#define REMOTE_SUMMARIES_FILE "summaries-%u.json"
#define REMOTE_SUMMARIES_BYTES 32
/* How often we try to read a bundle that its writer keeps replacing. */
#define MAX_READS 16

void cw_bundle_fini(struct cw_bundle *bundle)
{
	json_decref(bundle->incident);
	json_decref(bundle->snapshot);
	json_decref(bundle->evidence);
	json_decref(bundle->stacks);
	json_decref(bundle->ops);
	json_decref(bundle->summaries);
	json_decref(bundle->remote_summaries);
	*bundle = (struct cw_bundle){ 0 };
}

/* ---- writing ---- */

/*
 * We buffer the tokens, which jansson hands over one at a time. A system call for each token would
 * delay the daemon's loop.
 */
struct writer {
	int fd;
	int error; /* errno of the first failed write: jansson goes on after a callback fails */
	size_t len;
	char buf[32 << 10];
};

static int flush_writer(struct writer *w)
{
	const char *p = w->buf;

	while (w->len > 0) {
		ssize_t n = write(w->fd, p, w->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			w->error = errno;
			return -1;
		}
		p += n;
		w->len -= (size_t)n;
	}
	return 0;
}

static int write_some(const char *text, size_t len, void *user)
{
	struct writer *w = user;

	while (len > 0 && !w->error) {
		size_t n = sizeof(w->buf) - w->len;

		if (n > len)
			n = len;
		memcpy(w->buf + w->len, text, n);
		w->len += n;
		text += n;
		len -= n;
		if (w->len == sizeof(w->buf) && flush_writer(w) < 0)
			return -1;
	}
	return w->error ? -1 : 0;
}

static int write_file(int dirfd, const char *name, const json_t *doc, struct cw_err *err)
{
	_cleanup_(closep) int fd = -1;
	struct writer w;
	int r;

	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return cw_err_set(err, errno, "cannot create %s: %s", name, strerror(errno));
	w.fd = fd;
	w.error = 0;
	w.len = 0;
	/* A string is the document's text, and we write it without quotes. */
	if (json_is_string(doc))
		r = write_some(json_string_value(doc), json_string_length(doc), &w);
	else
		r = json_dump_callback(doc, write_some, &w,
				       JSON_INDENT(1) | JSON_REAL_PRECISION(17));
	if (r < 0 || w.error || flush_writer(&w) < 0) {
		int error = w.error ? w.error : ENOMEM;

		return cw_err_set(err, error, "cannot write %s: %s", name, strerror(error));
	}
	return 0;
}

static void name_remote_summaries(unsigned n, char ret[static REMOTE_SUMMARIES_BYTES])
{
	(void)snprintf(ret, REMOTE_SUMMARIES_BYTES, REMOTE_SUMMARIES_FILE, n);
}

static int write_remote_summaries(int dirfd, const json_t *docs, struct cw_err *err)
{
	const json_t *doc;
	size_t i;
	int r = 0;

	json_array_foreach (docs, i, doc) {
		char name[REMOTE_SUMMARIES_BYTES];

		if (r < 0 || i == CW_BUNDLE_MAX_REMOTE_SUMMARIES)
			break;
		name_remote_summaries((unsigned)i + 1, name);
		r = write_file(dirfd, name, doc, err);
	}
	return r;
}

/* Removes a bundle directory, which contains only files. A missing directory is no error. */
static void remove_bundle(int dirfd, const char *name)
{
	static const char *const ours[] = { INCIDENT_FILE, SNAPSHOT_FILE, EVIDENCE_FILE,
					    STACKS_FILE,   OPS_FILE,      SUMMARIES_FILE };
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return;
	/*
	 * We remove our own files first. Most bundles contain no others, and this needs no memory.
	 */
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		(void)unlinkat(fd, ours[i], 0);
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || !(dir = fdopendir(fd))) {
		closep(&fd);
		return;
	}
	while ((entry = readdir(dir)))
		(void)unlinkat(fd, entry->d_name, 0); /* the kernel refuses "." and ".." */
	(void)closedir(dir);
	/* if this fails, retention removes the directory later */
	(void)unlinkat(dirfd, name, AT_REMOVEDIR);
}

static int write_files(int dirfd, const char *name, const struct cw_bundle *bundle,
		       struct cw_err *err)
{
	_cleanup_(closep) int fd = -1;
	int r;

	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cw_err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
	r = write_file(fd, INCIDENT_FILE, bundle->incident, err);
	if (r == 0 && bundle->snapshot)
		r = write_file(fd, SNAPSHOT_FILE, bundle->snapshot, err);
	if (r == 0 && bundle->evidence)
		r = write_file(fd, EVIDENCE_FILE, bundle->evidence, err);
	if (r == 0 && bundle->stacks)
		r = write_file(fd, STACKS_FILE, bundle->stacks, err);
	if (r == 0 && bundle->ops)
		r = write_file(fd, OPS_FILE, bundle->ops, err);
	if (r == 0 && bundle->summaries)
		r = write_file(fd, SUMMARIES_FILE, bundle->summaries, err);
	if (r == 0 && bundle->remote_summaries)
		r = write_remote_summaries(fd, bundle->remote_summaries, err);
	return r;
}

/*
 * Links a file of the older bundle into the new one, so that an update of the bundle keeps it.
 * Returns false if the older bundle has no such file, which is usual.
 */
static bool keep_file(int dirfd, const char *name, const char *beside, const char *file)
{
	char from[NAME_MAX + REMOTE_SUMMARIES_BYTES + 2], to[NAME_MAX + REMOTE_SUMMARIES_BYTES + 2];

	(void)snprintf(from, sizeof(from), "%s/%s", name, file);
	(void)snprintf(to, sizeof(to), "%s/%s", beside, file);
	return linkat(dirfd, from, dirfd, to, 0) == 0;
}

static int move_into_place(int dirfd, const char *beside, const char *name, struct cw_err *err)
{
	if (renameat2(dirfd, beside, dirfd, name, RENAME_EXCHANGE) == 0) {
		remove_bundle(dirfd, beside); /* after the exchange, `beside` is the older bundle */
		return 0;
	}
	/*
	 * ENOENT means that no bundle has this name yet. Other errors mean that the file system
	 * cannot exchange directories, so we take two steps.
	 */
	if (errno != ENOENT)
		remove_bundle(dirfd, name);
	if (renameat(dirfd, beside, dirfd, name) == 0)
		return 0;
	return cw_err_set(err, errno, "cannot rename %s to %s: %s", beside, name, strerror(errno));
}

int cw_bundle_write(int dirfd, const char *name, const struct cw_bundle *bundle, struct cw_err *err)
{
	char beside[NAME_MAX + 1], file[REMOTE_SUMMARIES_BYTES];
	unsigned n = 0;
	int r;

	if (!*name || *name == '.' || strchr(name, '/'))
		return cw_err_set(err, EINVAL, "\"%s\" is not a valid name for a bundle", name);
	r = snprintf(beside, sizeof(beside), ".%s.new", name);
	if (r < 0 || (size_t)r >= sizeof(beside))
		return cw_err_set(err, ENAMETOOLONG, "the bundle's name is too long");
	remove_bundle(dirfd, beside); /* a killed writer left it; there is only one writer */
	if (mkdirat(dirfd, beside, 0750) < 0)
		return cw_err_set(err, errno, "cannot create %s: %s", beside, strerror(errno));
	r = write_files(dirfd, beside, bundle, err);
	/* Parts that this bundle lacks stay as they are in the older bundle. */
	if (r == 0 && !bundle->ops)
		(void)keep_file(dirfd, name, beside, OPS_FILE);
	if (r == 0 && !bundle->summaries)
		(void)keep_file(dirfd, name, beside, SUMMARIES_FILE);
	if (r == 0 && !bundle->remote_summaries) {
		do
			name_remote_summaries(++n, file);
		while (n <= CW_BUNDLE_MAX_REMOTE_SUMMARIES && keep_file(dirfd, name, beside, file));
	}
	if (r == 0)
		r = move_into_place(dirfd, beside, name, err);
	if (r < 0)
		remove_bundle(dirfd, beside);
	return r;
}

static int replace(int dirfd, const char *name, const char *file, const json_t *doc,
		   struct cw_err *err)
{
	_cleanup_(closep) int fd = -1;
	char beside[64];
	int r;

	(void)snprintf(beside, sizeof(beside), ".%s.new", file);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cw_err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
	(void)unlinkat(fd, beside, 0); /* a killed writer left it; there is only one writer */
	r = write_file(fd, beside, doc, err);
	if (r == 0 && renameat(fd, beside, fd, file) < 0)
		r = cw_err_set(err, errno, "cannot rename %s: %s", beside, strerror(errno));
	if (r < 0)
		(void)unlinkat(fd, beside, 0);
	return r;
}

int cw_bundle_update_incident(int dirfd, const char *name, const json_t *incident,
			      struct cw_err *err)
{
	return replace(dirfd, name, INCIDENT_FILE, incident, err);
}

int cw_bundle_add_remote_summaries(int dirfd, const char *name, unsigned n, const json_t *doc,
				   struct cw_err *err)
{
	char file[REMOTE_SUMMARIES_BYTES];

	if (n < 1 || n > CW_BUNDLE_MAX_REMOTE_SUMMARIES)
		return cw_err_set(err, EINVAL, "a bundle has no place %u for summaries", n);
	name_remote_summaries(n, file);
	return replace(dirfd, name, file, doc, err);
}

/* ---- reading ---- */

static int read_file(int dirfd, const char *name, json_t **ret, struct cw_err *err)
{
	_cleanup_(closep) int fd = -1;
	json_error_t where;
	struct stat st;

	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return cw_err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return cw_err_set(err, EBADMSG, "%s is not a file", name);
	if (st.st_size > CW_BUNDLE_MAX_FILE)
		return cw_err_set(err, E2BIG, "%s is larger than %u MiB", name,
				  CW_BUNDLE_MAX_FILE >> 20);
	*ret = cw_json_parse_fd(fd, JSON_REJECT_DUPLICATES, &where);
	if (!*ret && errno != EBADMSG)
		return cw_err_set(err, errno, "cannot read %s: %s", name, strerror(errno));
	if (!*ret)
		return cw_err_set(err, EBADMSG, "%s:%d: %s", name, where.line, where.text);
	return 0;
}

/*
 * Reads a file that may be missing. If it is missing, *ret stays NULL and the function returns 0.
 */
static int read_optional(int dirfd, const char *name, json_t **ret, struct cw_err *err)
{
	int r = read_file(dirfd, name, ret, err);

	return r == -ENOENT ? 0 : r;
}

static bool is_larger(int dirfd, const char *name, size_t max_bytes)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_size > max_bytes;
}

/* Returns the total bytes of the files that other nodes delivered, and their number in *ret_n. */
static uint64_t size_of_remote_summaries(int dirfd, unsigned *ret_n)
{
	char name[REMOTE_SUMMARIES_BYTES];
	uint64_t bytes = 0;
	unsigned n = 0;
	struct stat st;

	name_remote_summaries(1, name);
	while (n < CW_BUNDLE_MAX_REMOTE_SUMMARIES &&
	       fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		bytes += (uint64_t)st.st_size;
		name_remote_summaries(++n + 1, name);
	}
	*ret_n = n;
	return bytes;
}

static int read_remote_summaries(int dirfd, size_t max_bytes, struct cw_bundle *ret,
				 struct cw_err *err)
{
	unsigned n;
	uint64_t bytes = size_of_remote_summaries(dirfd, &n);

	if (bytes > max_bytes || bytes > CW_BUNDLE_MAX_REMOTE_SUMMARIES_BYTES) {
		ret->n_remote_summaries_omitted = n;
		return 0;
	}
	if (n && !(ret->remote_summaries = json_array()))
		return cw_err_set(err, ENOMEM, "out of memory");
	for (unsigned i = 1; i <= n; i++) {
		char name[REMOTE_SUMMARIES_BYTES];
		struct cw_err why;
		json_t *doc = NULL;

		name_remote_summaries(i, name);
		/* An unreadable or incomplete file does not spoil the other parts of the bundle. */
		if (read_file(dirfd, name, &doc, &why) < 0 || !json_is_object(doc)) {
			json_decref(doc);
			doc = json_pack("{s:s}", "node", name);
		}
		if (json_array_append_new(ret->remote_summaries, doc) < 0)
			return cw_err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int parse_text(json_t **doc)
{
	const json_t *text = *doc;
	json_t *object;

	if (!json_is_string(text))
		return 0;
	object = cw_json_parse(json_string_value(text), json_string_length(text), 0, NULL);
	if (!object)
		/* we wrote this text ourselves, so parsing can only run out of memory */
		return -ENOMEM;
	json_decref(*doc);
	*doc = object;
	return 0;
}

int cw_bundle_parse_texts(struct cw_bundle *bundle)
{
	int r = parse_text(&bundle->snapshot), s = parse_text(&bundle->summaries);

	return r < 0 ? r : s;
}

static int check_types(const struct cw_bundle *b, struct cw_err *err)
{
	if (strcmp(cw_json_str(b->incident, "schema", ""), "collwatch.incident/1") != 0)
		return cw_err_set(err, EBADMSG, INCIDENT_FILE " is not a collwatch.incident/1");
	if (b->snapshot && !json_is_object(b->snapshot))
		return cw_err_set(err, EBADMSG, SNAPSHOT_FILE " is not an object");
	if (b->evidence && !json_is_array(b->evidence))
		return cw_err_set(err, EBADMSG, EVIDENCE_FILE " is not an array");
	if (b->stacks && !json_is_object(b->stacks))
		return cw_err_set(err, EBADMSG, STACKS_FILE " is not an object");
	if (b->ops && !json_is_object(b->ops))
		return cw_err_set(err, EBADMSG, OPS_FILE " is not an object");
	if (b->summaries && !json_is_object(b->summaries))
		return cw_err_set(err, EBADMSG, SUMMARIES_FILE " is not an object");
	return 0;
}

static int read_parts(int fd, const struct cw_bundle_limits *limits, struct cw_bundle *ret,
		      struct cw_err *err)
{
	int r = read_file(fd, INCIDENT_FILE, &ret->incident, err);

	if (r == 0 && !is_larger(fd, SNAPSHOT_FILE, limits->document))
		r = read_optional(fd, SNAPSHOT_FILE, &ret->snapshot, err);
	if (r == 0)
		r = read_optional(fd, EVIDENCE_FILE, &ret->evidence, err);
	if (r == 0)
		r = read_optional(fd, STACKS_FILE, &ret->stacks, err);
	if (r == 0)
		r = read_optional(fd, OPS_FILE, &ret->ops, err);
	if (r == 0 && !is_larger(fd, SUMMARIES_FILE, limits->document))
		r = read_optional(fd, SUMMARIES_FILE, &ret->summaries, err);
	if (r == 0)
		r = read_remote_summaries(fd, limits->remote_summaries, ret, err);
	return r == 0 ? check_types(ret, err) : r;
}

#define BUNDLES_ARE "bundles are directories in /var/lib/collwatch/incidents, and copies of them"

int cw_bundle_read(const char *path, struct cw_bundle *ret, struct cw_err *err)
{
	const struct cw_bundle_limits none = { SIZE_MAX, SIZE_MAX };

	return cw_bundle_read_up_to(path, &none, ret, err);
}

int cw_bundle_read_up_to(const char *path, const struct cw_bundle_limits *limits,
			 struct cw_bundle *ret, struct cw_err *err)
{
	struct cw_err why = { "" };
	int r = -EAGAIN;

	for (unsigned i = 0; i < MAX_READS && r == -EAGAIN; i++) {
		_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };
		_cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct stat opened, now;

		if (fd < 0 && errno == ENOENT)
			return cw_err_set(err, ENOENT, "%s: there is no such bundle; " BUNDLES_ARE,
					  path);
		if (fd < 0 && errno == ENOTDIR)
			return cw_err_set(err, ENOTDIR, "%s is a file, not a bundle; " BUNDLES_ARE,
					  path);
		if (fd < 0)
			return cw_err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
		r = read_parts(fd, limits, &bundle, &why);
		/*
		 * If the path now names another bundle, files of this bundle may have disappeared
		 * while we read it.
		 */
		if (fstat(fd, &opened) == 0 && stat(path, &now) == 0 &&
		    (opened.st_dev != now.st_dev || opened.st_ino != now.st_ino)) {
			r = cw_err_set(err, EAGAIN, "%s changes while it is read: try again", path);
		} else if (r == 0) {
			*ret = bundle;
			bundle = (struct cw_bundle){ 0 };
		} else if (r == -ENOENT) {
			r = cw_err_set(err, ENOENT,
				       "%s is not a bundle: it has no " INCIDENT_FILE
				       "; " BUNDLES_ARE,
				       path);
		} else {
			r = cw_err_set(err, -r, "%s: %s", path, why.text);
		}
	}
	return r;
}
