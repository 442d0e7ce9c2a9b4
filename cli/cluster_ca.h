/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small certificate authority for `collwatch init-cluster --certificates`: ECDSA on P-256, X.509
 * v3, and only the extensions that daemons demand of each other. Errors go to stderr, with the
 * remedy.
 */
#pragma once

struct cw_cluster_ca;

/*
 * Makes an authority: dir/ca.crt and dir/ca.key (0600). Returns NULL if it failed and has printed
 * the reason.
 */
struct cw_cluster_ca *cw_cluster_ca_make(const char *dir, int dir_fd, int days);
/* Loads an existing authority from dir. Returns NULL if it failed and has printed the reason. */
struct cw_cluster_ca *cw_cluster_ca_load(const char *dir);
/* Accepts NULL and returns NULL. */
struct cw_cluster_ca *cw_cluster_ca_free(struct cw_cluster_ca *ca);

/* Makes dir/NODE/peer.crt and dir/NODE/peer.key (0600) for the node. Returns 0 or -1. */
int cw_cluster_ca_issue(const struct cw_cluster_ca *ca, const char *dir, int dir_fd,
			const char *node, int days);
/*
 * Writes the authority's own certificate to dir/ca.crt. Call this if the authority was loaded from
 * another directory. Returns 0 or -1.
 */
int cw_cluster_ca_copy(const struct cw_cluster_ca *ca, const char *dir, int dir_fd);
