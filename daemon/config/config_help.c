/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys as text for people: --help-config and the manual page. */
#include "daemon/config/config.h"

void cw_config_print_help(FILE *out)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];

		fprintf(out, "%s = %s%s%s\n", key->name, key->type == CW_CONFIG_PEERS ? "{" : "\"",
			key->initial, key->type == CW_CONFIG_PEERS ? "}" : "\"");
		fprintf(out, "    %s", key->help);
		if (key->min)
			fprintf(out, " Range: %s to %s.", key->min, key->max);
		if (key->choices)
			fprintf(out, " One of %s.", key->choices);
		fprintf(out, "%s\n\n", key->can_reload ? " Reloaded on SIGHUP." : "");
	}
}

void cw_config_print_scdoc(FILE *out)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];

		fprintf(out, "*");
		for (const char *p = key->name; *p; p++)
			fprintf(out, "%s%c", *p == '_' ? "\\" : "", *p);
		fprintf(out, "*\n\t");
		for (const char *p = key->help; *p; p++)
			fprintf(out, "%s%c", *p == '_' ? "\\" : "", *p);
		if (*key->initial)
			fprintf(out, " Default: \"%s\".", key->initial);
		if (key->min)
			fprintf(out, " Range: %s to %s.", key->min, key->max);
		if (key->choices)
			fprintf(out, " One of %s.", key->choices);
		fprintf(out, "%s\n\n", key->can_reload ? " Reloaded on SIGHUP." : "");
	}
}
