/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ranks that were looked at tell PyTorch's watchdog and Flight Recorder, for people: who
 * was told what, and what is lost or not to be expected where one of them takes it away.
 */
#pragma once

#include <jansson.h>

/* Different settings told; of many ranks most have the same. */
#define CW_TORCH_SETTINGS_TOLD 24u

/*
 * evidence: an array of collwatch.evidence/1, or anything. New reference: an array of sentences,
 * "TORCH_NCCL_BLOCKING_WAIT=1 (ranks 0-3): …", those whose meaning is known first; NULL = out of
 * memory.
 */
json_t *cw_torch_setting_sentences(const json_t *evidence);
