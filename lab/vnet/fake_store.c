/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/vnet/fake_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/bundle.h"

static const char *id_of(const json_t *incident)
{
	const char *id = json_string_value(json_object_get(incident, "id"));

	return id ? id : "";
}

void fake_store_fini(struct fake_store *s)
{
	for (unsigned i = 0; i < s->n_bundles; i++)
		json_decref(s->bundles[i].incident);
	json_decref(s->last_put);
	free(s->bundles);
	free(s->delivered);
	*s = (struct fake_store){ 0 };
}

const struct fake_store_bundle *fake_store_find(const struct fake_store *s, const char *id)
{
	for (unsigned i = 0; i < s->n_bundles; i++)
		if (!strcmp(s->bundles[i].id, id))
			return &s->bundles[i];
	return NULL;
}

/* Makes room for one more entry. *v may move. */
static int grow(void *v, size_t size, unsigned n, unsigned *cap)
{
	void *more;

	if (n < *cap)
		return 0;
	more = realloc(*(void **)v, size * (*cap ? *cap * 2 : 4));
	if (!more)
		return -ENOMEM;
	*(void **)v = more;
	*cap = *cap ? *cap * 2 : 4;
	return 0;
}

static struct fake_store_bundle *find_or_add(struct fake_store *s, const char *id)
{
	struct fake_store_bundle *b = (struct fake_store_bundle *)fake_store_find(s, id);

	if (b)
		return b;
	if (grow(&s->bundles, sizeof(*s->bundles), s->n_bundles, &s->cap_bundles) < 0)
		return NULL;
	b = &s->bundles[s->n_bundles++];
	*b = (struct fake_store_bundle){ 0 };
	(void)snprintf(b->id, sizeof(b->id), "%s", id);
	return b;
}

static int keep(struct fake_store_bundle *b, const json_t *incident)
{
	json_t *copy = json_deep_copy(incident);

	if (!copy)
		return -ENOMEM;
	json_decref(b->incident);
	b->incident = copy;
	return 0;
}

int fake_store_put(struct fake_store *s, const struct cw_bundle *bundle)
{
	struct fake_store_bundle *b = find_or_add(s, id_of(bundle->incident));

	if (!b || keep(b, bundle->incident) < 0)
		return -ENOMEM;
	s->puts++;
	b->puts++;
	b->has_stacks = json_is_object(bundle->stacks) &&
			json_integer_value(json_object_get(bundle->stacks, "awaited")) == 0;
	json_decref(s->last_put);
	s->last_put = json_incref(b->incident);
	return 0;
}

int fake_store_update_incident(struct fake_store *s, const json_t *incident)
{
	struct fake_store_bundle *b =
		(struct fake_store_bundle *)fake_store_find(s, id_of(incident));

	if (!b)
		return -ENOENT;
	b->updates++;
	return keep(b, incident);
}

bool fake_store_was_delivered(const struct fake_store *s, const char *id)
{
	for (unsigned i = 0; i < s->n_delivered; i++)
		if (!strcmp(s->delivered[i], id))
			return true;
	return false;
}

int fake_store_learn(struct fake_store *s, const char *id)
{
	if (fake_store_was_delivered(s, id))
		return 0;
	if (grow(&s->delivered, sizeof(*s->delivered), s->n_delivered, &s->cap_delivered) < 0)
		return -ENOMEM;
	(void)snprintf(s->delivered[s->n_delivered++], sizeof(*s->delivered), "%s", id);
	return 0;
}
