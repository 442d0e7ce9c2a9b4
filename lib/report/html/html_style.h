/* SPDX-License-Identifier: Apache-2.0 */
/* The style sheet of a page. It is inline, because the page fetches nothing. */
#pragma once

extern const char html_style[];
