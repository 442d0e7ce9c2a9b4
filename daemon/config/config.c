/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config.h"

#include <confuse.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/address.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/parse.h"
#include "daemon/config/config_values.h"
#include "transport/secret.h"

/*
 * Receives the first error of the current parse. It is global, because libconfuse passes no user
 * pointer to its error function. A process has only one libconfuse lexer anyway. Only
 * cw_config_parse() sets it.
 */
static struct cw_err *parse_err;
static const char *parse_path;

__attribute__((format(printf, 2, 0))) static void on_parse_error(cfg_t *cfg, const char *fmt,
								 va_list ap)
{
	char text[400];

	if (!parse_err || parse_err->text[0])
		return; /* ignore later errors, because they follow from the first one */
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)cw_err_set(parse_err, EINVAL, "%s:%d: %s", parse_path, cfg->line, text);
}

static const struct cw_config_key *find_key(const char *name)
{
	for (unsigned i = 0; i < cw_config_n_keys; i++)
		if (!strcmp(cw_config_keys[i].name, name))
			return &cw_config_keys[i];
	return NULL;
}

/* ---- one value: from its text to its field, with all checks of the text ---- */

static int64_t parse_bound(const struct cw_config_key *key, const char *text)
{
	uint64_t bytes = 0;
	int64_t ns = 0;

	if (key->type == CW_CONFIG_COUNT)
		return cw_parse_i64(text, 0, INT64_MAX, &ns) < 0 ? 0 : ns;
	if (key->type == CW_CONFIG_BYTES)
		return cw_parse_bytes(text, &bytes) < 0 ? 0 : (int64_t)bytes;
	return cw_parse_duration_ns(text, &ns) < 0 ? 0 : ns;
}

static int not_a_number(const struct cw_config_key *key, const char *text, struct cw_err *err)
{
	if (key->type == CW_CONFIG_COUNT)
		return cw_err_set(err, EINVAL, "%s: '%s' is not a number (like %s)", key->name,
				  text, key->initial);
	return cw_err_set(err, EINVAL, "%s: '%s' is not a %s with its unit (like %s)", key->name,
			  text, key->type == CW_CONFIG_BYTES ? "size" : "duration", key->initial);
}

static int parse_number(const struct cw_config_key *key, const char *text, int64_t *ret,
			struct cw_err *err)
{
	uint64_t bytes = 0;
	int64_t v;
	int r;

	if (key->type == CW_CONFIG_BYTES) {
		r = cw_parse_bytes(text, &bytes);
		if (r >= 0 && bytes > INT64_MAX)
			r = -ERANGE;
		v = (int64_t)bytes;
	} else if (key->type == CW_CONFIG_COUNT) {
		r = cw_parse_i64(text, 0, INT64_MAX, &v);
	} else {
		r = cw_parse_duration_ns(text, &v);
	}
	if (r < 0 && r != -ERANGE)
		return not_a_number(key, text, err);
	if (r < 0 || v < parse_bound(key, key->min) || v > parse_bound(key, key->max))
		return cw_err_set(err, EINVAL, "%s: '%s' is not between %s and %s", key->name, text,
				  key->min, key->max);
	*ret = v;
	return 0;
}

static int check_choice(const struct cw_config_key *key, const char *text, struct cw_err *err)
{
	size_t len = strlen(text);

	for (const char *p = key->choices; *p; p += *p == '|') {
		size_t n = strcspn(p, "|");

		if (n == len && !strncmp(p, text, n))
			return 0;
		p += n;
	}
	return cw_err_set(err, EINVAL, "%s: '%s' is not one of %s", key->name, text, key->choices);
}

static int check_string(const struct cw_config_key *key, const char *text, struct cw_err *err)
{
	struct cw_address address;
	int r;

	if (!*text && key->type != CW_CONFIG_CHOICE)
		return 0; /* an empty text means that the key has no value */
	switch (key->type) {
	case CW_CONFIG_NAME:
		if (!cw_node_name_is_valid(text, strlen(text)))
			return cw_err_set(err, EINVAL,
					  "%s: '%s' has a character that is not allowed: use "
					  "letters, digits, '.', '-' and '_'",
					  key->name, text);
		return 0;
	case CW_CONFIG_PATH:
		if (*text != '/')
			return cw_err_set(err, EINVAL, "%s: '%s' is not an absolute path",
					  key->name, text);
		return 0;
	case CW_CONFIG_URL:
		if (strncmp(text, "http://", 7) && strncmp(text, "https://", 8))
			return cw_err_set(err, EINVAL, "%s: must start with http:// or https://",
					  key->name);
		return 0;
	case CW_CONFIG_ADDRESS:
		r = cw_address_parse(text, &address, err);
		if (r >= 0 && !address.len)
			r = cw_err_set(err, EINVAL,
				       "%s: '%s' is a host name: give a numeric address", key->name,
				       text);
		return r;
	case CW_CONFIG_HOST:
		r = cw_address_parse(text, &address, err);
		if (r >= 0 && address.len)
			r = cw_err_set(err, EINVAL,
				       "%s: '%s' is an address: give a host name, or list the "
				       "addresses in peers",
				       key->name, text);
		return r;
	case CW_CONFIG_CHOICE:
		return check_choice(key, text, err);
	default:
		return 0;
	}
}

static int set_string(char **field, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int set_secret(char **field, const char *text)
{
	char *copy = cw_secret_strdup(text);

	if (!copy)
		return -ENOMEM;
	cw_secret_free(*field);
	*field = copy;
	return 0;
}

void cw_config_free_string(const struct cw_config_key *key, char **field)
{
	if (key->type == CW_CONFIG_URL)
		cw_secret_free(*field);
	else
		free(*field);
	*field = NULL;
}

static int set_value(struct cw_config *c, const struct cw_config_key *key, const char *text,
		     struct cw_err *err)
{
	void *field = (char *)c + key->offset;
	int64_t level;
	int r;

	switch (key->type) {
	case CW_CONFIG_DURATION:
	case CW_CONFIG_BYTES:
	case CW_CONFIG_COUNT:
		return parse_number(key, text, field, err);
	case CW_CONFIG_LEVEL:
		level = cw_log_level_from_name(text);
		if (level < 0)
			return cw_err_set(err, EINVAL, "%s: there is no log level '%s'", key->name,
					  text);
		*(int64_t *)field = level;
		return 0;
	default:
		r = check_string(key, text, err);
		if (r < 0)
			return r;
		return key->type == CW_CONFIG_URL ? set_secret(field, text)
						  : set_string(field, text);
	}
}

/* ---- peers ---- */

static int check_peer(const char *text, struct cw_err *err)
{
	const char *eq = strchr(text, '=');
	struct cw_address address;
	int r;

	if (!eq || !cw_node_name_is_valid(text, (size_t)(eq - text)))
		return cw_err_set(err, EINVAL,
				  "peers: '%s' is not of the form name=address:port, as in peers = "
				  "{\"a=192.0.2.1:7411\", \"b=192.0.2.2:7411\"}",
				  text);
	r = cw_address_parse(eq + 1, &address, err);
	if (r >= 0 && cw_address_is_any(&address))
		r = cw_err_set(err, EINVAL,
			       "peers: '%s': other daemons cannot connect to that address", text);
	return r;
}

static int add_peer(struct cw_config *c, const char *text, struct cw_err *err)
{
	const char *eq = strchr(text, '=');
	struct cw_config_peer *grown, peer = { 0 };

	peer.name = strndup(text, (size_t)(eq - text));
	peer.address = strdup(eq + 1);
	grown = realloc(c->peers, (c->n_peers + 1) * sizeof(*grown));
	if (grown)
		c->peers = grown;
	if (!grown || !peer.name || !peer.address) {
		free(peer.name);
		free(peer.address);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	c->peers[c->n_peers++] = peer;
	for (unsigned i = 0; i + 1 < c->n_peers; i++)
		if (!strcmp(c->peers[i].name, peer.name))
			return cw_err_set(err, EINVAL, "peers: '%s' is named twice", peer.name);
	return 0;
}

/*
 * Sets `listen` to all addresses, with the port of this node's own entry. The name in the entry may
 * have another address here (127.0.1.1) than on the other nodes.
 */
static int listen_as(struct cw_config *c, const char *text)
{
	struct cw_address address;
	char any[32];

	if (cw_address_parse(text, &address, NULL) < 0 || address.len)
		return set_string(&c->listen, text);
	(void)snprintf(any, sizeof(any), "[::]:%u", address.port);
	return set_string(&c->listen, any);
}

/* Removes this node's own entry from the list of peers. We listen on the address of this entry. */
static int take_own_entry(struct cw_config *c)
{
	for (unsigned i = 0; i < c->n_peers; i++) {
		struct cw_config_peer own = c->peers[i];

		if (strcmp(own.name, c->node_name) != 0)
			continue;
		c->peers[i] = c->peers[--c->n_peers];
		if (!*c->listen && listen_as(c, own.address) < 0) {
			free(own.name);
			free(own.address);
			return -ENOMEM;
		}
		free(own.name);
		free(own.address);
		return 0;
	}
	return 0;
}

/* ---- the file ---- */

/*
 * Checks one value. The parser calls this after each value, because it then still knows the line
 * number.
 */
static int on_validate(cfg_t *cfg, cfg_opt_t *opt)
{
	const struct cw_config_key *key = find_key(cfg_opt_name(opt));
	const char *text;
	struct cw_err err = { "" };
	struct cw_config scratch = { 0 };
	int r = 0;

	if (!key || cfg_opt_size(opt) == 0)
		return 0;
	text = cfg_opt_getnstr(opt, cfg_opt_size(opt) - 1);
	if (key->type == CW_CONFIG_PEERS) {
		if (cfg_opt_size(opt) > CW_CONFIG_MAX_PEERS)
			r = cw_err_set(&err, EINVAL, "peers: more than %u", CW_CONFIG_MAX_PEERS);
		else
			r = check_peer(text, &err);
	} else {
		r = set_value(&scratch, key, text, &err);
		if (!cw_config_key_is_number(key))
			cw_config_free_string(key, (char **)((char *)&scratch + key->offset));
	}
	if (r < 0)
		cfg_error(cfg, "%s", err.text);
	return r < 0 ? -1 : 0;
}

/* True if this bracket opens a list, as in "peers = [". An address may contain a bracket, too. */
static bool opens_list(const char *text, const char *bracket)
{
	const char *end = bracket;
	size_t len;

	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	if (end == text || *--end != '=')
		return false;
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		len = strlen(cw_config_keys[i].name);
		if (cw_config_keys[i].type == CW_CONFIG_PEERS && (size_t)(end - text) >= len &&
		    memcmp(end - len, cw_config_keys[i].name, len) == 0 &&
		    ((size_t)(end - text) == len || isspace((unsigned char)*(end - len - 1))))
			return true;
	}
	return false;
}

/*
 * Overwrites comments with spaces. libconfuse 3.3 counts three lines for each comment, and would
 * report the wrong line to the user. Also replaces the brackets of lists by braces. libconfuse
 * needs braces, but users know brackets from TOML and JSON.
 */
static void ease_syntax(char *text)
{
	bool in_comment = false, in_list = false;
	char quote = '\0';

	for (char *p = text; *p; p++) {
		if (*p == '\n') {
			in_comment = false;
		} else if (in_comment) {
			*p = ' ';
		} else if (quote) {
			if (*p == '\\' && p[1])
				p++;
			else if (*p == quote)
				quote = '\0';
		} else if (*p == '"' || *p == '\'') {
			quote = *p;
		} else if (*p == '#' || (*p == '/' && p[1] == '/')) {
			in_comment = true;
			*p = ' ';
		} else if (*p == '[' && opens_list(text, p)) {
			in_list = true;
			*p = '{';
		} else if (*p == ']' && in_list) {
			in_list = false;
			*p = '}';
		}
	}
}

static int slurp(const char *path, char **ret_text, struct cw_err *err)
{
	_cleanup_(freep) char *text =
		/* Large, and not zeroed, because most of it stays unused. */
		malloc(CW_CONFIG_MAX_FILE_BYTES + 1);
	FILE *f = fopen(path, "re");
	size_t n;
	int e;

	if (!f)
		return cw_err_set(err, errno, "%s: %m", path);
	if (!text) {
		(void)fclose(f);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	n = fread(text, 1, CW_CONFIG_MAX_FILE_BYTES + 1, f);
	e = ferror(f) ? errno : 0;
	(void)fclose(f); /* harmless: we only read the file */
	if (e)
		return cw_err_set(err, e, "%s: %s", path, strerror(e));
	if (n <= CW_CONFIG_MAX_FILE_BYTES)
		text[n] = '\0';
	if (n > CW_CONFIG_MAX_FILE_BYTES || strlen(text) != n)
		return cw_err_set(err, EINVAL, "%s: the file is too large or is not text", path);
	*ret_text = steal_ptr(&text);
	return 0;
}

static int read_file(const char *path, cfg_t *cfg, struct cw_err *err)
{
	_cleanup_(freep) char *text = NULL;
	int r;

	for (unsigned i = 0; i < cw_config_n_keys; i++)
		(void)cfg_set_validate_func(cfg, cw_config_keys[i].name, on_validate);
	(void)cfg_set_error_function(cfg, on_parse_error);
	r = slurp(path, &text, err);
	if (r < 0)
		return r;
	ease_syntax(text);
	r = cfg_parse_buf(cfg, text);
	if (r != CFG_SUCCESS && !err->text[0])
		return cw_err_set(err, EINVAL, "%s: cannot be parsed", path);
	return r == CFG_SUCCESS ? 0 : -EINVAL;
}

/* ---- values from the parser ---- */

static int put_text(struct cw_config_values *v, const char *text)
{
	size_t bytes = strlen(text) + 1;

	if (bytes > sizeof(v->text) - v->len)
		return cw_err_set(&v->err, EINVAL, "its values do not fit the daemon's limit");
	memcpy(v->text + v->len, text, bytes);
	v->len += bytes;
	return 0;
}

/* Returns the key's value in the file, or its default. */
static const char *value_of(cfg_t *cfg, const struct cw_config_key *key)
{
	const char *text = cfg_getstr(cfg, key->name);

	return text ? text : key->initial;
}

static int put_values(struct cw_config_values *v, cfg_t *cfg)
{
	int r = 0;

	for (unsigned i = 0; i < cw_config_n_keys && r >= 0; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];

		if (key->type != CW_CONFIG_PEERS) {
			r = put_text(v, value_of(cfg, key));
			continue;
		}
		for (unsigned k = 0; k < cfg_size(cfg, key->name) && r >= 0; k++)
			r = put_text(v, cfg_getnstr(cfg, key->name, k));
		if (r >= 0)
			r = put_text(v, "");
	}
	return r;
}

static int take_values(struct cw_config *c, const struct cw_config_values *v, struct cw_err *err)
{
	const char *text = v->text;
	int r = 0;

	for (unsigned i = 0; i < cw_config_n_keys && r >= 0; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];

		if (key->type != CW_CONFIG_PEERS) {
			r = set_value(c, key, text, err);
			text += strlen(text) + 1;
			continue;
		}
		for (; *text && r >= 0; text += strlen(text) + 1)
			r = add_peer(c, text, err);
		text++;
	}
	return r;
}

static int finish(struct cw_config *c, const char *path, struct cw_err *err)
{
	char host[CW_CONFIG_MAX_NAME] = "";
	int r;

	if (!*c->node_name) {
		if (gethostname(host, sizeof(host) - 1) < 0 ||
		    !cw_node_name_is_valid(host, strlen(host)))
			return cw_err_set(err, EINVAL,
					  "the host name is not a valid node_name: set node_name");
		if (set_string(&c->node_name, host) < 0)
			return cw_err_set(err, ENOMEM, "out of memory");
	}
	r = cw_config_check_peers(c, path, err);
	if (r < 0)
		return r;
	if (take_own_entry(c) < 0 ||
	    (*c->peers_from && !*c->listen && listen_as(c, c->peers_from) < 0))
		return cw_err_set(err, ENOMEM, "out of memory");
	if (c->stall_min_ns > c->stall_max_ns)
		return cw_err_set(err, EINVAL, "%s: stall_min is above stall_max", path);
	if (c->n_peers && !*c->listen)
		return cw_err_set(err, EINVAL,
				  "%s: peers are given, but neither listen nor an entry for '%s'",
				  path, c->node_name);
	return 0;
}

static void free_cfg(cfg_t **cfg)
{
	if (*cfg)
		cfg_free(*cfg);
}

static void free_config(struct cw_config **config)
{
	cw_config_free(*config);
}

static cfg_t *make_parser(void)
{
	static char no_peers[] = "{}";
	cfg_opt_t opts[40] = { CFG_END() }, end = CFG_END();

	if (cw_config_n_keys >= sizeof(opts) / sizeof(opts[0]))
		return NULL;
	for (unsigned i = 0; i < cw_config_n_keys; i++) {
		const struct cw_config_key *key = &cw_config_keys[i];
		cfg_opt_t list = CFG_STR_LIST(key->name, no_peers, CFGF_NONE);
		cfg_opt_t one = CFG_STR(key->name, NULL, CFGF_NONE);

		opts[i] = key->type == CW_CONFIG_PEERS ? list : one;
	}
	opts[cw_config_n_keys] = end;
	return cfg_init(opts, CFGF_NONE);
}

void cw_config_parse(const char *path, struct cw_config_values *v)
{
	_cleanup_(free_cfg) cfg_t *cfg = make_parser();

	v->r = cfg ? 0 : cw_err_set(&v->err, ENOMEM, "out of memory");
	parse_err = &v->err;
	parse_path = path;
	if (path && cfg)
		v->r = read_file(path, cfg, &v->err);
	parse_err = NULL;
	if (v->r >= 0)
		v->r = put_values(v, cfg);
	v->is_done = true;
}

/*
 * Takes the headers that the child has read. Their file may be unreadable although the
 * configuration is valid. We then keep the reason.
 */
static int take_headers(struct cw_config *c, const struct cw_config_value_file *from,
			struct cw_err *err)
{
	struct cw_config_text *to = &c->webhook_headers;

	if (!from->is_done || from->r < 0) {
		to->err = from->err;
		to->r = from->is_done
				? from->r
				: cw_err_set(&to->err, ENODATA, "webhook_header_file %s: not read",
					     c->webhook_header_file);
		return 0;
	}
	to->text = cw_secret_strdup(from->text);
	return to->text ? 0 : cw_err_set(err, ENOMEM, "out of memory");
}

int cw_config_make(const char *path, const struct cw_config_values *v, struct cw_config **ret,
		   struct cw_err *err)
{
	_cleanup_(free_config) struct cw_config *c = calloc(1, sizeof(*c));
	struct cw_err own = v->err;
	int r = v->r;

	if (!c)
		r = cw_err_set(&own, ENOMEM, "out of memory");
	if (r >= 0)
		r = take_values(c, v, &own);
	if (r >= 0)
		r = finish(c, path ? path : "defaults", &own);
	if (r >= 0)
		r = take_headers(c, &v->headers, &own);
	if (r < 0) {
		if (err)
			*err = own;
		return r;
	}
	*ret = steal_ptr(&c);
	return 0;
}

int cw_config_load_here(const char *path, struct cw_config **ret, struct cw_err *err)
{
	struct cw_config_values *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return cw_err_set(err, ENOMEM, "out of memory");
	cw_config_parse(path, v);
	r = cw_config_make(path, v, ret, err);
	free(v);
	return r;
}

struct cw_config *cw_config_free(struct cw_config *c)
{
	if (!c)
		return NULL;
	for (unsigned i = 0; i < cw_config_n_keys; i++)
		if (!cw_config_key_is_number(&cw_config_keys[i]) &&
		    cw_config_keys[i].type != CW_CONFIG_PEERS)
			cw_config_free_string(&cw_config_keys[i],
					      (char **)((char *)c + cw_config_keys[i].offset));
	for (unsigned i = 0; i < c->n_peers; i++) {
		free(c->peers[i].name);
		free(c->peers[i].address);
	}
	free(c->peers);
	cw_secret_free(c->webhook_headers.text);
	free(c);
	return NULL;
}
