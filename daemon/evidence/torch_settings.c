/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We match most settings by prefix, because each version of PyTorch adds some
 * (ProcessGroupNCCL.hpp, FlightRecorder.hpp). The single names in this file are older names of such
 * settings, or names that users set although no code reads them.
 */
#include "daemon/evidence/torch_settings.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/evidence/evidence_text.h"

#define MAX_SETTING_BYTES 160u

static bool is_setting(const char *text)
{
	static const char *const beginnings[] = {
		"TORCH_NCCL_",
		"TORCH_FR_",
		"NCCL_ASYNC_ERROR_HANDLING=",
		"NCCL_BLOCKING_WAIT=",
		"NCCL_DESYNC_DEBUG=",
		"NCCL_TIMEOUT=",
		"TORCH_DISTRIBUTED_TIMEOUT=",
		"TORCH_DISTRIBUTED_DEBUG=",
	};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
			return strchr(text, '=') != NULL;
	return false;
}

json_t *cw_torch_settings(const char *environment, size_t len)
{
	const char *end;
	json_t *list = json_array();

	for (const char *text = environment; list && len; text = end + 1) {
		end = memchr(text, '\0', len);
		if (!end || json_array_size(list) == CW_TORCH_SETTINGS_MAX)
			break;
		len -= (size_t)(end - text) + 1;
		if (is_setting(text) &&
		    json_array_append_new(list, cw_evidence_text(text, (size_t)(end - text),
								 MAX_SETTING_BYTES)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
