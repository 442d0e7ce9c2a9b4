/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names occur in their own fields, but also in sentences, and some sentences come from the kernel
 * or from NCCL. So we do not search for names. We remove everything except text that names no
 * person or machine: numbers, instants, and the words of our own sentences. own_words.py collects
 * these words from the sources. This rule makes a field safe that a later author adds.
 *
 * The first pass reads all documents and gives each content of a name field its placeholder. The
 * second pass writes all documents, and replaces each text word by word. In a sentence with sayings
 * (report/doc/said_doc.h) we change only the names among the arguments. Public names stay:
 * functions and files of PyTorch, NCCL, CUDA, Python and the C library, names of NCCL's variables,
 * and symbols of the kernel.
 */
#include "report/anonymise/anonymise.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "model/incident_list.h"
#include "report/bundle.h"
#include "report/doc/said_doc.h"
#include "report/json_util.h"
#include "say/english.h"

#include "own_words.h"

/* Our own documents are never this deep (jansson reads 2048 levels). */
#define MAX_DEPTH 4096u

struct anonymiser {
	json_t *names;  /* maps each name to its placeholder */
	json_t *public; /* an object whose keys are the public names, which stay */
	/*
	 * an object whose keys are the names of hosts, users, jobs and pods; we remove these even
	 * if our own sentences contain the same word
	 */
	json_t *masked;
	json_t *counts; /* number of placeholders of each kind */
	bool is_reading;
	int bad;
};

/* ---- words ---- */

static int compare_word(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

/* Names that programs everywhere have: they identify no one. */
static bool is_everybodys(const char *word)
{
	static const char *const everybodys[] = { "world",    "dp",       "tp",        "pp",
						  "ep",       "cp",       "module",    "lambda",
						  "listcomp", "genexpr",  "__init__",  "__call__",
						  "__next__", "__iter__", "__enter__", "__exit__",
						  "forward",  "backward", "train" };

	for (size_t i = 0; i < sizeof(everybodys) / sizeof(everybodys[0]); i++)
		if (strcmp(word, everybodys[i]) == 0)
			return true;
	return false;
}

/* "NCCL_ALGO": the values of such variables are not public. */
static bool is_nccl_variable(const char *word)
{
	return strncmp(word, "NCCL_", strlen("NCCL_")) == 0 &&
	       !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

static bool is_own_word(const char *word)
{
	char lower[64];
	size_t n = 0;

	if (is_everybodys(word) || is_nccl_variable(word))
		return true;
	for (; n < sizeof(lower) - 1 && word[n]; n++)
		lower[n] = (char)(word[n] >= 'A' && word[n] <= 'Z' ? word[n] - 'A' + 'a' : word[n]);
	lower[n] = '\0';
	return !word[n] && bsearch(lower, own_words, sizeof(own_words) / sizeof(own_words[0]),
				   sizeof(own_words[0]), compare_word);
}

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* True for a word of our sentences. It stays true if a person or machine has the same name. */
static bool is_plain_word(const char *word)
{
	for (const char *p = word; *p; p++)
		if (!is_alpha(*p))
			return false;
	return is_own_word(word);
}

/* True for a word of our own that a document may have as a value, such as "all_reduce". */
static bool is_enumerator(const char *word)
{
	return !word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_")] && is_own_word(word);
}

/*
 * Returns the bytes of the letter at p, or 0 if there is no letter. Unicode arrows, dashes and
 * blanks separate words.
 */
static size_t letter(const char *p)
{
	uint32_t c;
	size_t n;

	if (is_alpha(*p) || is_digit(*p) || (*p && strchr("_.@-", *p)))
		return 1;
	if (!((unsigned char)*p & 0x80))
		return 0;
	n = cw_text_decode(p, &c);
	if (!n)
		return 1; /* not UTF-8: the text is not ours */
	return c == 0xa0 || (c >= 0x2000 && c < 0x2c00) ? 0 : n;
}

/* ---- numbers ---- */

/* True for "31", "0-3", "2.27", "1e-5", "10s", "0x7f00", which name no person or machine. */
static bool is_number(const char *word)
{
	static const char *const units[] = { "",  "ns",  "us",  "ms",  "s", "min", "h", "d",
					     "B", "KiB", "MiB", "GiB", "x", "th",  "k", "GB" };
	const char *end = word + strspn(word, "0123456789.-");

	if (word[0] == '0' && word[1] == 'x')
		return strspn(word + 2, "0123456789abcdef") == strlen(word + 2);
	if (end == word || !strpbrk(word, "0123456789"))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i]) == 0)
			return true;
	return (*end == 'e' || *end == 'E') && strspn(end + 1, "0123456789-") == strlen(end + 1);
}

static bool is_ipv4(const char *word)
{
	unsigned dots = 0;

	for (const char *p = word; *p; p++) {
		if (!is_digit(*p) && *p != '.')
			return false;
		dots += *p == '.';
	}
	return dots == 3;
}

/*
 * Returns the length of an IPv6 or Ethernet address at the start of text, or 0 if there is none.
 * Without an address, the caller continues at *ret_end. An address that begins earlier would end at
 * the same place and have fewer colons, so there is none.
 */
static size_t colon_address(const char *text, const char **ret_end)
{
	size_t n = strspn(text, "0123456789abcdefABCDEF:");
	unsigned colons = 0;
	bool is_short = false;

	for (size_t i = 0; i < n; i++) {
		colons += text[i] == ':';
		is_short |= i && text[i] == ':' && text[i - 1] == ':';
	}
	*ret_end = text + n;
	return (colons >= 5 || (colons >= 2 && is_short)) && !letter(text + n) ? n : 0;
}

/* ---- names ---- */

/*
 * Returns the placeholder of a name. A new name gets the next placeholder of its kind. "?" = out
 * of memory.
 */
static const char *placeholder(struct anonymiser *a, const char *kind, const char *name,
			       const char *suffix)
{
	json_t *known = json_object_get(a->names, name);
	json_int_t n = cw_json_int(a->counts, kind, 0) + 1;

	if (known)
		return json_string_value(known);
	known = json_sprintf("%s-%lld%s", kind, (long long)n, suffix);
	a->bad |= json_object_set_new(a->counts, kind, json_integer(n));
	a->bad |= json_object_set_new(a->names, name, known);
	return a->bad ? "?" : json_string_value(known);
}

/* Calls fn for each word of a text. Copies the text between words to out, unless out is NULL. */
typedef void (*word_fn)(struct anonymiser *a, const char *word, const char *before, FILE *out);

static bool ends_path(char c)
{
	return !c || strchr(" \t\n\r\"'`()[]<>,;:|=", c);
}

static void put_path(struct anonymiser *a, const char *path, FILE *out);

static void each_word(struct anonymiser *a, const char *text, word_fn fn, FILE *out)
{
	_cleanup_(freep) char *copy = strdup(text), *before = strdup("");
	const char *no_address_before = copy;
	char *p = copy;

	if (!copy || !before) {
		a->bad = -1;
		return;
	}
	while (*p) {
		bool is_path = out && *p == '/' && (p == copy || ends_path(p[-1]));
		size_t n = out && p >= no_address_before ? colon_address(p, &no_address_before) : 0;
		size_t step;
		char after;

		if (n) {
			after = p[n];
			p[n] = '\0';
			fputs(placeholder(a, "address", p, ""), out);
			p += n;
			*p = after;
			continue;
		}
		if (is_path)
			while (!ends_path(p[n]))
				n++;
		else
			while ((step = letter(p + n)))
				for (; step && p[n]; step--)
					n++;
		if (!n) {
			uint32_t c;

			n = cw_text_decode(p, &c); /* bytes that are not UTF-8 count as letters */
			if (out)
				(void)fwrite(p, 1, n, out);
			p += n;
			continue;
		}
		after = p[n];
		p[n] = '\0';
		if (is_path)
			put_path(a, p, out);
		else
			fn(a, p, before, out);
		free(before);
		before = strdup(p);
		if (!before) {
			a->bad = -1;
			return;
		}
		p += n;
		*p = after;
	}
}

/*
 * Finds the bare word, without the hyphens at its start ("--option") and the full stop at its end.
 */
static char *trim(const char *word, size_t *ret_before, size_t *ret_len)
{
	size_t before = strspn(word, "-."), len = strlen(word);

	if (is_digit(word[before]))
		before = 0; /* the hyphen of "-1" is a sign */
	while (len > before && strchr(".-", word[len - 1]))
		len--;
	*ret_before = before;
	*ret_len = len - before;
	return strndup(word + before, len - before);
}

static void keep_word(struct anonymiser *a, const char *word, const char *before, FILE *out)
{
	size_t skipped, len;
	_cleanup_(freep) char *core = trim(word, &skipped, &len);

	if (!core)
		a->bad = -1;
	else if (len)
		a->bad |= json_object_set_new(a->public, core, json_true());
}

static void keep_words(struct anonymiser *a, const char *text)
{
	each_word(a, text, keep_word, NULL);
}

static bool is_masked(const struct anonymiser *a, const char *word)
{
	return json_object_get(a->masked, word);
}

static bool is_known(const struct anonymiser *a, const char *word)
{
	return !*word || (!is_masked(a, word) && (is_number(word) || is_own_word(word) ||
						  json_object_get(a->public, word)));
}

static const char *const endings[] = { ".py", ".so",   ".c",    ".cc",   ".cpp", ".cu",
				       ".h",  ".cuh",  ".json", ".yaml", ".txt", ".log",
				       ".pt", ".ckpt", ".sh",   ".bin",  ".pth" };

/* Returns the ending of a file name if it is one that shows the type of the file, otherwise "". */
static const char *ending_of(const char *base)
{
	size_t len = strlen(base);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t n = strlen(endings[i]);

		if (len > n && strcmp(base + len - n, endings[i]) == 0)
			return base + len - n;
	}
	return "";
}

/*
 * Returns the name of a file such as "train.py" or "libtorch.so" if it is public, or a placeholder
 * for it. A user's file may have the name of a word of our sentences, and is hidden all the same.
 */
static const char *base_name(struct anonymiser *a, const char *base)
{
	const char *ending = ending_of(base);
	char stem[64];

	if (json_object_get(a->public, base) && !is_masked(a, base) && !is_ipv4(base))
		return base;
	if (*ending && (size_t)(ending - base) < sizeof(stem)) {
		(void)snprintf(stem, sizeof(stem), "%.*s", (int)(ending - base), base);
		if (is_everybodys(stem) && !is_masked(a, stem))
			return base;
	}
	return placeholder(a, "file", base, ending);
}

static void put_word(struct anonymiser *a, const char *word, const char *before, FILE *out)
{
	size_t skipped, len;
	_cleanup_(freep) char *core = trim(word, &skipped, &len);
	char uid[32];
	const char *said;

	if (!core) {
		a->bad = -1;
		return;
	}
	(void)snprintf(uid, sizeof(uid), "\tuid %.20s", core);
	said = json_string_value(json_object_get(a->names, core));
	if (strcasecmp(before, "uid") == 0 && is_number(core) && strcmp(core, "0") != 0)
		said = placeholder(a, "user", uid, "") + strlen("user-");
	else if (is_ipv4(core))
		said = placeholder(a, "address", core, "");
	else if ((is_plain_word(core) && !is_masked(a, core)) || (!said && is_known(a, core)))
		said = core;
	else if (!said)
		said = *ending_of(core) ? base_name(a, core) : placeholder(a, "name", core, "");
	fprintf(out, "%.*s%s%s", (int)skipped, word, said, word + skipped + len);
}

/* ---- paths and frames ---- */

/* Returns the part of a path that is public, because every installation of the package has it. */
static const char *public_part(const char *path)
{
	static const char *const packages[] = {
		"torch/",      "torchrun",   "numpy/",       "nvidia/",
		"triton/",     "deepspeed/", "megatron/",    "transformers/",
		"accelerate/", "lightning/", "mpi4py/",      "jax/",
		"jaxlib/",     "cupy/",      "torchvision/", "transformer_engine/",
		"collwatch/"
	};
	const char *at = strstr(path, "-packages/");
	const char *lib = strstr(path, "/lib/python3.");

	if (strncmp(path, "<frozen ", 8) == 0)
		return path;
	for (size_t i = 0; at && i < sizeof(packages) / sizeof(packages[0]); i++)
		if (strncmp(at + strlen("-packages/"), packages[i], strlen(packages[i])) == 0)
			return at + strlen("-packages/");
	return lib && !at ? lib + 1 : NULL;
}

static bool is_public_module(const char *module)
{
	static const char *const libraries[] = {
		"_ctypes.",     "libc.so",   "libc-",       "libpthread", "ld-linux",
		"libstdc++.",   "libgcc_s.", "libpython3.", "libffi.",    "libnccl",
		"libcud",       "libcu",     "libnv",       "libtorch",   "libc10",
		"libcollwatch", "libgomp.",  "libmpi.",     "libmlx5",    "libfabric.",
		"libucp.",      "libuct.",   "[vdso]",      "[kernel]",   "libibverbs."
	};
	const char *base = cw_text_base_name(module);

	if (strncmp(base, "python3", 7) == 0)
		return !base[7 + strspn(base + 7, "0123456789.")];
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (strncmp(base, libraries[i], strlen(libraries[i])) == 0)
			return !strpbrk(base, " \t\n");
	return false;
}

static void put_path(struct anonymiser *a, const char *path, FILE *out)
{
	const char *shared = public_part(path), *base = cw_text_base_name(path);
	_cleanup_(freep) char *dir = strndup(path, (size_t)(base - path));

	if (!dir) {
		a->bad = -1;
	} else if (shared) {
		fputs(shared, out);
	} else {
		if (strcmp(dir, "/") == 0)
			fputs(dir, out);
		else if (*dir)
			fprintf(out, "%s%s/", *dir == '/' ? "/" : "",
				placeholder(a, "path", dir, ""));
		fputs(*base ? base_name(a, base) : "", out);
	}
}

/* Reads a frame of evidence or of merged stacks. */
static void read_frame(struct anonymiser *a, const json_t *object)
{
	const char *module = cw_json_str(object, "module", ""), *name;
	const char *file = cw_json_str(object, "file", "");

	name = cw_json_str(object, "function", cw_json_str(object, "symbol", NULL));
	if (!name && (*file || *module))
		name = cw_json_str(object, "name", NULL);
	if (!name)
		return;
	if (is_public_module(module) || (!*module && public_part(file))) {
		keep_words(a, name);
		keep_words(a, cw_text_base_name(file));
		keep_words(a, cw_text_base_name(module));
	} else if (strlen(name) < 512 && !is_known(a, name)) {
		(void)placeholder(a, "function", name, "");
	}
}

/* ---- fields ---- */

enum rule {
	RULE_TEXT,
	RULE_NAME,  /* the whole string is a name */
	RULE_LABEL, /* a name; a label that consists of our own words stays: "world" */
	RULE_JOB,   /* "slurm:4711": the part before the colon is ours */
	RULE_LINE,  /* a command line; our own command lines stay */
	RULE_PATH,
	RULE_KERNEL, /* symbols of the kernel */
	RULE_MODEL,  /* model of a device */
	RULE_OWN,    /* our own names, which stay: letters and underscores */
	RULE_ID,     /* the id of an incident */
	RULE_SCHEMA,
};

struct field {
	const char *key;
	enum rule rule;
	const char *kind;
	const char *under; /* the rule applies only inside an array of this name; NULL = anywhere */
};

/* clang-format off */
#define FIELD(form, type, name, key, presence, secrecy, ...) FIELD_##secrecy(key)
#define FIELD_NONE(key)
#define FIELD_WORDS(key)
#define FIELD_SCHEMA(key) { key, RULE_SCHEMA, "schema", NULL },
#define FIELD_ID(key) { key, RULE_ID, "id", NULL },
#define FIELD_LINE(key) { key, RULE_LINE, "command", NULL },
#define FIELD_PATH(key) { key, RULE_PATH, NULL, NULL },
#define FIELD_NODE(key) { key, RULE_NAME, "node", NULL },
#define FIELD_POD(key) { key, RULE_NAME, "pod", NULL },
#define FIELD_NAMESPACE(key) { key, RULE_NAME, "namespace", NULL },
#define FIELD_CONTAINER(key) { key, RULE_NAME, "container", NULL },
#define FIELD_USER(key) { key, RULE_NAME, "user", NULL },
#define FIELD_JOB(key) { key, RULE_JOB, "job", NULL },
#define FIELD_COMM(key) { key, RULE_LABEL, "comm", NULL },
#define FIELD_COMM_GROUP(key) { key, RULE_LABEL, "group", NULL },
#define FIELDS(group, FACTS, title) FACTS(FIELD)
/* clang-format on */

/* First come the facts of incidents, then the fields of other documents. */
static const struct field fields[] = {
	CW_INCIDENT_GROUPS(FIELDS){ "name", RULE_NAME, "node", "nodes" },
	{ "name", RULE_LABEL, "comm", "comms" },
	{ "hosts", RULE_NAME, "node", NULL },
	{ "nodes", RULE_NAME, "node", NULL },
	{ "silent", RULE_NAME, "node", NULL },
	{ "cause_command", RULE_NAME, "command", NULL },
	{ "cause_group", RULE_PATH, NULL, NULL },
	{ "cgroup", RULE_PATH, NULL, NULL },
	{ "path", RULE_PATH, NULL, NULL },
	{ "file", RULE_PATH, NULL, NULL },
	{ "module", RULE_PATH, NULL, NULL },
	{ "source", RULE_PATH, NULL, NULL },
	{ "kernel_stack", RULE_KERNEL, NULL, NULL },
	{ "wchan", RULE_KERNEL, NULL, NULL },
	{ "syscall", RULE_KERNEL, NULL, NULL },
	{ "columns", RULE_OWN, NULL, NULL },
	{ "device_model", RULE_MODEL, "device", NULL },
};

static const struct field *field_of(const char *key, const char *under)
{
	static const struct field any = { "", RULE_TEXT, NULL, NULL };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(fields[i].key, key) == 0 &&
		    (!fields[i].under || strcmp(fields[i].under, under) == 0))
			return &fields[i];
	return &any;
}

/* True if a word of the text is a name or is not one of our own words. */
static bool has_stranger(const struct anonymiser *a, const char *text)
{
	char word[64];
	size_t n = 0;

	for (;; text++) {
		/* our words are ASCII, so a longer letter belongs to a name */
		size_t step = letter(text);

		if (step > 1 || n >= sizeof(word) - 1)
			return true;
		if (step) {
			word[n++] = *text;
			continue;
		}
		word[n] = '\0';
		if (n && !is_known(a, word))
			return true;
		n = 0;
		if (!*text)
			return false;
	}
}

/*
 * True if the text consists only of the characters in `letters`. A kernel symbol or incident id of
 * another form may hide a name.
 */
static bool is_of_letters(const char *text, const char *letters)
{
	return *text && !text[strspn(text, letters)];
}

#define MODEL_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .-"

/* True if a word of the text is a name that another field has shown. */
static bool has_name(const struct anonymiser *a, const char *text)
{
	char word[64];

	for (size_t n; *text; text += n + (text[n] == ' ')) {
		n = strcspn(text, " ");
		if (n >= sizeof(word))
			return true;
		(void)snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (json_object_get(a->names, word))
			return true;
	}
	return false;
}

/*
 * True for the names that NVIDIA's driver gives devices; a hostile record may contain any
 * text here.
 */
static bool is_model(const struct anonymiser *a, const char *text)
{
	static const char *const series[] = { "NVIDIA ", "Tesla ", "Quadro ", "GeForce ", "GRID " };
	bool is_one = false;

	for (size_t i = 0; i < sizeof(series) / sizeof(series[0]); i++)
		is_one = is_one || strncmp(text, series[i], strlen(series[i])) == 0;
	return is_one && is_of_letters(text, MODEL_LETTERS) && strpbrk(text, "0123456789") &&
	       !has_name(a, text);
}

#define KERNEL_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."

/*
 * Removes this name from sentences too. Otherwise the name of a host called "leader" would stay,
 * because "leader" is one of our own words. Labels of communicators and groups are exempt: "world"
 * and "data" occur in many sentences and identify no machine or person. The user root is exempt,
 * because every machine has it.
 */
static void mask(struct anonymiser *a, const char *name)
{
	if (strcmp(name, "root") != 0)
		a->bad |= json_object_set_new(a->masked, name, json_true());
}

static void read_text(struct anonymiser *a, const struct field *field, const char *text)
{
	const char *colon = strchr(text, ':'), *known;

	switch (field->rule) {
	case RULE_LABEL:
		if (has_stranger(a, text))
			(void)placeholder(a, field->kind, text, "");
		return;
	case RULE_NAME:
		if (*text) {
			(void)placeholder(a, field->kind, text, "");
			mask(a, text);
		}
		return;
	case RULE_JOB:
		known = colon ? colon + 1 : text;
		if (*known && (!is_number(known) || strlen(known) >= 4)) {
			(void)placeholder(a, "job", known, "");
			mask(a, known);
		}
		return;
	case RULE_KERNEL:
		if (is_of_letters(text, KERNEL_LETTERS))
			keep_words(a, text);
		return;
	case RULE_ID:
		if (is_of_letters(text, "0123456789abcdef") && strlen(text) >= 16)
			keep_words(a, text);
		return;
	default:
		return;
	}
}

/*
 * True for a schema name such as "incident/1": one of our words, a slash and a number. It stays
 * true if a host has the same name.
 */
static bool is_schema(const char *text)
{
	char word[24];

	(void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(text, "/"), text);
	return is_plain_word(word) && strcmp(text + strlen(word), "/1") == 0;
}

static void put_text(struct anonymiser *a, const struct field *field, const char *text, FILE *out)
{
	const char *known = json_string_value(json_object_get(a->names, text));
	const char *colon = strchr(text, ':');

	switch (field->rule) {
	case RULE_NAME:
		fputs(*text && known ? known : "", out);
		return;
	case RULE_LABEL:
		if (is_everybodys(text))
			known = text;
		if (!known && has_stranger(a, text))
			known = placeholder(a, field->kind, text, "");
		fputs(known ? known : text, out);
		return;
	case RULE_MODEL:
		fputs(!*text || is_model(a, text) ? text : placeholder(a, field->kind, text, ""),
		      out);
		return;
	case RULE_JOB:
		if (colon) {
			char source[32];

			(void)snprintf(source, sizeof(source), "%.*s", (int)(colon - text), text);
			fprintf(out, "%s:", is_plain_word(source) ? source : "job");
			text = colon + 1;
		}
		known = json_string_value(json_object_get(a->names, text));
		fputs(known ? known : is_number(text) ? text : "", out);
		return;
	case RULE_LINE:
		if (strncmp(text, "collwatch ", 10) != 0) {
			fputs(*text ? placeholder(a, field->kind, text, "") : "", out);
			return;
		}
		break;
	case RULE_PATH:
		put_path(a, text, out);
		return;
	case RULE_KERNEL:
		/* A host may be called like a function of the kernel, which is no secret. */
		if (is_of_letters(text, KERNEL_LETTERS)) {
			fputs(text, out);
			return;
		}
		break;
	case RULE_SCHEMA:
		if (strncmp(text, "collwatch.", 10) == 0 && text[strlen(text) - 1] == '1' &&
		    strlen(text) < 24 && is_schema(text + 10)) {
			fputs(text, out);
			return;
		}
		break;
	case RULE_OWN:
		if (is_of_letters(text, "abcdefghijklmnopqrstuvwxyz0123456789_") &&
		    strlen(text) < 16 && !known) {
			fputs(text, out);
			return;
		}
		break;
	case RULE_TEXT:
		/*
		 * We keep a text that is one of our own words. It is an enumerator such as
		 * "unknown", which readers of the document need.
		 */
		if (is_enumerator(text)) {
			fputs(text, out);
			return;
		}
		if (known) {
			fputs(known, out); /* the full name of a C++ function */
			return;
		}
		break;
	default:
		break;
	}
	each_word(a, text, put_word, out);
}

static json_t *new_text(struct anonymiser *a, const struct field *field, const char *text)
{
	char *buf = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&buf, &len);
	json_t *value;

	if (!out)
		return NULL;
	if (cw_wall_parse(text) >= 0)
		fputs(text, out);
	else
		put_text(a, field, text, out);
	value = fclose(out) == 0 && buf ? cw_json_text(buf) : NULL;
	free(buf);
	return value;
}

/* Returns a new reference to the replacement of value. The reading pass returns value itself. */
static json_t *visit(struct anonymiser *a, json_t *value, const char *key, const char *under,
		     unsigned depth);

/* ---- sentences whose names are known ---- */

static const char *new_name(struct anonymiser *a, struct cw_arena *arena, const char *key,
			    const char *name)
{
	json_t *value = new_text(a, field_of(key, ""), name);
	const char *copy = cw_arena_strdup(arena, json_string_value(value));

	json_decref(value);
	if (!copy)
		a->bad = -1;
	return copy ? copy : "";
}

static void rename_clause(struct anonymiser *a, const struct cw_clause *clause);

/*
 * Renames the hosts in a new list, because several arguments may share the old list. If memory runs
 * out, the list of hosts becomes empty.
 */
static void rename_hosts(struct anonymiser *a, struct cw_arena *arena, struct cw_arg *arg)
{
	const char **names = cw_arena_new_array(arena, const char *, arg->hosts.n);

	if (!names)
		a->bad = -1;
	for (uint32_t i = 0; names && i < arg->hosts.n; i++)
		names[i] = new_name(a, arena, "host", arg->hosts.names[i]);
	arg->hosts.names = names;
	if (!names)
		arg->hosts.n = 0;
}

static void rename_arg(struct anonymiser *a, struct cw_arena *arena, struct cw_arg *arg)
{
	switch (arg->kind) {
	case CW_ARG_HOST:
		arg->text = new_name(a, arena, "host", arg->text);
		break;
	case CW_ARG_HOSTS:
		rename_hosts(a, arena, arg);
		break;
	case CW_ARG_PROCESS:
		arg->process.host = new_name(a, arena, "host", arg->process.host);
		arg->process.pod = new_name(a, arena, "pod", arg->process.pod);
		arg->process.pod_namespace =
			new_name(a, arena, "pod_namespace", arg->process.pod_namespace);
		break;
	case CW_ARG_COMM:
		arg->comm.name = new_name(a, arena, "comm_name", arg->comm.name);
		break;
	case CW_ARG_ERROR:
		arg->error.text = new_name(a, arena, "text", arg->error.text);
		break;
	case CW_ARG_TEXT:
		arg->text = new_name(a, arena, "text", arg->text);
		break;
	case CW_ARG_CLAUSE:
		rename_clause(a, arg->clause);
		break;
	default:
		break;
	}
}

/* Renames the arguments in place. The document stays unchanged, because the clause is a copy. */
static void rename_clause(struct anonymiser *a, const struct cw_clause *clause)
{
	for (uint32_t i = 0; i < clause->n; i++)
		for (uint32_t k = 0; k < clause->said[i].n_args; k++)
			rename_arg(a, clause->arena, (struct cw_arg *)&clause->said[i].args[k]);
}

/*
 * Replaces the names in the sayings `said`, and makes the text anew. Returns false, and sets
 * nothing, if we do not know one of the sayings.
 */
static bool rename_sentence(struct anonymiser *a, const json_t *said, json_t **ret_text,
			    json_t **ret_said)
{
	struct cw_arena arena = { 0 };
	struct cw_clause clause = { .arena = &arena };
	char text[CW_SAID_TEXT_MAX];
	int r = cw_said_read(said, &clause);

	if (r == -ENOMEM)
		a->bad = -1;
	if (r == 0) {
		rename_clause(a, &clause);
		*ret_text = cw_json_text(cw_say_text(&clause, text, sizeof(text)));
		*ret_said = cw_said_doc(&clause);
	}
	cw_arena_fini(&arena);
	return r == 0;
}

/* Writes the key without its suffix "_said", or "" for a key without that suffix. */
static void text_key(const char *key, char *buf, size_t len)
{
	size_t n = strlen(key), suffix = strlen(CW_SAID_SUFFIX);

	buf[0] = '\0';
	if (n > suffix && n - suffix < len && strcmp(key + n - suffix, CW_SAID_SUFFIX) == 0)
		(void)snprintf(buf, len, "%.*s", (int)(n - suffix), key);
}

/* Replaces the texts of a list and the list of sayings of each text. */
static void rename_list(struct anonymiser *a, json_t *texts, json_t *said, const json_t *before)
{
	for (size_t i = 0; i < json_array_size(texts) && i < json_array_size(said); i++) {
		json_t *text = NULL, *renamed = NULL;

		if (!rename_sentence(a, json_array_get(before, i), &text, &renamed))
			continue;
		a->bad |= json_array_set_new(texts, i, text);
		a->bad |= json_array_set_new(said, i, renamed);
	}
}

/*
 * Makes the object's sentences anew from the sayings that the object had before we replaced words.
 * A text without known sayings keeps its replaced words.
 */
static void rename_sentences(struct anonymiser *a, json_t *object, const json_t *before)
{
	for (void *iter = json_object_iter((json_t *)before); iter;
	     iter = json_object_iter_next((json_t *)before, iter)) {
		const char *key = json_object_iter_key(iter);
		const json_t *said = json_object_iter_value(iter);
		json_t *text = NULL, *renamed = NULL;
		char of[64];

		text_key(key, of, sizeof(of));
		if (json_is_array(json_object_get(object, of))) {
			rename_list(a, json_object_get(object, of), json_object_get(object, key),
				    said);
		} else if (rename_sentence(a, said, &text, &renamed)) {
			a->bad |= json_object_set_new(object, of, text);
			a->bad |= json_object_set_new(object, key, renamed);
		}
	}
}

/* Returns an object with copies of the members that hold sayings. NULL = there are none. */
static json_t *sayings_of(struct anonymiser *a, json_t *object)
{
	json_t *sayings = NULL;
	char of[64];

	for (void *iter = json_object_iter(object); iter;
	     iter = json_object_iter_next(object, iter)) {
		text_key(json_object_iter_key(iter), of, sizeof(of));
		if (!*of)
			continue;
		if (!sayings)
			sayings = json_object();
		a->bad |= json_object_set_new(sayings, json_object_iter_key(iter),
					      json_deep_copy(json_object_iter_value(iter)));
	}
	return sayings;
}

static void visit_object(struct anonymiser *a, json_t *object, const char *under, unsigned depth)
{
	json_t *sayings = NULL;
	void *iter;

	if (a->is_reading)
		read_frame(a, object);
	else
		sayings = sayings_of(a, object);
	for (iter = json_object_iter(object); iter; iter = json_object_iter_next(object, iter))
		a->bad |= json_object_iter_set_new(object, iter,
						   visit(a, json_object_iter_value(iter),
							 json_object_iter_key(iter), under, depth));
	if (sayings && !a->bad)
		rename_sentences(a, object, sayings);
	json_decref(sayings);
}

static json_t *visit(struct anonymiser *a, json_t *value, const char *key, const char *under,
		     unsigned depth)
{
	char uid[32];
	size_t i;

	if (depth > MAX_DEPTH) {
		a->bad = -1;
	} else if (json_is_object(value)) {
		visit_object(a, value, key, depth + 1);
	} else if (json_is_array(value)) {
		for (i = 0; i < json_array_size(value); i++)
			a->bad |= json_array_set_new(
				value, i,
				visit(a, json_array_get(value, i), key, under, depth + 1));
	} else if (json_is_string(value) && a->is_reading) {
		read_text(a, field_of(key, under), json_string_value(value));
	} else if (json_is_string(value)) {
		return new_text(a, field_of(key, under), json_string_value(value));
	} else if (json_is_integer(value) && strcmp(key, "uid") == 0 &&
		   json_integer_value(value) > 0 && !a->is_reading) {
		(void)snprintf(uid, sizeof(uid), "\tuid %lld",
			       (long long)json_integer_value(value));
		return json_integer(atoll(placeholder(a, "user", uid, "") + strlen("user-")));
	}
	return json_incref(value);
}

int cw_anonymise(json_t *const *docs, size_t n)
{
	struct anonymiser a = {
		.names = json_object(),
		.public = json_object(),
		.counts = json_object(),
		.masked = json_object(),
	};

	a.bad = a.names && a.public && a.counts && a.masked ? 0 : -1;
	for (int pass = 0; pass < 2; pass++) {
		a.is_reading = pass == 0;
		for (size_t i = 0; i < n && !a.bad; i++)
			json_decref(visit(&a, docs[i], "", "", 0));
	}
	json_decref(a.names);
	json_decref(a.public);
	json_decref(a.counts);
	json_decref(a.masked);
	return a.bad ? -ENOMEM : 0;
}

int cw_anonymise_bundle(struct cw_bundle *bundle)
{
	int r = cw_bundle_parse_texts(bundle);
	json_t *const docs[] = { bundle->incident,        bundle->evidence,
				 bundle->stacks,          bundle->ops,
				 bundle->summaries,       bundle->snapshot,
				 bundle->remote_summaries };

	return r < 0 ? r : cw_anonymise(docs, sizeof(docs) / sizeof(docs[0]));
}
