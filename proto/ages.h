/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages carry ages, and all other code uses times. These functions convert between the two, by
 * the rows of model/fact_list.h. An age counts back from the moment when the message's facts were
 * sampled. The receiver takes the arrival of the message as that moment.
 */
#pragma once

#include "model/op.h"
#include "proto/messages.h"
#include "record/record_reader.h"

/*
 * Converts an op's times to ages. now_ns: the current time on the record's clock, CLOCK_MONOTONIC.
 */
struct cw_msg_op cw_ages_of_op(const struct cw_record_op *op, int64_t now_ns);
/* Converts an op's ages to times, on the clock of at_ns. */
struct cw_op cw_ages_to_op(const struct cw_msg_op *op, int64_t at_ns);

/*
 * CW_RANK_FACTS(CW_FROM_AGES) and its siblings fill struct cw_snap_… *to from struct cw_msg_…
 * *from. The ages of *from count back from at_ns. The macros skip PARTs, and the fields that both
 * structs share. The caller copies the shared fields with one assignment.
 */
/* clang-format off */
#define CW_FROM_AGES(kind, type, name, number, wire, json, known, ...) CW_FROM_AGES_##kind(name, known)
#define CW_FROM_AGES_SAME(name, known)
#define CW_FROM_AGES_TEXT(name, known) to->name = from->name && *from->name ? from->name : NULL;
#define CW_FROM_AGES_TIME(name, known) to->name##_ns = (known) ? at_ns - from->name##_age_ns : 0;
#define CW_FROM_AGES_SPAN(name, known) to->name = from->name > INT64_MAX ? 0 : (int64_t)from->name;
#define CW_FROM_AGES_SENT(name, known)
#define CW_FROM_AGES_KEPT(name, known)
#define CW_FROM_AGES_PART(name, known)
/* clang-format on */
