/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NCCL_* variables of a process, as one text: "NCCL_ALGO=Ring NCCL_PROTO=LL". The agent writes
 * the text into the flight record, digests carry it, and the engine compares the members of a
 * communicator.
 *
 * The values come from other people. The writer bounds each value, replaces all characters but
 * printable ASCII, and hides values that may be secrets. The readers accept no other text.
 *
 * Pure; no allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of the longest text, with its NUL. A usual job sets ten variables, in 400 bytes. */
#define CW_NCCL_VARIABLES_BYTES 1016
/* The text of a process that has none of the variables. An empty text means "not known". */
#define CW_NCCL_VARIABLES_NONE "none"
/* Longest names and values. The longest name of NCCL 2.30 has 37 bytes. */
#define CW_NCCL_VARIABLE_NAME_BYTES 48
#define CW_NCCL_VARIABLE_VALUE_BYTES 96
/* We compare at most this many variables of a process. */
#define CW_NCCL_VARIABLES_MAX 64u

struct cw_nccl_variable_rule {
	const char *name;
	/*
	 * True: each rank derives algorithm, protocol or chunking from its own value of the
	 * variable. The value is then a part of env_hash.
	 */
	bool is_hashed;
	/* A public text that reports a hang because ranks differed in the variable; NULL = none. */
	const char *source;
};

/* The variables that should be the same on all ranks, by name. */
extern const struct cw_nccl_variable_rule cw_nccl_variable_rules[];
extern const size_t cw_n_nccl_variable_rules;

/* Returns the rule of the variable with this name; NULL = the variable may differ between ranks. */
const struct cw_nccl_variable_rule *cw_nccl_variable_rule(const char *name, size_t len);

/*
 * Writes the text of the environment. `environment` is an array like environ, which may be NULL.
 * Variables with a rule come first. Returns the number of variables that did not fit.
 */
uint32_t cw_nccl_variables_write(char *const *environment, char *to, size_t len);

/* Returns the text if it may come from cw_nccl_variables_write(), otherwise "". */
const char *cw_nccl_variables_check(const char *text, size_t size);

/* One variable of a text. Name and value are parts of the text, without a NUL. */
struct cw_nccl_variable {
	const char *name, *value;
	size_t name_len, value_len;
};

/* Takes the next variable of the text at *at, and moves *at. Returns false at the end. */
bool cw_nccl_variables_next(const char **at, struct cw_nccl_variable *ret);
