/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of collwatch-lab, as those of cli/verb.h. */
#pragma once

int cw_verb_demo(int argc, char **argv);
int cw_verb_suite(int argc, char **argv);
