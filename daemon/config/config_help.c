/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of keys for users: --help-config and the manual page. */
#include "daemon/config/config.h"

static void print_escaped(FILE *out, const char *text)
{
	for (const char *p = text; *p; p++)
		fprintf(out, "%s%c", *p == '_' ? "\\" : "", *p);
}

static void print_limits(FILE *out, const struct cw_config_key *key)
{
	if (key->min)
		fprintf(out, " Range: %s to %s.", key->min, key->max);
	if (key->choices)
		fprintf(out, " One of %s.", key->choices);
	fprintf(out, "%s\n\n", key->can_reload ? " Reloaded on SIGHUP." : "");
}

void cw_config_print_help(FILE *out)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];

		fprintf(out, "%s = %s%s%s\n", key->name, key->type == CW_CONFIG_PEERS ? "{" : "\"",
			key->initial, key->type == CW_CONFIG_PEERS ? "}" : "\"");
		fprintf(out, "    %s", key->help);
		print_limits(out, key);
	}
}

void cw_config_print_scdoc(FILE *out)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];

		fprintf(out, "*");
		print_escaped(out, key->name);
		fprintf(out, "*\n\t");
		print_escaped(out, key->help);
		if (*key->initial)
			fprintf(out, " Default: \"%s\".", key->initial);
		print_limits(out, key);
	}
}
