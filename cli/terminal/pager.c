/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We collect all output in memory before we show it, so we know whether it is long. Then no write
 * fails either when a user quits the pager early. This process waits for the pager. Otherwise the
 * shell would take the terminal from it. The exit status is that of the verb, not of the pager.
 *
 * `less` can start a shell and write files. If a user may run this command as another user (sudo),
 * we start only `less` in its secure mode, and ignore the pager in the environment.
 */
#include "cli/terminal/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "common/cleanup.h"

#define COPY_BYTES 4096

enum { OPT_NO_PAGER = 768 };

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	bool *is_off = state->input;

	if (key != OPT_NO_PAGER)
		return ARGP_ERR_UNKNOWN;
	*is_off = true;
	return 0;
}

const struct argp cw_pager_argp = {
	.options =
		(const struct argp_option[]){
			{ "no-pager", OPT_NO_PAGER, NULL, 0,
			  "Print long output directly, without a pager", 0 },
			{ 0 },
		},
	.parser = parse_opt,
};

const struct argp_child cw_pager_children[] = { { &cw_pager_argp, 0, NULL, 0 }, { 0 } };

static struct {
	bool is_open;
	int terminal; /* the original standard output */
} pager;

/* ---- choice of the pager ---- */

/*
 * True if the user runs this command with the rights of another user (sudo). Such a user may not be
 * allowed to run other commands.
 */
static bool is_lent(void)
{
	return getuid() != geteuid() || getenv("SUDO_UID") || getenv("DOAS_USER") ||
	       getenv("PKEXEC_UID");
}

/*
 * Returns the pager that an environment variable names. NULL = no variable is set; "" = the user
 * wants no pager.
 */
static const char *named_pager(void)
{
	const char *own = getenv("COLLWATCH_PAGER");

	return own ? own : getenv("PAGER");
}

static bool is_wanted(void)
{
	const char *named = named_pager(), *term = getenv("TERM");

	if (!isatty(STDOUT_FILENO) || !term || strcmp(term, "dumb") == 0)
		return false;
	return !named || (*named && strcmp(named, "cat") != 0);
}

/* ---- length of the text ---- */

/* True if c belongs to an escape sequence such as "\033[1;31m", which a letter ends. */
static bool is_in_escape(struct cw_pager_rows *r, unsigned char c)
{
	if (r->escape == 0 && c != '\033')
		return false;
	if (r->escape == 0)
		r->escape = 1;
	else if (r->escape == 1)
		r->escape = c == '[' ? 2 : 0;
	else if (c >= '@' && c <= '~')
		r->escape = 0;
	return true;
}

void cw_pager_rows_add(struct cw_pager_rows *r, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (is_in_escape(r, c) || (c & 0xc0) == 0x80)
			continue;
		/* If a row is full, it ends when the next character arrives. */
		if (!r->rows || r->column > r->columns || (r->column == r->columns && c != '\n')) {
			r->rows++;
			r->column = 0;
		}
		r->column = c == '\n' ? r->columns + 1 : r->column + 1;
	}
}

/*
 * True if the text fits the terminal without the last row, which the shell's prompt needs. Also
 * true if the terminal reports no size, because then a program and no human controls it.
 */
static bool fits(int fd, int terminal)
{
	struct winsize size = { 0 };
	struct cw_pager_rows rows = { 0 };
	char buf[COPY_BYTES];
	ssize_t n;

	if (ioctl(terminal, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		return true;
	rows.columns = size.ws_col;
	for (off_t at = 0; (n = pread(fd, buf, sizeof(buf), at)) > 0; at += n)
		cw_pager_rows_add(&rows, buf, (size_t)n);
	return rows.rows < size.ws_row;
}

static int copy(int from, int to)
{
	char buf[COPY_BYTES];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0, w; at < n; at += w) {
			w = write(to, buf + at, (size_t)(n - at));
			if (w < 0)
				return -errno;
		}
	return n < 0 ? -errno : 0;
}

/* ---- the pager's process ---- */

/*
 * Sets the options of `less`. R shows colours, and is always set. F and X are only our defaults: F
 * ends if the text fits the screen, and X leaves the text on it. The user's own options override F
 * and X.
 */
static void set_environment(bool is_secure)
{
	const char *own = getenv("LESS");
	_cleanup_(freep) char *all = NULL;

	if (is_secure || !own)
		(void)setenv("LESS", "FRX", 1);
	else if (asprintf(&all, "-R %s", own) >= 0)
		(void)setenv("LESS", all, 1);
	if (is_secure)
		(void)setenv("LESSSECURE", "1", 1);
	/* Our output is UTF-8 in any locale. */
	(void)setenv("LESSCHARSET", "utf-8", 0);
}

/*
 * Runs the pager that the user named. Splits the command into words like a shell, but runs no
 * substitutions. Returns only if exec fails.
 */
static void try_named(const char *named)
{
	wordexp_t words;

	if (wordexp(named, &words, WRDE_NOCMD) != 0)
		return;
	if (words.we_wordc)
		(void)execvp(words.we_wordv[0], words.we_wordv);
	wordfree(&words);
}

static void become_pager(int from, pid_t parent)
{
	static const char *const usual[] = { "pager", "less", "more" };
	const char *named = named_pager();
	bool is_secure = is_lent();

	/*
	 * If this process ends, the pager must end too. Otherwise it would keep control of the
	 * terminal.
	 */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)signal(SIGINT, SIG_DFL);
	if (getppid() != parent || dup2(from, STDIN_FILENO) < 0 ||
	    fcntl(STDIN_FILENO, F_SETFD, 0) < 0) /* if stdin was closed, `from` is stdin itself */
		_exit(1);
	set_environment(is_secure);
	if (is_secure)
		(void)execlp("less", "less", (char *)NULL);
	else if (named)
		try_named(named);
	for (size_t i = 0; !is_secure && i < sizeof(usual) / sizeof(usual[0]); i++)
		(void)execlp(usual[i], usual[i], (char *)NULL);
	/* no pager is installed, so we print the text */
	_exit(copy(STDIN_FILENO, STDOUT_FILENO) < 0);
}

static int show(int fd)
{
	pid_t self = getpid(), pid;

	if (fits(fd, STDOUT_FILENO))
		return copy(fd, STDOUT_FILENO);
	(void)signal(SIGINT, SIG_IGN); /* Ctrl-C is for the pager, from its start on */
	pid = fork();
	if (pid == 0)
		become_pager(fd, self);
	if (pid < 0)
		return copy(fd, STDOUT_FILENO);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* ---- collecting ---- */

void cw_pager_open(bool is_off)
{
	_cleanup_(closep) int kept = -1;

	if (is_off || pager.is_open || !is_wanted() || fflush(stdout) != 0)
		return;
	kept = memfd_create("collwatch-output", MFD_CLOEXEC);
	if (kept < 0)
		return;
	pager.terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (pager.terminal < 0)
		return;
	pager.is_open = dup2(kept, STDOUT_FILENO) >= 0;
	if (!pager.is_open)
		(void)close(pager.terminal);
}

int cw_pager_close(void)
{
	_cleanup_(closep) int kept = -1;

	if (!pager.is_open)
		return 0;
	(void)fflush(stdout); /* `stdout` remembers errors */
	kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (kept < 0 || lseek(kept, 0, SEEK_SET) < 0 || dup2(pager.terminal, STDOUT_FILENO) < 0)
		return -errno;
	(void)close(pager.terminal);
	pager.is_open = false;
	return show(kept);
}
