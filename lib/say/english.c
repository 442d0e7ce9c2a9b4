/* SPDX-License-Identifier: Apache-2.0 */
#include "say/english.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "model/death.h"
#include "model/nccl_result.h"
#include "model/rankset.h"
#include "model/verdict_types.h"
#include "say/hosts.h"

/* We cut longer names in sentences. Documents have the complete names. */
#define NAME_BYTES 64
#define NAMESPACE_BYTES 63
#define POD_BYTES 120
/* The length of last_error in record/record_layout.h. Another node may send a longer text. */
#define ERROR_BYTES 95

static const char *const english[CW_SAYING__MAX] = {
#define ENGLISH(name, arguments, text) [CW_SAYING_##name] = (text),
	CW_SAYINGS(ENGLISH)
#undef ENGLISH
};

static void put_ranks(const struct cw_arg *arg, char *buf, size_t len)
{
	uint32_t n = arg->ranks.n;
	char set[160];

	if (arg->ranks.is_rest && n == 1)
		cw_text_append(buf, len, "the other rank");
	else if (arg->ranks.is_rest)
		cw_text_append(buf, len, "the other %" PRIu32 " ranks", n);
	else if (!n || !arg->ranks.labels)
		cw_text_append(buf, len, "%" PRIu32 " rank%s", n, n == 1 ? "" : "s");
	else if (*cw_rankset_format(arg->ranks.labels, n, set, sizeof(set)))
		cw_text_append(buf, len, "rank%s %s", n == 1 ? "" : "s", set);
	else if (n == 1)
		cw_text_append(buf, len, "a rank without a number");
	else
		cw_text_append(buf, len, "%" PRIu32 " ranks without numbers", n);
}

/* Writes the pod of a process, for example "pod ml/train-3, pid 17 there; ". */
static void put_pod(const struct cw_arg *arg, char *buf, size_t len)
{
	const char *namespace = arg->process.pod_namespace;

	cw_text_append(buf, len, "pod %.*s%s%.*s", NAMESPACE_BYTES, namespace,
		       *namespace ? "/" : "", POD_BYTES, arg->process.pod);
	if (arg->process.own_pid > 0)
		cw_text_append(buf, len, ", pid %" PRId32 " there", arg->process.own_pid);
	cw_text_append(buf, len, "; ");
}

/* Writes a process. Recordings do not name the host, and dumps do not even contain the pid. */
static void put_process(const struct cw_arg *arg, char *buf, size_t len)
{
	const char *host = arg->process.host;

	if (arg->process.label >= 0)
		cw_text_append(buf, len, "rank %" PRId32, arg->process.label);
	else
		cw_text_append(buf, len, "a rank without a number");
	if (arg->process.pid > 0) {
		cw_text_append(buf, len, " (");
		if (*arg->process.pod)
			put_pod(arg, buf, len);
		cw_text_append(buf, len, "%s%spid %" PRId32 ")", host, *host ? ", " : "",
			       arg->process.pid);
	} else if (*host) {
		cw_text_append(buf, len, " (%s)", host);
	}
}

/*
 * Writes a communicator. PyTorch may name a group by a number alone, and "on 4" would be unclear,
 * so we add a word.
 */
static void put_comm(const struct cw_arg *arg, char *buf, size_t len)
{
	const char *name = arg->comm.name;

	if (*name)
		cw_text_append(buf, len, "%s%.*s", name[strspn(name, "0123456789")] ? "" : "comm ",
			       NAME_BYTES, name);
	else
		cw_text_append(buf, len, "comm 0x%016" PRIx64, arg->comm.id);
}

const char *cw_say_call_kind(unsigned kind)
{
	switch (kind) {
	case CW_OP_COMM_INIT:
		return "ncclCommInitRank";
	case CW_OP_COMM_SPLIT:
		return "ncclCommSplit";
	case CW_OP_COMM_SHRINK:
		return "ncclCommShrink";
	case CW_OP_COMM_GROW:
		return "ncclCommGrow";
	case CW_OP_COMM_FINALIZE:
		return "ncclCommFinalize";
	case CW_OP_COMM_DESTROY:
		return "ncclCommDestroy";
	case CW_OP_WINDOW_REGISTER:
		return "ncclCommWindowRegister";
	case CW_OP_GROUP_END:
		return "ncclGroupEnd";
	default:
		return cw_op_kind_text(kind);
	}
}

static void put_call(const struct cw_arg *arg, char *buf, size_t len)
{
	if (arg->call.is_unknown) {
		cw_text_append(buf, len, "a call");
		return;
	}
	cw_text_append(buf, len, "%s", cw_say_call_kind(arg->call.kind));
	if (arg->call.seq || arg->call.peer >= 0)
		cw_text_append(buf, len, " #%" PRIu64, arg->call.seq);
	if (arg->call.peer >= 0)
		cw_text_append(buf, len, " %s %srank %" PRId32,
			       arg->call.kind == CW_OP_SEND ? "to" : "from",
			       arg->call.is_comm_rank ? "comm " : "", arg->call.peer);
}

static void put_error(const struct cw_arg *arg, char *buf, size_t len)
{
	char name[CW_NCCL_RESULT_NAME_MAX], message[ERROR_BYTES + 1];

	(void)snprintf(message, sizeof(message), "%s", arg->error.text);
	cw_text_sanitise_line(message);
	cw_text_append(buf, len, "%s", cw_nccl_result_name(arg->error.result, name, sizeof(name)));
	if (*message)
		cw_text_append(buf, len, " (\"%s\")", message);
}

static void put_duration(const struct cw_arg *arg, char *buf, size_t len)
{
	int64_t ns = arg->duration.ns > 0 ? arg->duration.ns : 0;

	if (arg->duration.is_unknown)
		cw_text_append(buf, len, "an unknown time");
	else if (arg->duration.is_less)
		cw_text_append(buf, len, "less than %" PRId64 " s", ns / CW_NS_PER_S);
	else if (ns < CW_NS_PER_S)
		cw_text_append(buf, len, "%" PRId64 " ms", ns / CW_NS_PER_MS);
	else if (ns < 10 * CW_NS_PER_S)
		cw_text_append(buf, len, "%.1f s", (double)ns / (double)CW_NS_PER_S);
	else if (ns < 300 * CW_NS_PER_S)
		cw_text_append(buf, len, "%" PRId64 " s", ns / CW_NS_PER_S);
	else if (ns < 3 * 3600 * CW_NS_PER_S)
		cw_text_append(buf, len, "%" PRId64 " min", ns / (60 * CW_NS_PER_S));
	else
		cw_text_append(buf, len, "%" PRId64 " h", ns / (3600 * CW_NS_PER_S));
}

static void put_signal(const struct cw_arg *arg, char *buf, size_t len)
{
	const char *name = cw_signal_name(arg->number);

	if (name)
		cw_text_append(buf, len, "SIG%s", name);
	else
		cw_text_append(buf, len, "signal %" PRId32, arg->number);
}

/* Writes a version of NCCL. ncclGetVersion() returns 2804 for 2.8.4 and 22809 for 2.28.9. */
static void put_version(const struct cw_arg *arg, char *buf, size_t len)
{
	uint32_t v = arg->version, unit = v < 10000 ? 1000 : 10000;

	cw_text_append(buf, len, "%" PRIu32 ".%" PRIu32 ".%" PRIu32, v / unit, v % unit / 100,
		       v % 100);
}

static void put_clause(const struct cw_clause *clause, char *buf, size_t len);

static void put_arg(const struct cw_arg *arg, char *buf, size_t len)
{
	char op[96], hosts[160];

	switch (arg->kind) {
	case CW_ARG_RANKS:
		put_ranks(arg, buf, len);
		break;
	case CW_ARG_PROCESS:
		put_process(arg, buf, len);
		break;
	case CW_ARG_HOSTS:
		cw_text_append(buf, len, "%s",
			       cw_say_hosts(arg->hosts.names, arg->hosts.n, hosts, sizeof(hosts)));
		break;
	case CW_ARG_HOST:
		cw_text_append(buf, len, "%.*s", NAME_BYTES, arg->text);
		break;
	case CW_ARG_COMM:
		put_comm(arg, buf, len);
		break;
	case CW_ARG_CALL:
		put_call(arg, buf, len);
		break;
	case CW_ARG_OP:
		cw_text_append(buf, len, "%s", cw_op_format(&arg->op, op, sizeof(op)));
		break;
	case CW_ARG_ERROR:
		put_error(arg, buf, len);
		break;
	case CW_ARG_DURATION:
		put_duration(arg, buf, len);
		break;
	case CW_ARG_COUNT:
		cw_text_append(buf, len, "%" PRIu64, arg->count);
		break;
	case CW_ARG_NUMBER:
		cw_text_append(buf, len, "%" PRId32, arg->number);
		break;
	case CW_ARG_SIGNAL:
		put_signal(arg, buf, len);
		break;
	case CW_ARG_VERSION:
		put_version(arg, buf, len);
		break;
	case CW_ARG_DETAIL:
		cw_text_append(buf, len, "%s", cw_detail_name((unsigned)arg->number));
		break;
	case CW_ARG_DTYPE:
		cw_text_append(buf, len, "%s", cw_dtype_name((unsigned)arg->number));
		break;
	case CW_ARG_REDOP:
		cw_text_append(buf, len, "%s", cw_redop_name((unsigned)arg->number));
		break;
	case CW_ARG_TEXT:
		cw_text_append(buf, len, "%s", arg->text);
		break;
	case CW_ARG_CLAUSE:
		put_clause(arg->clause, buf, len);
		break;
	default:
		break;
	}
}

static bool is_one(const struct cw_arg *arg)
{
	switch (arg->kind) {
	case CW_ARG_RANKS:
		return arg->ranks.n == 1;
	case CW_ARG_COUNT:
		return arg->count == 1;
	default:
		return true;
	}
}

static void put_argument(const struct cw_arg *arg, bool has_capital, char *buf, size_t len)
{
	size_t at = strlen(buf);

	put_arg(arg, buf, len);
	if (has_capital && buf[at] >= 'a' && buf[at] <= 'z')
		buf[at] = (char)(buf[at] - 'a' + 'A');
}

/* Writes one of the two forms of "(has|have)". Returns the text behind the forms. */
static const char *put_form(const struct cw_arg *arg, const char *forms, char *buf, size_t len)
{
	const char *bar = strchr(forms, '|'), *end = strchr(bar, ')');

	if (is_one(arg))
		cw_text_append(buf, len, "%.*s", (int)(bar - forms - 1), forms + 1);
	else
		cw_text_append(buf, len, "%.*s", (int)(end - bar - 1), bar + 1);
	return end + 1;
}

static void put_said(const struct cw_said *said, char *buf, size_t len)
{
	const char *at = english[said->saying];

	while (*at) {
		int n = (int)strcspn(at, "%");
		const struct cw_arg *arg;

		cw_text_append(buf, len, "%.*s", n, at);
		at += n;
		if (!*at)
			break;
		arg = &said->args[at[1] - '1'];
		at += 2;
		if (*at == '(') {
			at = put_form(arg, at, buf, len);
		} else {
			put_argument(arg, *at == '^', buf, len);
			at += *at == '^';
		}
	}
}

static void put_clause(const struct cw_clause *clause, char *buf, size_t len)
{
	for (uint32_t i = 0; i < clause->n; i++)
		put_said(&clause->said[i], buf, len);
}

bool cw_say_ends_sentence(const struct cw_clause *clause)
{
	const struct cw_said *last = clause->n ? &clause->said[clause->n - 1] : NULL;
	const char *text = last ? english[last->saying] : "";

	if (last && last->saying == CW_SAYING_text)
		text = last->args[0].text;
	return *text && text[strlen(text) - 1] == '.';
}

char *cw_say_text(const struct cw_clause *clause, char *buf, size_t len)
{
	buf[0] = '\0';
	put_clause(clause, buf, len);
	return buf;
}

char *cw_say_arg(const struct cw_arg *arg, char *buf, size_t len)
{
	buf[0] = '\0';
	put_arg(arg, buf, len);
	return buf;
}
