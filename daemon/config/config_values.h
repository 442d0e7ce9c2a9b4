/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of all values: a stage between the file and the configuration. The texts are in pages
 * that the daemon shares with the child that reads the file. Internal to daemon/config.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "daemon/config/config.h"
#include "daemon/config/header_file.h"

#define CW_CONFIG_MAX_FILE_BYTES (1u << 20)
/*
 * Room for the texts of all values. They may be longer than the file, because it may contain
 * "${NAME}".
 */
#define CW_CONFIG_MAX_VALUES_BYTES (CW_CONFIG_MAX_FILE_BYTES * 2)

/* The text of another file, or the error of reading it. is_done: the child has read it. */
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
	 * The texts of all values, in the order of the keys. Each text ends with '\0'. A list is
	 * several texts and ends with an empty one. None of a list's own texts is empty.
	 */
	char text[CW_CONFIG_MAX_VALUES_BYTES];
	struct cw_config_value_file headers;
};

/*
 * Parses the file at path into v; path NULL = the defaults. The caller has filled v with zeros.
 * Blocks as long as the file system does.
 */
void cw_config_parse(const char *path, struct cw_config_values *v);
/*
 * Converts the texts to a configuration. path: only for messages in *err. Returns the values of
 * cw_config_load().
 */
int cw_config_make(const char *path, const struct cw_config_values *v, struct cw_config **ret,
		   struct cw_err *err);
