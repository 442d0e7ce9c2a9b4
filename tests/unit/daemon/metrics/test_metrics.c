/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus's text format, version 0.0.4, checked line by line. */
#include "daemon/metrics/metrics.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/metrics/metrics_output.h"
#include "numerics/node/numerics_extension.h"

/* Room for all sizes of all kinds, and for the metrics without a size. */
#define MAX_SAMPLES (CW_METRICS_OP_SERIES + 256)

struct family {
	char name[128], type[16];
	bool has_help, has_sample;
	/* of a histogram: where its buckets are */
	double le;
	unsigned long long in_bucket;
	bool is_whole; /* its +Inf was there */
};

static struct family families[MAX_SAMPLES];
static unsigned n_families;
static char samples[MAX_SAMPLES][256]; /* name with labels */
static unsigned n_samples;

static bool is_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '_' && *s != ':')
			return false;
	return true;
}

static void check_comment(const char *line)
{
	char kind[8], name[128], rest[512] = "";

	cr_assert_geq(sscanf(line, "# %7s %127s %511[^\n]", kind, name, rest), 2, "%s", line);
	cr_assert(is_name(name), "%s", line);
	if (!strcmp(kind, "HELP")) {
		struct family *f = &families[n_families++];

		for (unsigned i = 0; i + 1 < n_families; i++)
			cr_assert_str_neq(families[i].name, name, "twice");
		(void)snprintf(f->name, sizeof(f->name), "%s", name);
		f->has_help = *rest != '\0';
	} else {
		struct family *f = &families[n_families - 1];

		cr_assert_str_eq(kind, "TYPE");
		cr_assert_str_eq(f->name, name, "TYPE follows its HELP");
		cr_assert(!strcmp(rest, "counter") || !strcmp(rest, "gauge") ||
				  !strcmp(rest, "histogram"),
			  "%s", line);
		(void)snprintf(f->type, sizeof(f->type), "%.15s", rest);
	}
}

/* Buckets rise to +Inf, which is the count. */
static void check_histogram(struct family *f, const char *line, const char *rest, const char *value)
{
	const char *le = strstr(rest, "le=\"");
	unsigned long long n = strtoull(value, NULL, 10);

	if (!strncmp(rest, "_bucket{", 8)) {
		double bound;

		cr_assert_not_null(le, "%s", line);
		bound = strtod(le + 4, NULL); /* +Inf, too */
		if (f->is_whole)
			f->in_bucket = 0, f->le = 0, f->is_whole = false;
		cr_assert(bound > f->le && n >= f->in_bucket, "%s", line);
		f->le = bound;
		f->in_bucket = n;
		f->is_whole = !strncmp(le + 4, "+Inf\"", 5);
	} else if (!strncmp(rest, "_count", 6)) {
		cr_assert(f->is_whole && n == f->in_bucket, "%s", line);
	} else {
		cr_assert(f->is_whole && !strncmp(rest, "_sum", 4), "%s", line);
	}
}

static void check_sample(const char *line)
{
	struct family *f = &families[n_families - 1];
	const char *value = strrchr(line, ' ');
	size_t len = strcspn(line, "{ "), base = strlen(f->name);
	char *end;

	cr_assert_gt(n_families, 0);
	cr_assert_not_null(value);
	(void)strtod(value + 1, &end);
	cr_assert(end != value + 1 && *end == '\0', "%s", line);
	cr_assert(!strncmp(line, f->name, base), "%s is no sample of %s", line, f->name);
	if (!strcmp(f->type, "histogram"))
		check_histogram(f, line, line + base, value + 1);
	else
		cr_assert_eq(len, base, "%s", line);
	if (!strcmp(f->type, "counter"))
		cr_assert_str_eq(f->name + base - strlen("_total"), "_total", "%s", f->name);
	(void)snprintf(samples[n_samples], sizeof(samples[0]), "%.*s", (int)(value - line), line);
	for (unsigned i = 0; i < n_samples; i++)
		cr_assert_str_neq(samples[i], samples[n_samples], "the same sample twice");
	n_samples++;
	f->has_sample = true;
}

static char *text_of(const struct cw_metrics *m)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cw_metrics_print(m, f);
	cr_assert_eq(fclose(f), 0);
	return text;
}

/* Every kind in every size, called and timed. */
static void fill_ops(struct cw_op_totals *ops)
{
	for (unsigned kind = 0; kind < CW_OP__MAX; kind++)
		for (unsigned size = 0; size < CW_OP_SIZES; size++)
			for (unsigned i = 0; i < CW_OP_BUCKETS; i++) {
				ops->sized[kind][size].calls[i] = kind + size + i;
				ops->sized[kind][size].device[i] = 1;
			}
}

static unsigned n_op_series(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_samples; i++)
		n += strstr(samples[i], "size=\"") != NULL;
	return n;
}

Test(metrics, every_line_is_of_the_text_format)
{
	static struct cw_metrics m = { .extension = &cw_numerics_extension };
	char *text, *rest, *line;

	cw_lateness_add(&m.lateness, 3 * CW_NS_PER_MS);
	fill_ops(&m.ops);
	rest = text = text_of(&m);
	cr_assert_eq(text[strlen(text) - 1], '\n');
	while ((line = strsep(&rest, "\n")) && *line) {
		if (*line == '#')
			check_comment(line);
		else
			check_sample(line);
	}
	cr_assert(!rest || !*rest, "an empty line");
	cr_assert_gt(n_families, 25);
	for (unsigned i = 0; i < n_families; i++) {
		cr_assert_eq(strncmp(families[i].name, "collwatch_", 10), 0);
		cr_assert(families[i].has_help && *families[i].type && families[i].has_sample, "%s",
			  families[i].name);
	}
	cr_assert_eq(n_op_series(), CW_METRICS_OP_SERIES, "%u", n_op_series());
	free(text);
}

Test(metrics, ops_have_series_once_they_were_called)
{
	static struct cw_metrics m = { .extension = &cw_numerics_extension, .ops.lost = 5 };
	struct cw_op_sized *s = &m.ops.sized[CW_OP_ALL_REDUCE][2];
	char *text = text_of(&m);

	cr_assert_null(strstr(text, "size=\""));
	cr_assert_not_null(strstr(text, "\ncollwatch_ops_lost_total 5\n"));
	free(text);
	s->bytes = 3000000;
	s->call_ns = 1512000;
	s->calls[1] = 2;
	s->calls[7] = 1;
	text = text_of(&m);
	cr_assert_not_null(strstr(text, "\ncollwatch_op_latency_seconds_bucket{kind=\"all_reduce\","
					"size=\"<= 1 MiB\",le=\"1e-05\"} 2\n"));
	cr_assert_not_null(strstr(text, "le=\"0.001\"} 2\n"));
	cr_assert_not_null(strstr(text, "le=\"0.005\"} 3\n"));
	cr_assert_not_null(strstr(text, "size=\"<= 1 MiB\",le=\"+Inf\"} 3\n"));
	cr_assert_not_null(strstr(text, "_sum{kind=\"all_reduce\",size=\"<= 1 MiB\"} 0.001512\n"));
	cr_assert_not_null(strstr(text, "_count{kind=\"all_reduce\",size=\"<= 1 MiB\"} 3\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_op_size_bytes_total{kind=\"all_reduce\","
					"size=\"<= 1 MiB\"} 3000000\n"));
	cr_assert_null(strstr(text, "\ncollwatch_op_device_seconds_"), "none was timed");
	free(text);
}

Test(metrics, who_is_late_has_seconds_and_a_share)
{
	struct cw_metrics m = { .extension = &cw_numerics_extension,
				.late_ranks = 1,
				.late_wait_s = 0.0314,
				.late_share = 0.25 };
	char *text = text_of(&m);

	cr_assert_not_null(strstr(text, "\ncollwatch_late_wait_seconds 0.031400\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_late_share_ratio 0.250000\n"));
	free(text);
}

Test(metrics, say_the_numbers_of_the_parts)
{
	struct cw_metrics m = { .extension = &cw_numerics_extension,
				.node.connected = 8,
				.node.findings_total[CW_NUMERICS_HEADROOM] = 9,
				.jobs[CW_STALL_HANG] = 2,
				.alerts.incidents[CW_CLASS_MISMATCH] = 3,
				.alerts.webhook.failed = 4,
				.transport.dropped = UINT64_MAX,
				.leader.refused_jobs = 6,
				.bundles_removed = 7,
				.cpu_s = 1.5 };
	char *text;

	cw_lateness_add(&m.lateness, -5);
	cw_lateness_add(&m.lateness, 30 * CW_NS_PER_MS);
	cw_lateness_add(&m.lateness, 10 * CW_NS_PER_S);
	text = text_of(&m);
	cr_assert_not_null(strstr(text, "\ncollwatch_processes{state=\"connected\"} 8\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_jobs{state=\"hang\"} 2\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_incidents_total{class=\"mismatch\"} 3\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_webhook_failed_total 4\n"));
	cr_assert_not_null(strstr(text, "{reason=\"message_not_sent\"} 18446744073709551615\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_dropped_total{reason=\"job\"} 6\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_bundles_removed_total 7\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_cpu_seconds_total 1.500\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_nonfinite_jobs_total 0\n"));
	cr_assert_not_null(strstr(text, "\ncollwatch_headroom_warnings_total 9\n"));
	cr_assert_not_null(strstr(text, "_bucket{le=\"0.001\"} 1\n"));
	cr_assert_not_null(strstr(text, "_bucket{le=\"0.1\"} 2\n"));
	cr_assert_not_null(strstr(text, "_bucket{le=\"+Inf\"} 3\n"));
	cr_assert_not_null(strstr(text, "_sum 10.030000\n"));
	cr_assert_not_null(strstr(text, "_count 3\n"));
	free(text);
}

/* The manual page lists all names, and the labels' values. */
Test(metrics, manual_page_names_every_metric)
{
	struct cw_metrics m = { .extension = &cw_numerics_extension };
	char *text = text_of(&m), *page = NULL, *plain, *to, *rest = text, *line;
	size_t len;
	FILE *f = open_memstream(&page, &len);

	cw_metrics_print_scdoc(&cw_numerics_extension, f);
	cr_assert_eq(fclose(f), 0);
	plain = to = strdup(page);
	for (const char *p = page; *p; p++)
		if (*p != '\\')
			*to++ = *p;
	*to = '\0';
	while ((line = strsep(&rest, "\n")) && *line) {
		char name[128];

		if (sscanf(line, "# HELP %127s", name) == 1)
			cr_assert_not_null(strstr(plain, name), "%s", name);
	}
	cr_assert_not_null(strstr(plain, "By _reason_: agent_refused, agent_message, record"));
	free(text);
	free(page);
	free(plain);
}

static void collect_nothing(struct cw_metrics *ret, void *user)
{
	*ret = (struct cw_metrics){ .extension = &cw_numerics_extension };
}

/* Where others may write the directory, they can put a name in the way. */
Test(metrics, the_file_is_a_new_one_whatever_lies_in_its_way)
{
	char dir[] = "/tmp/cw-metrics-XXXXXX", path[64], beside[64], mine[64], line[32] = "";
	struct event_base *base = event_base_new();
	struct cw_metrics_output_config config = {
		.base = base, .socket_path = "", .file_path = path, .collect = collect_nothing
	};
	struct cw_metrics_output *o = NULL;
	FILE *f;

	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/collwatch.prom", dir);
	(void)snprintf(beside, sizeof(beside), "%s/collwatch.prom.new", dir);
	(void)snprintf(mine, sizeof(mine), "%s/mine", dir);
	f = fopen(mine, "w");
	cr_assert(f && fputs("precious", f) >= 0 && fclose(f) == 0);
	cr_assert_eq(link(mine, beside), 0);
	cr_assert_eq(cw_metrics_output_new(&config, &o, NULL), 0);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	f = fopen(mine, "r");
	cr_assert(f && fgets(line, sizeof(line), f) && fclose(f) == 0);
	cr_assert_str_eq(line, "precious");
	cr_assert_eq(access(path, R_OK), 0, "it is written all the same");
	cw_metrics_output_free(o);
	(void)unlink(path);
	(void)unlink(mine);
	cr_assert_eq(rmdir(dir), 0, "nothing is left beside it");
	event_base_free(base);
}

/* Of the answer; 0 = the connection ended without one. */
static unsigned status_of(struct event_base *base, const char *path, const char *request)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t left = strlen(request), len = 0;
	char answer[4096];
	unsigned status = 0;
	ssize_t n = -1;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	while (n != 0 && len < sizeof(answer) - 1) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		n = send(fd, request, left, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			request += n;
			left -= (size_t)n;
		}
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
		(void)poll(&p, 1, 10);
		n = recv(fd, answer + len, sizeof(answer) - 1 - len, MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	(void)close(fd);
	answer[len] = '\0';
	(void)sscanf(answer, "HTTP/%*u.%*u %u", &status);
	return status;
}

Test(metrics, socket_answers_one_question_and_nothing_large)
{
	static char large[10000];
	char dir[] = "/tmp/cw-metrics-XXXXXX", path[64];
	struct event_base *base = event_base_new();
	struct cw_metrics_output_config config = { .base = base,
						   .clock = &cw_clock_system,
						   .group = "",
						   .socket_path = path,
						   .file_path = "",
						   .collect = collect_nothing };
	struct cw_metrics_output *o = NULL;
	struct stat st;

	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/metrics.sock", dir);
	cr_assert_eq(cw_metrics_output_new(&config, &o, NULL), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0660);
	cr_assert_eq(status_of(base, path, "GET /metrics HTTP/1.0\r\n\r\n"), 200);
	cr_assert_eq(status_of(base, path, "HEAD /metrics HTTP/1.0\r\n\r\n"), 200);
	cr_assert_eq(status_of(base, path, "GET /etc/passwd HTTP/1.0\r\n\r\n"), 404);
	cr_assert_geq(status_of(base, path, "POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n"),
		      400);
	cr_assert_geq(status_of(base, path, "DELETE /metrics HTTP/1.0\r\n\r\n"), 400);
	(void)snprintf(large, sizeof(large), "GET /metrics HTTP/1.0\r\nX: %09000d\r\n\r\n", 0);
	cr_assert_neq(status_of(base, path, large), 200);
	cr_assert_eq(status_of(base, path, "GET /metrics HTTP/1.0\r\n\r\n"), 200);
	cw_metrics_output_free(o);
	cr_assert_eq(rmdir(dir), 0, "the socket is left");
	event_base_free(base);
}
