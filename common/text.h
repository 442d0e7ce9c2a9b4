/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from other processes, made safe to print: terminals, logs, JSON. Pure functions.
 */
#pragma once

/*
 * Replaces in place, byte by byte, what is not valid UTF-8 (overlong forms, surrogates and numbers
 * above U+10FFFF included) and all control characters (C0, DEL, C1) but \t and \n by '?'. The
 * length stays the same.
 */
void cw_text_sanitise(char *text);

/* The same for what must stay on one line (names, labels): \t and \n go as well. */
void cw_text_sanitise_line(char *text);
