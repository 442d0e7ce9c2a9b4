/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the file and the configuration: the texts of all values, in pages that a child which
 * reads the file shares with the daemon. Inside daemon/config only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "daemon/config/config.h"
#include "daemon/config/header_file.h"

#define CW_CONFIG_MAX_FILE_BYTES (1u << 20)
/* All values as text; "${NAME}" may make them longer than the file is. */
#define CW_CONFIG_MAX_VALUES_BYTES (CW_CONFIG_MAX_FILE_BYTES * 2)

/* What another file says, and how far reading it has come. */
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
	/* In the order of the keys. Each ends with '\0'; a list ends with an empty one, and has
	 * none. */
	char text[CW_CONFIG_MAX_VALUES_BYTES];
	struct cw_config_value_file headers;
};

/* v is all zero. path NULL: the defaults. Blocks as the file system does. */
void cw_config_parse(const char *path, struct cw_config_values *v);
/* What they are worth; path is for words in *err alone. As cw_config_load(). */
int cw_config_make(const char *path, const struct cw_config_values *v, struct cw_config **ret,
		   struct cw_err *err);
