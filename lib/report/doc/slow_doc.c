/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/slow_doc.h"

#include <inttypes.h>

#include "common/text.h"
#include "model/verdict_types.h"
#include "report/json_util.h"

static const char *host_of(const struct cw_snapshot *snap, uint32_t rank)
{
	uint32_t node = snap->ranks[rank].node;

	return node < snap->n_nodes && snap->nodes[node].name ? snap->nodes[node].name : "";
}

static int add_text(json_t *doc, const char *key, const char *text)
{
	return text && *text ? json_object_set_new(doc, key, cw_json_text(text)) : 0;
}

/* Adds the pod of the process, as far as we know it. Returns 0 or -1. */
static int add_pod(json_t *doc, const struct cw_snap_rank *rank)
{
	int bad = 0;

	bad |= add_text(doc, "pod", rank->pod);
	bad |= add_text(doc, "pod_namespace", rank->pod_namespace);
	bad |= add_text(doc, "container", rank->container);
	if (rank->own_pid > 0)
		bad |= json_object_set_new(doc, "own_pid", json_integer(rank->own_pid));
	return bad;
}

static json_t *entry_doc(const struct cw_snapshot *snap, const struct cw_slow *s)
{
	const struct cw_snap_comm *c = &snap->comms[s->comm];
	json_t *doc;
	int bad = 0;

	doc = cw_json_object((struct cw_json_member[]){
		{ "rank", json_integer(snap->ranks[s->rank].rank) },
		{ "host", cw_json_text(host_of(snap, s->rank)) },
		{ "pid", json_integer(snap->ranks[s->rank].pid) },
		{ NULL },
	});
	bad |= add_pod(doc, &snap->ranks[s->rank]);
	bad |= cw_json_add(doc,
			   (struct cw_json_member[]){
				   { "comm", cw_json_hex(c->id) },
				   { "comm_name", cw_json_text(c->name ? c->name : "") },
				   { "collectives", json_integer(s->n_ops) },
				   { "waited_for", json_integer(s->n_late) },
				   { "late_s", json_real((double)s->late_ns / 1e9) },
				   { "share", json_real(s->percent / 100.0) },
				   { "confidence", json_string(cw_confidence_name(s->confidence)) },
				   { NULL },
			   });
	return cw_json_finish(doc, bad);
}

json_t *cw_slow_doc(const struct cw_snapshot *snap, const struct cw_slow_list *list)
{
	json_t *doc = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < list->n; i++)
		bad |= json_array_append_new(doc, entry_doc(snap, &list->v[i]));
	return cw_json_finish(doc, bad);
}

#define WHERE_BYTES 128

/* Writes " (node-a, pid 812)". Recordings may lack one of these parts or both. */
static const char *where_of(const struct cw_snapshot *snap, uint32_t rank, char buf[WHERE_BYTES])
{
	const char *host = host_of(snap, rank);
	int32_t pid = snap->ranks[rank].pid;

	if (pid > 0)
		(void)snprintf(buf, WHERE_BYTES, " (%.64s%spid %" PRId32 ")", host,
			       *host ? ", " : "", pid);
	else
		(void)snprintf(buf, WHERE_BYTES, *host ? " (%.64s)" : "%s", host);
	return buf;
}

void cw_slow_print(FILE *out, const struct cw_snapshot *snap, const struct cw_slow_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct cw_slow *s = &list->v[i];
		const struct cw_snap_rank *r = &snap->ranks[s->rank];
		const char *name = snap->comms[s->comm].name;
		char where[WHERE_BYTES], line[512];

		(void)snprintf(
			line, sizeof(line),
			"slow: rank %d%s is late: the others waited for it in %u of %u collectives "
			"on comm %s, for %.0f ms on average and %u %% of the time (%s)",
			r->rank, where_of(snap, s->rank, where), s->n_late, s->n_ops,
			name && *name ? name : "?", (double)s->late_ns / 1e6, s->percent,
			cw_confidence_name(s->confidence));
		cw_text_sanitise_line(line);
		fprintf(out, "%s\n", line);
	}
	if (list->n)
		fprintf(out, "  the job does not hang; check the rank's input, storage, clocks and "
			     "neighbours: nvidia-smi -q -d PERFORMANCE,CLOCK\n");
}
