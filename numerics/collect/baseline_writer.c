/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/htable.h"
#include "numerics/collect/baseline_file.h"
#include "numerics/collect/baseline_unit.h"

#define BUFFER_BYTES (256u << 10)

struct site {
	UT_hash_handle hh;
	int number;
	char text[];
};

struct cw_baseline_writer {
	FILE *file;
	struct site *sites;
	int n_comms, n_sites, error;
	uint32_t n_rows;
};

static void write_unit(struct cw_baseline_writer *w, const void *unit)
{
	errno = 0;
	if (!w->error && fwrite(unit, sizeof(struct cw_baseline_row), 1, w->file) != 1)
		w->error = errno ? -errno : -EIO;
}

int cw_baseline_writer_new(const char *path, const struct cw_baseline_head *head,
			   struct cw_baseline_writer **ret)
{
	struct baseline_head_unit unit = {
		.magic = BASELINE_MAGIC,
		.version = BASELINE_VERSION,
		.unit_bytes = sizeof(struct cw_baseline_row),
		.rank = head->rank,
		.world_size = head->world_size,
		.pid = head->pid,
		.part = head->part,
		.created_wall_ns = head->created_wall_ns,
	};
	struct cw_baseline_writer *w = calloc(1, sizeof(*w));
	int fd;

	if (!w)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		int error = -errno;

		free(w);
		return error;
	}
	w->file = fdopen(fd, "w");
	if (!w->file) {
		(void)close(fd);
		free(w);
		return -ENOMEM;
	}
	/* if this fails, stdio uses a smaller buffer */
	(void)setvbuf(w->file, NULL, _IOFBF, BUFFER_BYTES);
	write_unit(w, &unit);
	*ret = w;
	return 0;
}

void cw_baseline_writer_comm_name(struct cw_baseline_writer *w, int number,
				  const struct cw_baseline_comm *comm)
{
	struct baseline_comm_unit unit = {
		.unit = BASELINE_COMM,
		.index = (uint32_t)number,
		.id = comm->id,
		.nranks = comm->nranks,
		.comm_rank = comm->comm_rank,
	};

	memcpy(unit.name, comm->name, sizeof(unit.name));
	write_unit(w, &unit);
}

int cw_baseline_writer_comm(struct cw_baseline_writer *w, const struct cw_baseline_comm *comm)
{
	if (w->n_comms >= (int)CW_BASELINE_COMMS)
		return -ENOSPC;
	cw_baseline_writer_comm_name(w, w->n_comms, comm);
	return w->n_comms++;
}

static void write_text(struct cw_baseline_writer *w, enum baseline_unit sort, int index,
		       const char *text, size_t len)
{
	for (size_t at = 0; at < len; at += BASELINE_TEXT_BYTES) {
		size_t n = len - at < BASELINE_TEXT_BYTES ? len - at : BASELINE_TEXT_BYTES;
		struct baseline_text_unit unit = {
			.unit = sort,
			.n_bytes = (uint8_t)n,
			.index = (uint16_t)index,
		};

		memcpy(unit.text, text + at, n);
		write_unit(w, &unit);
	}
}

int cw_baseline_writer_site(struct cw_baseline_writer *w, const char *text)
{
	size_t len = strnlen(text, CW_BASELINE_SITE_BYTES);
	struct site *site;

	if (len == 0)
		return 0;
	HASH_FIND(hh, w->sites, text, len, site);
	if (site)
		return site->number;
	if (w->n_sites >= (int)CW_BASELINE_SITES)
		return -ENOSPC;
	site = calloc(1, sizeof(*site) + len + 1);
	if (!site)
		return -ENOMEM;
	memcpy(site->text, text, len);
	site->number = w->n_sites + 1;
	HASH_ADD_KEYPTR(hh, w->sites, site->text, len, site);
	if (!cw_htable_added(site)) {
		free(site);
		return -ENOMEM;
	}
	write_text(w, BASELINE_TEXT, site->number, site->text, len);
	return ++w->n_sites;
}

int cw_baseline_writer_denied(struct cw_baseline_writer *w, const char *names)
{
	write_text(w, BASELINE_DENIED, 0, names, strnlen(names, CW_BASELINE_DENIED_BYTES));
	return 0;
}

int cw_baseline_writer_row(struct cw_baseline_writer *w, const struct cw_baseline_row *row)
{
	if (w->n_rows == CW_BASELINE_ROWS)
		return -ENOSPC;
	w->n_rows++;
	write_unit(w, row);
	return 0;
}

int cw_baseline_writer_free(struct cw_baseline_writer *w,
			    const uint64_t counters[CW_BASELINE_COUNTERS])
{
	struct baseline_end_unit unit = { .unit = BASELINE_END };
	struct site *site, *next;
	int r;

	if (!w)
		return 0;
	if (counters) {
		memcpy(unit.counters, counters, sizeof(unit.counters));
		write_unit(w, &unit);
	}
	if (fclose(w->file) != 0 && !w->error)
		w->error = -errno;
	HASH_ITER (hh, w->sites, site, next) {
		HASH_DELETE(hh, w->sites, site);
		free(site);
	}
	r = w->error;
	free(w);
	return r;
}
