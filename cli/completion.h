/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shells offer to somebody who types: verbs, the options of a verb's argp and its children,
 * and arguments by the names that these give them (FILE, JOB, …). The shells' scripts are a few
 * lines that ask the command itself, so that they always fit it.
 */
#pragma once

struct cw_command;

/* "completion SHELL": prints what makes that shell ask. Returns an exit status. */
int cw_completion_script(const struct cw_command *command, int argc, char **argv);

/*
 * words: those behind the command, up to the one that is typed at the moment. Prints what it may
 * become, a line each: "word\tWORD\tWHAT IT IS", or who knows: "files", "directories", "programs".
 * May ask the daemon, a second at most. Returns an exit status.
 */
int cw_completion_words(const struct cw_command *command, int n, char **words);
