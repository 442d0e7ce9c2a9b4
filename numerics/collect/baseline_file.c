/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We read a whole file into the array of its rows. Then we remove the units that are not rows, and
 * move the rows behind them up.
 */
#include "numerics/collect/baseline_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "numerics/collect/baseline_unit.h"

#define UNIT sizeof(struct cw_baseline_row)
/*
 * Limit on the units of all kinds: rows, communicators, four pieces of each call site, names of
 * operators that were not sampled, head and end.
 */
#define UNITS_MAX                                                                                  \
	(CW_BASELINE_ROWS + CW_BASELINE_COMMS + 4 * CW_BASELINE_SITES + CW_BASELINE_DENIED_BYTES + \
	 2)

static int refuse(struct cw_err *err, const char *why)
{
	return cw_err_set(err, EBADMSG, "%s", why);
}

/* Reads exactly len bytes. */
static int read_whole(int fd, void *buf, size_t len, off_t at)
{
	char *to = buf;

	while (len > 0) {
		ssize_t n = pread(fd, to, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		to += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

int cw_baseline_file_head(int fd, struct cw_baseline_head *ret, struct cw_err *err)
{
	struct baseline_head_unit head;
	int r = read_whole(fd, &head, sizeof(head), 0);

	if (r < 0 && r != -EBADMSG)
		return cw_err_set(err, -r, "%s", strerror(-r));
	if (r < 0 || head.magic != BASELINE_MAGIC)
		return refuse(err, "is not a baseline of this machine's byte order");
	if (head.version != BASELINE_VERSION || head.unit_bytes != UNIT)
		return cw_err_set(err, EBADMSG, "is a baseline of version %u, not %u", head.version,
				  BASELINE_VERSION);
	if (head.rank < -1 || head.world_size < -1)
		return refuse(err, "is of no rank that can be");
	if (head.part >= CW_BASELINE_PARTS)
		return refuse(err, "is of a part that is not known");
	*ret = (struct cw_baseline_head){ .part = head.part,
					  .rank = head.rank,
					  .world_size = head.world_size,
					  .pid = head.pid,
					  .created_wall_ns = head.created_wall_ns };
	return 0;
}

/* ---- units ---- */

static int grow(void *array, uint32_t n, size_t size)
{
	void **to = array, *grown;

	/* We double the array when n is a power of two. At any other n it has room. */
	if (n & (n - 1))
		return 0;
	grown = realloc(*to, (n ? 2 * (size_t)n : 1) * size);
	if (!grown)
		return -ENOMEM;
	*to = grown;
	return 0;
}

static void take_name(struct cw_baseline_comm *comm, const struct baseline_comm_unit *unit)
{
	memcpy(comm->name, unit->name, sizeof(comm->name) - 1);
	cw_text_sanitise_line(comm->name);
}

static int take_comm(struct cw_baseline_file *f, const struct baseline_comm_unit *unit,
		     struct cw_err *err)
{
	struct cw_baseline_comm *comm;

	if (unit->index < f->run.n_comms) {
		comm = &f->comms[unit->index];
		if (comm->name[0] || unit->id != comm->id)
			return refuse(err, "has a communicator twice");
		take_name(comm, unit);
		return 0;
	}
	if (unit->index != f->run.n_comms || unit->index >= CW_BASELINE_COMMS)
		return refuse(err, "has communicators out of order, or too many");
	if (unit->comm_rank < -1)
		return refuse(err, "has a rank of a communicator that cannot be");
	if (grow(&f->comms, f->run.n_comms, sizeof(*f->comms)) < 0)
		return -ENOMEM;
	comm = &f->comms[f->run.n_comms++];
	*comm = (struct cw_baseline_comm){ .id = unit->id,
					   .nranks = unit->nranks,
					   .comm_rank = unit->comm_rank };
	take_name(comm, unit);
	return 0;
}

static int take_text(struct cw_baseline_file *f, const struct baseline_text_unit *unit,
		     struct cw_err *err)
{
	uint32_t n = f->run.n_sites;
	size_t old;

	if (unit->n_bytes == 0 || unit->n_bytes > BASELINE_TEXT_BYTES ||
	    memchr(unit->text, '\0', unit->n_bytes))
		return refuse(err, "has a call site without a text");
	if (unit->index != n && unit->index != n + 1)
		return refuse(err, "has call sites out of order");
	if (unit->index == n + 1) {
		if (n == CW_BASELINE_SITES)
			return refuse(err, "has too many call sites");
		if (grow(&f->sites, n, sizeof(*f->sites)) < 0)
			return -ENOMEM;
		f->sites[n] = calloc(1, CW_BASELINE_SITE_BYTES + 1);
		if (!f->sites[n])
			return -ENOMEM;
		f->run.n_sites = ++n;
	}
	if (n == 0)
		return refuse(err, "has a call site without a number");
	old = strlen(f->sites[n - 1]);
	if (old + unit->n_bytes > CW_BASELINE_SITE_BYTES)
		return refuse(err, "has a call site that is too long");
	memcpy(f->sites[n - 1] + old, unit->text, unit->n_bytes);
	return 0;
}

static int take_denied(struct cw_baseline_file *f, const struct baseline_text_unit *unit,
		       struct cw_err *err)
{
	size_t old = strlen(f->denied);

	if (unit->n_bytes == 0 || unit->n_bytes > BASELINE_TEXT_BYTES ||
	    memchr(unit->text, '\0', unit->n_bytes))
		return refuse(err, "has names without a text");
	if (old + unit->n_bytes > CW_BASELINE_DENIED_BYTES)
		return refuse(err, "has too many names that are left out");
	memcpy(f->denied + old, unit->text, unit->n_bytes);
	return 0;
}

static int check_row(const struct cw_baseline_file *f, const struct cw_baseline_row *row,
		     struct cw_err *err)
{
	if (row->comm >= f->run.n_comms || row->site > f->run.n_sites)
		return refuse(err, "has an op on a communicator or from a call site that it does "
				   "not name");
	if (row->seq == 0 || row->kind >= CW_OP__MAX)
		return refuse(err, "has an op that cannot be");
	if (f->run.n_rows == CW_BASELINE_ROWS)
		return refuse(err, "has too many ops");
	return 0;
}

static int take_unit(struct cw_baseline_file *f, const struct cw_baseline_row *unit,
		     struct cw_err *err)
{
	struct baseline_end_unit end;
	struct baseline_comm_unit comm;
	struct baseline_text_unit text;
	int r;

	switch (unit->unit & CW_BASELINE_UNIT_MASK) {
	case BASELINE_ROW:
		r = check_row(f, unit, err);
		if (r == 0)
			f->rows[f->run.n_rows++] = *unit;
		return r;
	case BASELINE_COMM:
		memcpy(&comm, unit, sizeof(comm));
		return take_comm(f, &comm, err);
	case BASELINE_TEXT:
		memcpy(&text, unit, sizeof(text));
		return take_text(f, &text, err);
	case BASELINE_DENIED:
		memcpy(&text, unit, sizeof(text));
		return take_denied(f, &text, err);
	case BASELINE_END:
		memcpy(&end, unit, sizeof(end));
		memcpy(f->counters, end.counters, sizeof(f->counters));
		f->is_finished = true;
		return 0;
	default:
		return refuse(err, "has a unit of a sort that is not known");
	}
}

/* Removes all units other than rows from the array. Rows stay in place or move up. */
static int take_units(struct cw_baseline_file *f, size_t n, struct cw_err *err)
{
	int r = 0;

	for (size_t i = 1; i < n && r == 0; i++) {
		struct cw_baseline_row unit = f->rows[i];

		if (f->is_finished)
			return refuse(err, "goes on behind its end");
		r = take_unit(f, &unit, err);
	}
	for (uint32_t i = 0; i < f->run.n_sites; i++)
		cw_text_sanitise_line(f->sites[i]);
	cw_text_sanitise_line(f->denied);
	return r;
}

static int read_units(int fd, struct cw_baseline_file *f, struct cw_err *err)
{
	struct stat st;
	size_t n;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return refuse(err, "is not a file");
	if ((uint64_t)st.st_size / UNIT > UNITS_MAX)
		return refuse(err, "is larger than any baseline");
	/* We ignore a partial unit at the end. It comes from a full disk or a killed writer. */
	n = (size_t)st.st_size / UNIT;
	f->rows = malloc((n + 1) * UNIT);
	if (!f->rows)
		return -ENOMEM;
	r = read_whole(fd, f->rows, n * UNIT, 0);
	if (r == 0)
		r = take_units(f, n, err);
	f->run.rows = f->rows;
	f->run.comms = f->comms;
	f->run.sites = f->sites;
	return r;
}

int cw_baseline_file_read(int fd, struct cw_baseline_file *ret, struct cw_err *err)
{
	struct cw_baseline_file file = { .rows = NULL };
	struct cw_err why = { "" };
	int r = cw_baseline_file_head(fd, &file.head, &why);

	if (r == 0)
		r = read_units(fd, &file, &why);
	if (r < 0) {
		cw_baseline_file_fini(&file);
		return cw_err_set(err, -r, "%s", why.text[0] ? why.text : strerror(-r));
	}
	*ret = file;
	return 0;
}

void cw_baseline_file_fini(struct cw_baseline_file *file)
{
	for (uint32_t i = 0; i < file->run.n_sites; i++)
		free(file->sites[i]);
	free(file->sites);
	free(file->comms);
	free(file->rows);
	*file = (struct cw_baseline_file){ .rows = NULL };
}
