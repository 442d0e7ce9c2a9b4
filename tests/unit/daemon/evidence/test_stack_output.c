/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of memory maps, ELF headers and a child's output: all of this input is hostile. */
#include "daemon/evidence/stack.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/evidence/stack_modules.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

Test(stack_output, passes_on_nothing_unexpected_from_the_child)
{
	static const char output[] =
		"garbage\n[1,2]\n"
		"{\"tid\":1,\"name\":\"a\\u001b[31m\",\"extra\":{\"x\":1},\"frames\":[{\"pc\":5,"
		"\"symbol\":\"f\",\"offset\":\"x\",\"line\":1.5},7]}\n"
		"{\"tid\":\"x\",\"frames\":\"none\"}\n"
		"{\"end\":true,\"status\":\"fine\",\"reason\":3,\"held_ms\":-1}\n{\"tid\":9}\n";
	json_t *native = cw_stack_output_read(output, sizeof(output) - 1, true);
	const json_t *threads = json_object_get(native, "threads");
	const json_t *first = json_array_get(threads, 0);
	const json_t *frame = json_array_get(json_object_get(first, "frames"), 0);

	cr_assert_str_eq(text_of(native, "status"), "failed");
	cr_assert_eq(json_array_size(threads), 2);
	cr_assert_str_eq(text_of(first, "name"), "a?[31m");
	cr_assert_null(json_object_get(first, "extra"));
	cr_assert_eq(json_array_size(json_object_get(first, "frames")), 1);
	cr_assert(json_is_null(json_object_get(frame, "pc")));
	cr_assert_str_eq(text_of(frame, "symbol"), "f");
	cr_assert(json_is_null(json_object_get(frame, "offset")));
	json_decref(native);
}

Test(stack_output, keeps_what_a_child_wrote_before_it_was_cut_short)
{
	static const char output[] = "{\"tid\":1,\"name\":\"a\",\"frames\":[]}\n{\"tid\":2,\"na";
	json_t *native = cw_stack_output_read(output, sizeof(output) - 1, false);

	cr_assert_str_eq(text_of(native, "status"), "partial");
	cr_assert_eq(json_array_size(json_object_get(native, "threads")), 1);
	json_decref(native);
	native = cw_stack_output_read("", 0, false);
	cr_assert_str_eq(text_of(native, "status"), "failed");
	json_decref(native);
}

Test(stack_output, finds_modules_in_a_memory_map)
{
	static const char maps[] =
		"400000-401000 r--p 00000000 fd:01 42                         /bin/a b\n"
		"401000-403000 r-xp 00001000 fd:01 42                         /bin/a b\n"
		"403000-404000 rw-p 00000000 00:00 0 \n"
		"404000-405000 rw-p 00003000 fd:01 42                         /bin/a b\n"
		"nonsense\n"
		"7000000-7001000 r-xp 00000000 00:00 0                        [vdso]\n"
		"8000000-8002000 r-xp 00000000 fd:01 43                       /lib/x.so (deleted)\n"
		"9000000-9002000 r-xp 00000000 fd:01 43                       /lib/x.so "
		"(deleted)\n";
	struct cw_stack_modules mods;

	cr_assert_eq(cw_stack_modules_parse(maps, sizeof(maps) - 1, &mods), 0);
	cr_assert_eq(mods.n, 4);
	cr_assert_str_eq(mods.list[0].path, "/bin/a b");
	cr_assert_eq(mods.list[0].end, 0x405000);
	cr_assert_eq(mods.list[0].first_end, 0x401000);
	cr_assert_eq(mods.list[0].exec_start, 0x401000);
	cr_assert(mods.list[1].is_vdso);
	cr_assert_eq(mods.list[3].start, 0x9000000);
	cw_stack_modules_want(&mods, 0x400800); /* data */
	cr_assert_not(mods.list[0].is_wanted);
	cw_stack_modules_want(&mods, 0x402000);
	cr_assert(mods.list[0].is_wanted);
	cw_stack_modules_want(&mods, 0x8500000); /* nothing there */
	cr_assert_not(mods.list[2].is_wanted || mods.list[3].is_wanted);
	cw_stack_modules_fini(&mods);
}

struct image {
	uint8_t bytes[512];
	size_t len;
};

static int read_image(void *user, uint64_t offset, void *buf, size_t len)
{
	struct image *i = user;

	if (offset > i->len || len > i->len - offset)
		return -EIO;
	memcpy(buf, i->bytes + offset, len);
	return 0;
}

/* An ELF header, two program headers, and a note at file offset 256, loaded 0x400000 higher. */
static struct image make_image(void)
{
	Elf64_Ehdr e = { .e_ident = ELFMAG,
			 .e_phoff = sizeof(e),
			 .e_phnum = 2,
			 .e_phentsize = sizeof(Elf64_Phdr) };
	Elf64_Phdr p[2] = {
		{ .p_type = PT_LOAD, .p_vaddr = 0x400000 },
		{ .p_type = PT_NOTE, .p_vaddr = 0x400100, .p_offset = 256, .p_filesz = 44 }
	};
	Elf64_Nhdr other = { 4, 4, 1 }, note = { 4, 8, NT_GNU_BUILD_ID };
	struct image i = { .len = 512 };

	e.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(i.bytes, &e, sizeof(e));
	memcpy(i.bytes + sizeof(e), p, sizeof(p));
	memcpy(i.bytes + 256, &other, 12);
	memcpy(i.bytes + 268, "GNU", 4);
	memcpy(i.bytes + 276, &note, 12);
	memcpy(i.bytes + 288, "GNU", 4);
	memcpy(i.bytes + 292, "\1\2\3\4\5\6\7\10", 8);
	return i;
}

Test(stack_output, finds_the_build_id_in_file_and_memory)
{
	struct image i = make_image();
	uint8_t id[CW_BUILD_ID_MAX];

	cr_assert_eq(cw_stack_build_id(read_image, &i, false, id), 8);
	cr_assert_arr_eq(id, "\1\2\3\4\5\6\7\10", 8);
	memset(id, 0, sizeof(id));
	cr_assert_eq(cw_stack_build_id(read_image, &i, true, id), 8);
	cr_assert_arr_eq(id, "\1\2\3\4\5\6\7\10", 8);
	i.bytes[0] = 0;
	cr_assert_eq(cw_stack_build_id(read_image, &i, false, id), 0);
}

Test(stack_output, survives_every_changed_byte_of_an_elf_header)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	const struct image good = make_image();
	uint8_t id[CW_BUILD_ID_MAX];

	for (size_t at = 0; at < 300; at++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			struct image bad = good;

			bad.bytes[at] = values[v];
			cr_assert_leq(cw_stack_build_id(read_image, &bad, false, id),
				      CW_BUILD_ID_MAX);
			cr_assert_leq(cw_stack_build_id(read_image, &bad, true, id),
				      CW_BUILD_ID_MAX);
		}
	}
}
