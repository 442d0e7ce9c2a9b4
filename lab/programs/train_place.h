/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of an example program this is, as torchrun, Open MPI and Slurm tell it. */
#pragma once

struct train_place {
	int rank, world, local_rank;
};

/* Without a launcher it is rank 0 of 1. Returns NULL or the variable that holds no number. */
const char *train_place_read(struct train_place *ret);

/* The variable, or @otherwise where it is unset or empty. */
const char *train_env(const char *name, const char *otherwise);
/* A decimal number from 0 to 1,000,000,000. Returns 0 or -EINVAL. */
int train_number(const char *text, long *ret);
