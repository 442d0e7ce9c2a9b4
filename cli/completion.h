/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completion. It offers verbs, the options of a verb's argp and of its children, and the
 * values of arguments. The names in the usage (FILE, JOB, …) show the kind of an argument. The
 * scripts for the shells are a few lines that query this command itself, so they always fit its
 * version.
 */
#pragma once

struct cw_command;

/* Runs "completion SHELL": prints the script for that shell. Returns an exit status. */
int cw_completion_script(const struct cw_command *command, int argc, char **argv);

/*
 * Prints completions, each as a line "word\tWORD\tDESCRIPTION". `words` are the words after the
 * command, up to the word that the user is typing. If the shell can complete that word itself,
 * prints only its kind: "files", "directories" or "programs". May query the daemon, for 1 s at
 * most. Returns an exit status.
 */
int cw_completion_words(const struct cw_command *command, int n, char **words);
