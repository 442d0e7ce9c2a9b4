/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the keys about peers fit together. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/address.h"
#include "daemon/config/config.h"

static int check_reach(const char *text, const char *path, struct cw_err *err)
{
	struct cw_address address;
	int r = cw_address_parse(text, &address, err);

	if (r < 0 || cw_address_is_loopback(&address))
		return r;
	return cw_err_set(err, EINVAL,
			  "%s: '%s' is not a loopback address: daemons on several machines need a "
			  "shared key or certificates: make them with `collwatch init-cluster` and "
			  "set peer_key_file or peer_cert_file",
			  path, text);
}

/*
 * Refuses addresses that are not loopback. Without authentication, another machine could pose as a
 * peer.
 */
static int check_loopback(const struct cw_config *config, const char *path, struct cw_err *err)
{
	int r = 0;

	if (*config->listen)
		r = check_reach(config->listen, path, err);
	for (unsigned i = 0; i < config->n_peers && r >= 0; i++)
		r = check_reach(config->peers[i].address, path, err);
	return r;
}

int cw_config_check_peers(const struct cw_config *config, const char *path, struct cw_err *err)
{
	int n = !!*config->peer_ca_file + !!*config->peer_cert_file +
		!!*config->peer_private_key_file;

	if (n != 0 && n != 3)
		return cw_err_set(err, EINVAL,
				  "%s: peer_ca_file, peer_cert_file and peer_private_key_file go "
				  "together: give all three or none",
				  path);
	if (n && *config->peer_key_file)
		return cw_err_set(err, EINVAL,
				  "%s: both peer_key_file and certificates are set: set one of the "
				  "two, the same on every node",
				  path);
	if (*config->peers_from && config->n_peers)
		return cw_err_set(err, EINVAL,
				  "%s: both peers and peers_from are set: set one of the two",
				  path);
	if (*config->peers_from && !n && !*config->peer_key_file)
		return cw_err_set(
			err, EINVAL,
			"%s: peers_from needs a shared key or certificates, or any host with that "
			"name could join: make them with `collwatch init-cluster`",
			path);
	return n || *config->peer_key_file ? 0 : check_loopback(config, path, err);
}

bool cw_config_has_peers(const struct cw_config *config)
{
	return config->n_peers > 0 || *config->peers_from;
}

static const char *or_null(const char *path)
{
	return *path ? path : NULL;
}

struct cw_tls_files cw_config_tls_files(const struct cw_config *config)
{
	return (struct cw_tls_files){
		.key = or_null(config->peer_key_file),
		.ca = or_null(config->peer_ca_file),
		.cert = or_null(config->peer_cert_file),
		.private_key = or_null(config->peer_private_key_file),
	};
}
