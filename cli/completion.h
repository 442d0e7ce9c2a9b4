/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completion: offers verbs, the options of a verb's argp and its children, and arguments by
 * the names in their usage (FILE, JOB, …). The scripts for the shells are a few lines that query
 * the command itself, so they always fit its version.
 */
#pragma once

struct cw_command;

/* "completion SHELL": prints the script for that shell. Returns an exit status. */
int cw_completion_script(const struct cw_command *command, int argc, char **argv);

/*
 * Prints completions. `words` are the words after the command, up to the word that the user is
 * typing. Each completion is a line "word\tWORD\tDESCRIPTION". If the shell can complete the word
 * itself, prints the kind: "files", "directories" or "programs". May query the daemon, for 1 s at
 * most. Returns an exit status.
 */
int cw_completion_words(const struct cw_command *command, int n, char **words);
