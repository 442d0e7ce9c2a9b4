/* SPDX-License-Identifier: Apache-2.0 */
/* The style sheet of a page; part of it, for the page asks nobody for anything. */
#pragma once

extern const char html_style[];
