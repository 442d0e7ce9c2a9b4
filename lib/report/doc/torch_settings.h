/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of PyTorch's watchdog and Flight Recorder on the ranks with evidence, as sentences: each
 * setting with its ranks, and its consequence if it disables one of them.
 */
#pragma once

#include <jansson.h>

/* Number of different settings that we list; of many ranks most have the same. */
#define CW_TORCH_SETTINGS_MAX 24u

/*
 * evidence: an array of collwatch.evidence/1, or any JSON value. New reference: an array of
 * sentences, "TORCH_NCCL_BLOCKING_WAIT=1 (ranks 0-3): …", explained settings first; NULL = out
 * of memory.
 */
json_t *cw_torch_setting_sentences(const json_t *evidence);
