/* SPDX-License-Identifier: Apache-2.0 */
/* The rank of an example program, from the variables of torchrun, Open MPI and Slurm. */
#pragma once

struct train_place {
	int rank, world, local_rank;
};

/* Without a launcher: rank 0 of 1. Returns NULL or the variable without a number. */
const char *train_place_read(struct train_place *ret);

/* The variable's value, or @otherwise if it is unset or empty. */
const char *train_env(const char *name, const char *otherwise);
/* Reads a decimal number from 0 to 1,000,000,000. Returns 0 or -EINVAL. */
int train_number(const char *text, long *ret);
