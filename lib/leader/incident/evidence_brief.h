/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a collwatch.evidence/1 down to the parts that locate its rank. The full documents of a
 * thousand ranks, with a hundred helper threads each, would be 100 MiB on the wire that no user
 * reads. Pure.
 */
#pragma once

#include <jansson.h>

/*
 * Keeps the most informative Python thread. Of native threads and facts about threads, keeps the
 * main thread and up to three threads inside an NCCL call.
 */
void cw_evidence_brief(json_t *doc);
