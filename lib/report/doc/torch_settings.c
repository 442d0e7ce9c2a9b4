/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We list only variables that are set, because PyTorch's defaults differ between versions.
 * ProcessGroupNCCL.hpp and FlightRecorder.hpp (pytorch/pytorch) explain each one. We decide that a
 * value turns a feature off in the same way as getCvarBool() and getCvarInt() there.
 */
#include "report/doc/torch_settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "model/rankset.h"
#include "report/doc/doc_phrase.h"
#include "report/json_util.h"

static bool is_one_of(const char *value, const char *const *words)
{
	for (; *words; words++)
		if (strcasecmp(value, *words) == 0)
			return true;
	return false;
}

static bool is_off(const char *value)
{
	static const char *const words[] = { "0", "n", "no", "f", "false", NULL };

	return is_one_of(value, words);
}

static bool is_on(const char *value)
{
	static const char *const words[] = { "1", "y", "yes", "t", "true", NULL };

	return is_one_of(value, words);
}

static bool is_any(const char *value)
{
	return *value != '\0';
}

#define NO_RECORDER                                                                                \
	"PyTorch's Flight Recorder is off, so no dump can show the calls; with 2000 it keeps the " \
	"last 2,000 calls"
#define NO_END "PyTorch's watchdog does not end the job when a call takes longer than its time-out"
#define HOST_WAITS                                                                                 \
	"each wait for a collective blocks its thread until the call is done, and a time-out is "  \
	"raised in that thread"
#define DUMPS_TO                                                                                   \
	"prefix of the files with Flight Recorder dumps; \"collwatch analyze --flight-recorder\" " \
	"reads them"
#define NOT_READ                                                                                   \
	"neither PyTorch nor NCCL reads this variable; the program sets the time-out for its "     \
	"process groups"

/* Explanations for particular values; other settings appear without one. */
static const struct meaning {
	const char *name;
	bool (*applies)(const char *value);
	const char *what;
} meanings[] = {
	{ "TORCH_FR_BUFFER_SIZE", is_off, NO_RECORDER },
	{ "TORCH_NCCL_TRACE_BUFFER_SIZE", is_off, NO_RECORDER },
	{ "TORCH_NCCL_DUMP_ON_TIMEOUT", is_off,
	  "PyTorch writes no dump of its Flight Recorder when a call takes too long; with 1 it "
	  "does" },
	{ "TORCH_NCCL_ASYNC_ERROR_HANDLING", is_off, NO_END },
	{ "NCCL_ASYNC_ERROR_HANDLING", is_off, NO_END },
	{ "TORCH_NCCL_ENABLE_MONITORING", is_off,
	  "PyTorch does not end a rank whose watchdog is stuck" },
	{ "TORCH_NCCL_BLOCKING_WAIT", is_on, HOST_WAITS },
	{ "NCCL_BLOCKING_WAIT", is_on, HOST_WAITS },
	/*
	 * Many public scripts set these variables, but PyTorch does not read them: the watchdog
	 * still ends their jobs after 600 s.
	 */
	{ "NCCL_TIMEOUT", is_any, NOT_READ },
	{ "TORCH_DISTRIBUTED_TIMEOUT", is_any, NOT_READ },
	{ "TORCH_NCCL_TIMEOUT", is_any, NOT_READ },
	{ "TORCH_NCCL_TIMEOUT_S", is_any, NOT_READ },
	{ "TORCH_NCCL_TIMEOUT_SEC", is_any, NOT_READ },
	{ "TORCH_FR_DUMP_TEMP_FILE", is_any, DUMPS_TO },
	{ "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", is_any, DUMPS_TO },
	{ "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", is_any,
	  "seconds that a watchdog may be stuck before PyTorch ends its rank" },
};

/* Returns an explanation of the setting, or NULL if we have none. */
static const char *meaning_of(const char *setting)
{
	size_t len = strcspn(setting, "=");

	for (size_t i = 0; setting[len] && i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strlen(meanings[i].name) == len &&
		    memcmp(meanings[i].name, setting, len) == 0 &&
		    meanings[i].applies(setting + len + 1))
			return meanings[i].what;
	return NULL;
}

/* A setting, and the ranks that have it. */
struct entry {
	const char *setting; /* borrowed from the evidence */
	int32_t *ranks;
	size_t n_ranks;
};

struct all_entries {
	struct entry v[CW_TORCH_SETTINGS_MAX];
	size_t n;
};

static void all_entries_fini(struct all_entries *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->v[i].ranks);
}

/*
 * Adds a rank to the setting's list, which has room for n_ranks. We omit settings beyond the limit.
 * Returns 0, or -1 if out of memory.
 */
static int add(struct all_entries *all, const char *setting, int32_t rank, size_t n_ranks)
{
	size_t i = 0;

	while (i < all->n && strcmp(all->v[i].setting, setting) != 0)
		i++;
	if (i == CW_TORCH_SETTINGS_MAX)
		return 0;
	if (i == all->n) {
		all->v[i] = (struct entry){ .setting = setting };
		all->v[i].ranks = calloc(n_ranks, sizeof(int32_t));
		if (!all->v[i].ranks)
			return -1;
		all->n++;
	}
	/* A document may name one rank twice. */
	if (all->v[i].n_ranks < n_ranks)
		all->v[i].ranks[all->v[i].n_ranks++] = rank;
	return 0;
}

static int collect(const json_t *evidence, struct all_entries *all)
{
	json_t *process, *setting;
	size_t i, k;

	json_array_foreach (evidence, i, process) {
		json_int_t rank = cw_json_int(process, "rank", -1);
		const json_t *list =
			json_object_get(json_object_get(process, "proc"), "torch_settings");

		json_array_foreach (list, k, setting)
			if (json_is_string(setting) && rank >= 0 && rank <= INT32_MAX &&
			    add(all, json_string_value(setting), (int32_t)rank,
				json_array_size(evidence)) < 0)
				return -1;
	}
	return 0;
}

static json_t *sentence(const struct entry *entry)
{
	_cleanup_(freep) char *set = cw_rankset_format_alloc(entry->ranks, entry->n_ranks);
	const char *what = meaning_of(entry->setting);
	char text[1024];

	if (!set)
		return NULL;
	(void)snprintf(text, sizeof(text), "%.200s (%s %.400s)%s%s", entry->setting,
		       phrase_is_many(set) ? "ranks" : "rank", set, what ? ": " : "",
		       what ? what : "");
	return cw_json_text(text);
}

json_t *cw_torch_setting_sentences(const json_t *evidence)
{
	_cleanup_(all_entries_fini) struct all_entries all = { 0 };
	json_t *list = json_array();
	int bad = collect(evidence, &all);

	for (int with = 1; with >= 0; with--)
		for (size_t i = 0; i < all.n; i++)
			if ((meaning_of(all.v[i].setting) != NULL) == with)
				bad |= json_array_append_new(list, sentence(&all.v[i]));
	return cw_json_finish(list, bad);
}
