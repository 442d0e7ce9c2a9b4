/* SPDX-License-Identifier: Apache-2.0 */
#include "python/reader/loaded_symbols.h"

#include <elf.h>
#include <string.h>

/*
 * Larger tables are not those of a real file: no loader accepts more. A library has about ten
 * program headers and 30 dynamic entries.
 */
#define MAX_PROGRAM_HEADERS 64u
#define MAX_DYNAMIC 128u
/*
 * The hash table of a real file has no longer chain. The linker makes about one bucket per four
 * symbols, so a chain has a few entries.
 */
#define MAX_CHAIN 256u
#define MAX_NAME 64u

static bool read_head(const struct cw_python_memory *memory, uint64_t base, Elf64_Ehdr *ret)
{
	return cw_python_read(memory, base, ret, sizeof(*ret)) &&
	       memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0 && ret->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ret->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (ret->e_type == ET_DYN || ret->e_type == ET_EXEC) &&
	       ret->e_phentsize == sizeof(Elf64_Phdr) && ret->e_phnum <= MAX_PROGRAM_HEADERS;
}

/*
 * Finds the bias, and the address and size of the dynamic section. Returns false if the file has no
 * dynamic section.
 */
static bool find_dynamic(const struct cw_python_memory *memory, uint64_t base, uint64_t *ret_bias,
			 uint64_t *ret_at, uint64_t *ret_bytes)
{
	const Elf64_Phdr *load = NULL, *dynamic = NULL;
	Elf64_Phdr headers[MAX_PROGRAM_HEADERS];
	Elf64_Ehdr head;

	if (!read_head(memory, base, &head) || !cw_python_read(memory, base + head.e_phoff, headers,
							       head.e_phnum * sizeof(headers[0])))
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD && !headers[i].p_offset && !load)
			load = &headers[i];
		else if (headers[i].p_type == PT_DYNAMIC)
			dynamic = &headers[i];
	}
	if (!load || !dynamic)
		return false;
	*ret_bias = base - load->p_vaddr;
	*ret_at = *ret_bias + dynamic->p_vaddr;
	*ret_bytes = dynamic->p_memsz;
	return true;
}

/*
 * Returns the address of a table in the process. Some loaders replace the file's address by the
 * loaded one in place, and others keep it. We tell them apart by size: a file's address is far
 * below its bias, because libraries are linked from 0 on.
 */
static uint64_t loaded(uint64_t bias, uint64_t address)
{
	return address >= bias ? address : bias + address;
}

bool cw_loaded_symbols_open(const struct cw_python_memory *memory, uint64_t base,
			    struct cw_loaded_symbols *ret)
{
	struct cw_loaded_symbols s = { 0 };
	Elf64_Dyn entries[MAX_DYNAMIC];
	uint64_t at, bytes;
	uint32_t head[4];

	if (!find_dynamic(memory, base, &s.bias, &at, &bytes))
		return false;
	bytes = bytes < sizeof(entries) ? bytes : sizeof(entries);
	if (!cw_python_read(memory, at, entries, bytes))
		return false;
	for (size_t i = 0; i < bytes / sizeof(entries[0]) && entries[i].d_tag != DT_NULL; i++) {
		uint64_t address = loaded(s.bias, entries[i].d_un.d_ptr);

		if (entries[i].d_tag == DT_SYMTAB)
			s.symbols = address;
		else if (entries[i].d_tag == DT_STRTAB)
			s.strings = address;
		else if (entries[i].d_tag == DT_GNU_HASH)
			s.hash = address;
	}
	if (!s.symbols || !s.strings || !s.hash ||
	    !cw_python_read(memory, s.hash, head, sizeof(head)) || !head[0])
		return false;
	s.n_buckets = head[0];
	s.first_symbol = head[1];
	s.n_filter = head[2];
	*ret = s;
	return true;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* Returns the address of a symbol if the file defines it under this name; 0 = it does not. */
static uint64_t address_if(const struct cw_python_memory *memory, const struct cw_loaded_symbols *s,
			   uint32_t index, const char *name)
{
	size_t len = strlen(name) + 1;
	char found[MAX_NAME];
	Elf64_Sym symbol;

	if (len > sizeof(found) ||
	    !cw_python_read(memory, s->symbols + (uint64_t)index * sizeof(symbol), &symbol,
			    sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || !symbol.st_value ||
	    !cw_python_read(memory, s->strings + symbol.st_name, found, len) ||
	    memcmp(found, name, len) != 0)
		return 0;
	return s->bias + symbol.st_value;
}

uint64_t cw_loaded_symbols_find(const struct cw_python_memory *memory,
				const struct cw_loaded_symbols *s, const char *name)
{
	uint32_t wanted = hash_of(name), index, hash;
	uint64_t buckets = s->hash + 16 + (uint64_t)s->n_filter * sizeof(uint64_t);
	uint64_t chains = buckets + (uint64_t)s->n_buckets * sizeof(uint32_t);

	if (!cw_python_read(memory, buckets + (uint64_t)(wanted % s->n_buckets) * sizeof(index),
			    &index, sizeof(index)) ||
	    index < s->first_symbol)
		return 0;
	for (unsigned i = 0; i < MAX_CHAIN; i++, index++) {
		uint64_t address;

		if (!cw_python_read(memory,
				    chains + (uint64_t)(index - s->first_symbol) * sizeof(hash),
				    &hash, sizeof(hash)))
			return 0;
		/* The lowest bit of a hash marks the end of the chain. */
		address = (hash | 1) == (wanted | 1) ? address_if(memory, s, index, name) : 0;
		if (address)
			return address;
		if (hash & 1)
			return 0;
	}
	return 0;
}
