/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known hangs of the NCCL versions that the ranks of this machine use. A version alone is no
 * problem, so these are notes.
 */
#include <stdio.h>

#include "analysis/known/known_hangs.h"
#include "cli/doctor/doctor.h"
#include "record/record_process.h"
#include "record/record_reader.h"

/* A machine with more versions than this is no machine of users. */
#define MOST_VERSIONS 16u

struct versions {
	uint32_t v[MOST_VERSIONS];
	uint32_t n;
};

static int add_version(pid_t pid, int fd, void *user)
{
	struct versions *all = user;
	struct cw_record *record;
	uint32_t version, i = 0;

	/* A record that we cannot read is a finding of another check. */
	if (cw_record_open(fd, false, &record, NULL) < 0)
		return 0;
	version = cw_record_header(record)->nccl_version;
	(void)cw_record_close(record);
	while (i < all->n && all->v[i] != version)
		i++;
	if (i == all->n && version && all->n < MOST_VERSIONS)
		all->v[all->n++] = version;
	return 0;
}

void doctor_check_known_hangs(struct doctor *d)
{
	struct versions all = { .n = 0 };

	doctor_checked(d, "known-hangs");
	/* We list the processes that this user may read. */
	(void)cw_record_process_each(add_version, &all);
	for (uint32_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < cw_n_known_hang_rows; k++) {
			const struct cw_known_hang_row *row = &cw_known_hang_rows[k];
			char text[512];

			if (!cw_known_hang_has_version(row, all.v[i], CW_MACHINE_OWN))
				continue;
			(void)snprintf(text, sizeof(text),
				       "ranks on this machine use NCCL %u.%u.%u, which has a known "
				       "hang: %s, fixed in %s (%s)",
				       all.v[i] / 10000, all.v[i] / 100 % 100, all.v[i] % 100,
				       row->name, row->fixed_in, row->sources[0]);
			doctor_note(d, text);
		}
}
