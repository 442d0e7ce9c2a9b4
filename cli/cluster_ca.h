/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small certificate authority for `collwatch init-cluster --certificates`: ECDSA on P-256, X.509
 * v3, and only the extensions that daemons ask of each other. Errors go to stderr, with the remedy.
 */
#pragma once

struct cw_cluster_ca;

/* Makes an authority: dir/ca.crt and dir/ca.key (0600). NULL = failed; the reason was printed. */
struct cw_cluster_ca *cw_cluster_ca_make(const char *dir, int dir_fd, int days);
/* Loads an existing authority from that directory. */
struct cw_cluster_ca *cw_cluster_ca_load(const char *dir);
/* Takes NULL; returns NULL. */
struct cw_cluster_ca *cw_cluster_ca_free(struct cw_cluster_ca *ca);

/* dir/NODE/peer.crt and dir/NODE/peer.key (0600) for a node of that name. 0 or -1. */
int cw_cluster_ca_issue(const struct cw_cluster_ca *ca, const char *dir, int dir_fd,
			const char *node, int days);
/* Writes dir/ca.crt, the authority's own certificate, if it was loaded from elsewhere. 0 or -1. */
int cw_cluster_ca_copy(const struct cw_cluster_ca *ca, const char *dir, int dir_fd);
