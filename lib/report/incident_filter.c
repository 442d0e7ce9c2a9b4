/* SPDX-License-Identifier: Apache-2.0 */
#include "report/incident_filter.h"

#include <string.h>

#include "common/clock.h"
#include "report/json_util.h"

json_t *cw_incident_filter_write(const struct cw_incident_filter *filter)
{
	json_t *arguments = json_object();
	char since[32];
	int bad = 0;

	if (filter->since_wall_ns)
		bad |= json_object_set_new(
			arguments, "since",
			json_string(cw_wall_format(filter->since_wall_ns, since)));
	if (filter->class)
		bad |= json_object_set_new(arguments, "class", json_string(filter->class));
	if (filter->node)
		bad |= json_object_set_new(arguments, "node", cw_json_text(filter->node));
	if (filter->job)
		bad |= json_object_set_new(arguments, "job", cw_json_text(filter->job));
	return cw_json_finish(arguments, bad);
}

void cw_incident_filter_read(const json_t *arguments, struct cw_incident_filter *ret)
{
	int64_t since = cw_wall_parse(cw_json_str(arguments, "since", ""));

	*ret = (struct cw_incident_filter){
		.since_wall_ns = since > 0 ? since : 0,
		.class = cw_json_str(arguments, "class", NULL),
		.node = cw_json_str(arguments, "node", NULL),
		.job = cw_json_str(arguments, "job", NULL),
	};
}

/*
 * True if the host is in the list, or if the list is incomplete or missing. To show one incident
 * too many does no harm, but a hidden incident would.
 */
static bool is_on(const json_t *hosts, const char *node)
{
	const json_t *host;
	size_t i;

	if (!json_is_array(hosts))
		return true;
	json_array_foreach (hosts, i, host)
		if (!json_is_string(host) || strcmp(json_string_value(host), node) == 0)
			return true;
	return false;
}

bool cw_incident_filter_wants(const struct cw_incident_filter *f, const char *time,
			      const char *class, const char *job, const json_t *hosts)
{
	const char *colon = f->job ? strchr(job, ':') : NULL;

	if (f->since_wall_ns && cw_wall_parse(time) < f->since_wall_ns)
		return false;
	if (f->class && strcmp(class, f->class) != 0)
		return false;
	if (f->job && strcmp(job, f->job) != 0 && !(colon && strcmp(colon + 1, f->job) == 0))
		return false;
	return !f->node || is_on(hosts, f->node);
}

json_t *cw_incident_filter_hosts(const struct cw_incident_facts *incident)
{
	json_t *hosts = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < incident->n_culprits; i++) {
		const char *name = incident->culprits[i].host;
		size_t k, n = json_array_size(hosts);
		bool is_listed = false;
		const json_t *host;

		json_array_foreach (hosts, k, host)
			is_listed = is_listed || (name && !json_is_null(host) &&
						  strcmp(json_string_value(host), name) == 0);
		if (is_listed || !name || !*name || n > CW_INCIDENT_HOSTS_MAX)
			continue;
		bad |= json_array_append_new(hosts, n < CW_INCIDENT_HOSTS_MAX ? json_string(name)
									      : json_null());
	}
	return cw_json_finish(hosts, bad);
}
