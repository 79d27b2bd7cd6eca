# SPDX-License-Identifier: MIT
"""`raise-distributed-carriers`: the carriers that the front end left in TTIR become `distributed` ops.

Each of the seven ops is one row of a table: how many operands its carrier has, which attributes, which flags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, StringAttr, UnitAttr, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import ParseError

from triton_dist.errors import CarrierError
from triton_dist.ir.dialects import distributed as d
from triton_dist.ir.dialects.tt import ExternElementwiseOp
from triton_dist.ir.locations import location
from triton_dist.ir.parser import TritonParser
from triton_dist.ir.seen import Remembered, made
from triton_dist.ir.verifier import verify

LIBRARY = "distributed"
_BOOL = IntegerType(1)

TypeTest = Callable[[Attribute], bool]


def _is_i32(type: Attribute) -> bool:
    return type == i32


def _is_i64(type: Attribute) -> bool:
    return type == i64


@dataclass(frozen=True)
class Form:
    """What the carrier of one op must look like."""

    op: type[Operation]
    operands: tuple[tuple[str, TypeTest], ...] | None
    """Name and type test of each operand; None: any number of any."""
    pure: bool | None
    """The carrier's flag; None: what the attributes say."""
    attributes: tuple[tuple[str, Attribute | type[Attribute]], ...] = ()
    """Name of each attribute that must be there, with its type (of an integer) or its class."""
    optional: tuple[str, ...] = ()
    """Attributes that may be there, as a flag."""
    result_like: int | None = None
    """The operand whose type the result has; None: an i32, or any type for `extern_call`."""
    drops_result: bool = False
    """The carrier's i32 stands for no result."""


_STRING = StringAttr
FORMS: dict[str, Form] = {
    "distributed.wait": Form(
        d.WaitOp,
        (("barrierPtr", d.is_pointer), ("numBarriers", _is_i32), ("waitValue", d.is_integer)),
        pure=False,
        attributes=(("scope", i32), ("semantic", i32)),
    ),
    "distributed.consume_token": Form(
        d.ConsumeTokenOp, (("value", d.is_value), ("token", d.is_integer_like)), pure=True, result_like=0
    ),
    "distributed.get_rank": Form(d.GetRankOp, (("axis", _is_i32),), pure=True),
    "distributed.get_num_ranks": Form(d.GetNumRanksOp, (("axis", _is_i32),), pure=True),
    "distributed.symm_at": Form(d.SymmAtOp, (("ptr", d.is_pointer), ("rank", _is_i32)), pure=True, result_like=0),
    "distributed.notify": Form(
        d.NotifyOp,
        (("ptr", d.is_pointer), ("signal", _is_i64), ("rank", _is_i32)),
        pure=False,
        attributes=(("sigOp", i32), ("commScope", i32)),
        optional=("sigUnsigned",),
        drops_result=True,
    ),
    "distributed.extern_call": Form(
        d.ExternCallOp,
        None,
        pure=None,
        attributes=(("libname", _STRING), ("libpath", _STRING), ("symbol", _STRING), ("pure", _BOOL)),
        optional=("void",),
    ),
}


@dataclass(frozen=True)
class RaiseDistributedCarriers(ModulePass):
    """Valid TTIR in, valid TTIR with `distributed` ops out; a malformed carrier is a `CarrierError`."""

    name = "raise-distributed-carriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for carrier in list(op.walk()):
            if type(carrier) is ExternElementwiseOp and carrier.libname.data == LIBRARY:
                _Carrier(ctx, carrier).raise_()


class _Carrier:
    """One carrier being raised."""

    def __init__(self, ctx: Context, op: ExternElementwiseOp) -> None:
        self.ctx = ctx
        self.op = op
        self.symbol = op.symbol.data

    def fail(self, detail: str) -> CarrierError:
        where = location(self.op) or "unknown location"
        return CarrierError(where=where, detail=f"malformed carrier of {self.symbol}: {detail}")

    def raise_(self) -> None:
        form = FORMS.get(self.symbol)
        if form is None:
            raise self.fail(f"no such op; known are {', '.join(FORMS)}")
        properties = self._attributes(form)
        void = properties.pop("void", None) is not None or form.drops_result
        self._check_operands(form)
        self._check_flag(form, properties)
        self._check_result(form, void)
        types = () if void else (self.op.result.type,)
        raised = made(form.op, list(self.op.operands), types, properties, self.op.attributes, self.op.location)
        Rewriter.replace_op(self.op, raised, [None] if void else None)
        # A conversion that follows may take it for valid.
        verify(raised)

    def _attributes(self, form: Form) -> dict[str, Attribute]:
        found = self._parsed_attributes()
        for name, wanted in form.attributes:
            if name not in found:
                raise self.fail(f"the attribute {name} is missing")
            if not _matches(found[name], wanted):
                raise self.fail(f"the attribute {name} is {found[name]}")
        for name in form.optional:
            if name in found and not isinstance(found[name], UnitAttr):
                raise self.fail(f"{name} is a flag, and has no value")
        known = {name for name, _ in form.attributes} | set(form.optional)
        if unknown := sorted(found.keys() - known):
            raise self.fail(f"unknown attribute {unknown[0]}")
        return found

    def _parsed_attributes(self) -> dict[str, Attribute]:
        text = self.op.libpath.data
        if not text:
            return {}
        known = _dictionaries.get(text)
        if known is None:
            known = self._parsed(text)
            _dictionaries.put(text, known)
        return dict(known)

    def _parsed(self, text: str) -> dict[str, Attribute]:
        try:
            parser = TritonParser(self.ctx, text, "<attributes>")
            found = parser.parse_optional_dictionary_attr_dict()
        except ParseError as error:
            raise self.fail(f"its attributes do not parse: {text!r}") from error
        if parser.pos != len(text):
            raise self.fail(f"its attributes are no dictionary: {text!r}")
        return found

    def _check_operands(self, form: Form) -> None:
        if form.operands is None:
            return
        if len(self.op.operands) != len(form.operands):
            raise self.fail(f"{len(form.operands)} operands expected, found {len(self.op.operands)}")
        for operand, (name, test) in zip(self.op.operands, form.operands, strict=True):
            if not test(operand.type):
                raise self.fail(f"the operand {name} is of type {operand.type}")

    def _check_flag(self, form: Form, attributes: dict[str, Attribute]) -> None:
        pure = bool(self.op.pure.value.data)
        expected = form.pure
        if expected is None:
            attribute = attributes["pure"]
            expected = isinstance(attribute, IntegerAttr) and bool(attribute.value.data)
        if pure != expected:
            raise self.fail(f"it is marked {'pure' if pure else 'impure'}")

    def _check_result(self, form: Form, void: bool) -> None:
        type = self.op.result.type
        if form.result_like is not None and type != self.op.operands[form.result_like].type:
            raise self.fail(f"the result is of type {type}")
        dummy = void or (form.result_like is None and form.operands is not None)
        if dummy and type != i32:
            raise self.fail(f"the result is of type {type}, not i32")
        if void and self.op.result.first_use is not None:
            raise self.fail("its result stands for none, and is used")


_dictionaries: Remembered[dict[str, Attribute]] = Remembered()
"""The attributes of carriers, by their text."""


def _matches(attribute: Attribute, wanted: Attribute | type[Attribute]) -> bool:
    if isinstance(wanted, type):
        return isinstance(attribute, wanted)
    return isinstance(attribute, IntegerAttr) and attribute.type == wanted
