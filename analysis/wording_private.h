/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that put a verdict into words, and nobody else. */
#pragma once

#include "analysis/incident.h"

/* Fills c->reason (reason.c). */
void reason_of_culprit(const struct incident *inc, struct cw_culprit *c);

/* Fills v->ruled_out (ruled_out.c). Returns 0 or -ENOMEM. */
int ruled_out_list(struct incident *inc);
