/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of PyTorch's watchdog and Flight Recorder on the ranks with evidence, as sentences.
 * Each sentence names a setting, its ranks, and its consequence if it disables the watchdog or
 * the recorder.
 */
#pragma once

#include <jansson.h>

/* We list at most this many different settings. Even of many ranks, most have the same settings. */
#define CW_TORCH_SETTINGS_MAX 24u

/*
 * Makes the sentences, "TORCH_NCCL_BLOCKING_WAIT=1 (ranks 0-3): …". Settings with an explanation
 * come first. evidence: an array of collwatch.evidence/1, or any JSON value. Returns a new
 * reference to an array of strings; NULL = out of memory.
 */
json_t *cw_torch_setting_sentences(const json_t *evidence);
