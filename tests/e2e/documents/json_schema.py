# SPDX-License-Identifier: Apache-2.0
"""A contract (incident_contract.py) as a JSON Schema, for readers who have their own tools. Fields that
are in no contract are allowed in it: a reader ignores what it does not know."""

from incident_contract import Named, count, number, share, text

TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
JUDGES = {
    number: {"type": "integer"},
    count: {"anyOf": [{"type": "integer", "minimum": 0},
                      {"type": "string", "pattern": "^0x[0-9a-f]+$"}]},
    share: {"type": "number", "minimum": 0, "maximum": 1},
    text: {"type": "string", "pattern": r"^\S([\s\S]*\S)?$"},
}


def one_of(wanted):
    """A tuple of a contract: any of these."""
    if wanted == (int, float):
        return {"type": "number"}
    if all(isinstance(one, str) for one in wanted):
        return {"const": wanted[0]} if len(wanted) == 1 else {"enum": list(wanted)}
    return {"anyOf": [of(one) for one in wanted]} if len(wanted) > 1 else of(wanted[0])


def of(wanted):
    if isinstance(wanted, Named):
        return {"$ref": "#/$defs/" + wanted.name}
    if isinstance(wanted, dict):
        return {"type": "object",
                "properties": {name.rstrip("?"): of(inner) for name, inner in wanted.items()},
                "required": [name for name in wanted if not name.endswith("?")]}
    if isinstance(wanted, list):
        return {"type": "array", "items": of(wanted[0])}
    if isinstance(wanted, tuple):
        return one_of(wanted)
    if isinstance(wanted, type):
        return {"type": TYPES[wanted]}
    if wanted is None:
        return {"type": "null"}
    if hasattr(wanted, "pattern"):
        return {"type": "string", "pattern": f"^(?:{wanted.pattern})$"}
    return JUDGES[wanted] if callable(wanted) else {"const": wanted}


def named_in(wanted, found):
    """{name: contract} of the names that the contract holds."""
    if isinstance(wanted, Named):
        if wanted.name not in found:
            found[wanted.name] = wanted.contract
            named_in(wanted.contract, found)
    elif isinstance(wanted, (dict, list, tuple)):
        for inner in wanted.values() if isinstance(wanted, dict) else wanted:
            named_in(inner, found)
    return found


def schema_of(name, contract):
    definitions = {inner: of(wanted) for inner, wanted in named_in(contract, {}).items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **of(contract),
            **({"$defs": definitions} if definitions else {})}
