/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the post-mortem of a failed job, for which no alert is sent. We search the state directory
 * of the leader's node. The post-mortem has its own bundle, or has joined the incident of an
 * earlier alert.
 */
#include <dirent.h>
#include <event2/event.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "lab/demo/demo.h"

#define LOOK_EVERY_US 200000

/* Ends the demo with this bundle if it contains a post-mortem. */
static void look_at(struct demo *demo, const char *path)
{
	_cleanup_(cw_bundle_fini) struct cw_bundle bundle = { 0 };

	if (cw_bundle_read(path, &bundle, NULL) < 0 || !json_object_get(bundle.incident, "ends"))
		return; /* the daemon may still be writing the bundle */
	demo->incident = json_incref(bundle.incident);
	demo->alert_ns = cw_clock_now_ns(&cw_clock_system);
	snprintf(demo->bundle, sizeof(demo->bundle), "%s", path);
	demo_end(demo, DEMO_ALERT);
}

static void look_in(struct demo *demo, const struct demo_node *node)
{
	char dir[PATH_MAX], path[PATH_MAX * 2];
	const struct dirent *entry;
	DIR *bundles;

	snprintf(dir, sizeof(dir), "%s/state/incidents", node->dir);
	bundles = opendir(dir);
	while (bundles && !demo->incident && (entry = readdir(bundles))) {
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (entry->d_name[0] != '.')
			look_at(demo, path);
	}
	if (bundles)
		closedir(bundles);
}

static void on_look(evutil_socket_t fd, short what, void *user)
{
	struct demo *demo = user;

	for (int i = 0; i < demo->opts.run.nodes && !demo->incident; i++)
		look_in(demo, &demo->nodes[i]);
}

void demo_postmortem_await(struct demo *demo)
{
	const struct timeval often = { .tv_usec = LOOK_EVERY_US };

	if (demo->look)
		return;
	demo->look = event_new(demo->base, -1, EV_PERSIST, on_look, demo);
	if (!demo->look || event_add(demo->look, &often) < 0)
		demo_end(demo, DEMO_FAILED);
}
