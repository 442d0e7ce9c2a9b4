/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a collwatch.evidence/1 down to the parts that locate its rank. The full documents of a
 * thousand ranks, with a hundred helper threads each, would put 100 MiB on the wire, and no user
 * reads them. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * Removes the less informative parts of doc. We keep one Python thread, the most informative one,
 * or all of them if all_python is true. We keep native threads, and facts about threads, only for
 * the main thread and for up to three threads inside an NCCL call.
 */
void cw_evidence_brief(json_t *doc, bool all_python);
