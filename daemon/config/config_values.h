/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage between file and configuration: the texts of all values, in pages that the reading
 * child shares with the daemon. Internal to daemon/config.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "daemon/config/config.h"
#include "daemon/config/header_file.h"

#define CW_CONFIG_MAX_FILE_BYTES (1u << 20)
/* Size of all values as text. "${NAME}" may make them longer than the file. */
#define CW_CONFIG_MAX_VALUES_BYTES (CW_CONFIG_MAX_FILE_BYTES * 2)

/* Contents of another file, and the progress of reading it. */
struct cw_config_value_file {
	struct cw_err err;
	int r;
	bool is_begun, is_done;
	char text[CW_HEADER_FILE_MAX];
};

struct cw_config_values {
	struct cw_err err;
	int r;
	bool is_done;
	size_t len;
	/*
	 * The texts of all values, in the order of the keys. Each text ends with '\0'. A list ends
	 * with an empty text, and contains no empty text.
	 */
	char text[CW_CONFIG_MAX_VALUES_BYTES];
	struct cw_config_value_file headers;
};

/*
 * Parses the file at path into v, which the caller has zeroed; path NULL = the defaults. Blocks as
 * long as the file system does.
 */
void cw_config_parse(const char *path, struct cw_config_values *v);
/*
 * Converts the texts to a configuration. path is only for messages in *err. The errors are those of
 * cw_config_load().
 */
int cw_config_make(const char *path, const struct cw_config_values *v, struct cw_config **ret,
		   struct cw_err *err);
