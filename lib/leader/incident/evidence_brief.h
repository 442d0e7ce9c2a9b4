/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collwatch.evidence/1 cut down to what tells where its rank is: of a thousand ranks, a hundred
 * helper threads each are nobody's reading and 100 MiB on the wire. Pure.
 */
#pragma once

#include <jansson.h>

/*
 * Keeps the Python thread that says most, and of native threads and facts about threads the main
 * one and up to three that are inside an NCCL call.
 */
void cw_evidence_brief(json_t *doc);
