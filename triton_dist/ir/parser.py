# SPDX-License-Identifier: MIT
"""The parser: xDSL's, with libtriton's location aliases, exact dense constants, and short cuts for repeated text."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    LocationAttr,
    ModuleOp,
    RankedStructure,
)
from xdsl.ir import SSAValue
from xdsl.irdl import AttrConstraint, base
from xdsl.parser import Parser
from xdsl.parser.core import UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from triton_dist.errors import IRParseError
from triton_dist.ir.constants import dense_from_hex, dense_from_literals
from triton_dist.ir.lexer import SUFFIX, FastLexer
from triton_dist.ir.locations import LocationAliases
from triton_dist.ir.registry import TritonContext
from triton_dist.ir.seen import Head, Line, Named, Remembered, Texts, is_flat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdsl.context import Context
    from xdsl.ir import Attribute, Block, Operation, TypeAttribute

_TYPE = re.compile(r"!?[a-zA-Z][\w.]*(?:<(?:[^<>\"#()]|<[^<>\"#()]*>)*>)?")
_DICT = re.compile(r"\{[^{}\"#]*\}")
_HUGE_INTEGER = re.compile(r"[su]?i[0-9]{8,}")

_INDEX_DIGITS = 9

_PERCENT = MLIRTokenKind.PERCENT_IDENT
_HASH = MLIRTokenKind.HASH_IDENT
_BARE = MLIRTokenKind.BARE_IDENT


@functools.lru_cache(1)
def _dense_types() -> AttrConstraint[Any]:
    return base(RankedStructure[IntegerType | IndexType | AnyFloat | ComplexType])


class TritonParser(Parser):
    """Parses TTIR, and whatever else xDSL's parser takes, into `ctx`'s dialects."""

    # Types and attribute dictionaries are immutable and print the same wherever they stand, so their text is a key.
    _texts: Texts

    def __init__(self, ctx: Context, input: str | bytes, name: str = "<unknown>") -> None:
        text = input.decode("utf-8") if isinstance(input, bytes) else input
        self.locations = LocationAliases()
        # The base class lexes the first token; an empty input keeps it from lexing with xDSL's lexer.
        super().__init__(ctx, "", name)
        lexer = FastLexer(Input(self.locations.take_from(text, name), name))
        self._parser_state = ParserState(lexer)  # pyright: ignore[reportArgumentType]
        self._texts = ctx.texts if isinstance(ctx, TritonContext) else Texts()

    def _advance_to(self, pos: int) -> None:
        state = self._parser_state
        state.lexer.pos = pos
        state.current_token = state.lexer.lex()

    def _memoised(self, pattern: re.Pattern[str], cache: Remembered[Any], parse: Any) -> Any:
        """What `parse` gives for the text that `pattern` matches here, from `cache` if it was parsed before."""
        start: int = self._parser_state.current_token.start  # pyright: ignore[reportAttributeAccessIssue]
        match = pattern.match(self._parser_state.lexer.input.content, start)
        if match is None:
            return parse()
        text = match.group()
        found = cache.get(text)
        if found is not None:
            self._advance_to(match.end())
            return found
        found = parse()
        # Remember only if the parser consumed just that text (spaces apart).
        end: int = self._parser_state.current_token.start  # pyright: ignore[reportAttributeAccessIssue]
        consumed = self._parser_state.lexer.input.content[start:end]
        if found is not None and consumed.rstrip() == text and _ELSEWHERE.search(text) is None:
            cache.put(text, found)
        return found

    def parse_optional_type(self) -> TypeAttribute | None:
        return self._memoised(_TYPE, self._texts.types, super().parse_optional_type)

    def parse_type(self) -> TypeAttribute:
        found = self.parse_optional_type()
        return self.raise_error("type expected") if found is None else found

    def parse_optional_dictionary_attr_dict(self) -> dict[str, Attribute]:
        if self._parser_state.current_token.kind is not MLIRTokenKind.L_BRACE:
            return {}
        return dict(self._memoised(_DICT, self._texts.dictionaries, super().parse_optional_dictionary_attr_dict))

    def parse_optional_punctuation(self, punctuation: Any) -> Any:
        state = self._parser_state
        token = state.current_token
        if token.text != punctuation:
            return None
        state.current_token = state.lexer.lex()
        return punctuation

    def parse_punctuation(self, punctuation: Any, context_msg: str = "") -> Any:
        if self.parse_optional_punctuation(punctuation) is None:
            self.raise_error(f"Expected '{punctuation}'{context_msg}")
        return punctuation

    def parse_optional_unresolved_operand(self) -> UnresolvedOperand | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not _PERCENT:
            return None
        state.current_token = state.lexer.lex()
        if state.current_token.kind is not _HASH:
            return LazyOperand(token, 0)
        index = state.current_token.text[1:]
        if not index.isdecimal() or len(index) > _INDEX_DIGITS:
            self.raise_error("Expected integer as SSA value tuple index")
        state.current_token = state.lexer.lex()
        return LazyOperand(token, int(index))

    def parse_unresolved_operand(self, msg: str = "operand expected") -> UnresolvedOperand:
        found = self.parse_optional_unresolved_operand()
        return self.raise_error(msg) if found is None else found

    def parse_optional_location(self) -> LocationAttr | None:
        state = self._parser_state
        token = state.current_token
        if token.kind is not _BARE or token.text != "loc":
            return None
        state.current_token = state.lexer.lex()
        self.parse_punctuation("(")
        start: int = state.current_token.start  # pyright: ignore[reportAttributeAccessIssue]
        found, end = self.locations.read(state.lexer.input, start)  # pyright: ignore[reportArgumentType]
        self._advance_to(end)
        return found

    def _parse_location(self) -> LocationAttr:
        """Inside `loc(`...`)`: the location, the closing parenthesis left to the caller."""
        start: int = self._parser_state.current_token.start  # pyright: ignore[reportAttributeAccessIssue]
        found, end = self.locations.read(self._parser_state.lexer.input, start)  # pyright: ignore[reportArgumentType]
        self._advance_to(end - 1)
        return found

    def _parse_optional_integer_or_float_type(self) -> TypeAttribute | None:
        if _HUGE_INTEGER.fullmatch(self._parser_state.current_token.text) is not None:
            self.raise_error("an integer type has fewer than 2**24 bits")
        return super()._parse_optional_integer_or_float_type()

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self.ssa_values[name] = tuple(values)
            for value in values if _is_hint(name) else ():
                value.name_hint = name
            return
        super()._register_ssa_definition(name, values, span)
        for value in values:
            if value.name_hint == "":
                value.name_hint = None

    # Operations that are a line each

    def _parse_block_body(self, block: Block) -> None:
        self._parse_repeated(block)
        while (op := self.parse_optional_operation()) is not None:
            block.add_op(op)
            self._parse_repeated(block)

    def _parse_repeated(self, block: Block) -> None:
        """The next lines, as far as they were parsed before; no token of theirs is looked at."""
        content, lines, place = self._parser_state.lexer.input.content, self._texts.lines, self._start()
        first = place
        while (line := LineOfText.at(content, place)) is not None:
            known, next = lines.get(line.form), line.followed_by(content)
            if known is None or next is None or (op := self._repeated(known, line)) is None:
                break
            block.add_op(op)
            place = next.start(1)
        if place != first:
            self._advance_to(place)

    def parse_operation(self) -> Operation:
        content = self._parser_state.lexer.input.content
        line = LineOfText.at(content, self._start())
        found = super().parse_operation()
        if line is None or self._start() < line.end or line.followed_by(content) is None:
            return found
        if self._is_all_of(line, found):
            operands = tuple(value.type for value in found.operands)
            results = tuple(value.type for value in found.results)
            form = Line(type(found), operands, results, dict(found.properties), dict(found.attributes))
            self._texts.lines.put(line.form, form)
        return found

    def _start(self) -> int:
        return self._parser_state.current_token.start  # pyright: ignore[reportAttributeAccessIssue]

    def _repeated(self, known: Line, line: LineOfText) -> Operation | None:
        """The operation of a line that differs from one parsed before in names only; None if the types differ."""
        operands = [self._defined(name) for name in line.operands]
        for value, type in zip(operands, known.operands, strict=True):
            if value is None or (value.type is not type and value.type != type):
                return None
        location = self.locations.resolve(line.location) if line.location else None
        if line.location and location is None:
            return None
        found = known.make(operands, location)  # pyright: ignore[reportArgumentType]
        for index, value in enumerate(found.results):
            name = line.results[index][1:]
            is_new = name not in self.ssa_values and name not in self.forward_ssa_references
            span = _NOWHERE if is_new else self._span_of_result(line, index)
            self._register_ssa_definition(name, (value,), span)
        return found

    def _span_of_result(self, line: LineOfText, index: int) -> Span:
        """Where the line names it; what comes before that are names of others."""
        input, start = self._parser_state.lexer.input, line.start
        for _ in range(index):
            start = input.content.index("%", start + 1)
        return Span(start, start + len(line.results[index]), input)

    # Heads of functions: one line each, and the variants of a kernel have the same

    def parse_head(self, parse: Callable[[], Head]) -> tuple[Head, list[Parser.Argument]]:
        """A function up to its body: what `parse` finds, or has found in the same line before; and its arguments."""
        input, start = self._parser_state.lexer.input, self._start()
        text = input.content[start : input.content.find("\n", start)]
        known = self._texts.heads.get(text)
        if known is not None:
            head = known.moved(start)
            self._advance_to(start + len(text) - 1)
        else:
            head = parse()
            moved = head.moved(-start)
            # All of the line but for the brace that opens the body.
            all_of_it = text.endswith("{") and self._start() == start + len(text) - 1
            if all_of_it and _ELSEWHERE.search(moved.without_locations(text)) is None:
                self._texts.heads.put(text, moved)
        return head, [self._argument(argument) for argument in head.arguments]

    def _argument(self, named: Named) -> Parser.Argument:
        input, location = self._parser_state.lexer.input, None
        if named.location is not None:
            place = _OPENS_LOCATION.match(input.content, named.location[0])
            assert place is not None
            location, _ = self.locations.read(input, place.end())  # pyright: ignore[reportArgumentType]
        return self.Argument(Span(named.begin, named.end, input), named.type, location)  # pyright: ignore

    def _defined(self, name: str) -> SSAValue | None:
        name, _, index = name[1:].partition("#")
        values = self.ssa_values.get(name)
        at = int(index or 0)
        return values[at] if values is not None and at < len(values) else None

    def _is_all_of(self, line: LineOfText, op: Operation) -> bool:
        """Whether the line's names are the operation's results and operands, one each and in order."""
        if not is_flat(op) or op.name != line.name or len(op.results) != len(line.results):
            return False
        if len(op.operands) != len(line.operands) or len(set(line.operands)) != len(line.operands):
            return False
        return all(self._defined(name) is value for name, value in zip(line.operands, op.operands, strict=True))

    def _parse_block(self) -> Block:
        name = self._parser_state.current_token.text[1:]
        known = self.blocks.get(name)
        # xDSL forgets that a block which was referred to first has been defined meanwhile.
        if known is not None and known[1] is None and name not in self.forward_block_references:
            self.raise_error(f"re-declaration of block '{name}'")
        return super()._parse_block()

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        """As xDSL's, but exact: hexadecimal float literals are bit patterns, and a splat is one element."""
        self.parse_punctuation("<", " in dense attribute")
        hex_string: str | None = None
        literals: list[str] = []
        shape: list[int] = []
        if self.parse_optional_punctuation(">") is None:
            hex_string = self.parse_optional_str_literal()
            if hex_string is None:
                literals, shape = self._dense_literals()
            self.parse_punctuation(">", " in dense attribute")
        if type is None:
            self.parse_punctuation(":", " in dense attribute")
            type = self._parse_dense_literal_type()
        try:
            if hex_string is not None:
                return dense_from_hex(type, hex_string)
            return dense_from_literals(type, literals, shape)
        except (ValueError, OverflowError, NotImplementedError, VerifyException) as error:
            self.raise_error(f"bad dense attribute: {error}")

    def _parse_dense_literal_type(self) -> Any:
        """As xDSL's, which builds the constraint anew for each constant: half of the time a kernel takes to parse."""
        type_ = self.expect(self.parse_optional_type, "Dense attribute must be typed!")
        if not _dense_types().verifies(type_):
            self.raise_error("Expected memref, vector or tensor type of integer, index, float, or complex type")
        if DYNAMIC_INDEX in type_.get_shape():
            self.raise_error("Dense literal attribute should have a static shape.")
        return type_

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        try:
            return super()._parse_builtin_densearray_attr()
        except NotImplementedError:
            self.raise_error("an array of integers has 1, 8, 16, 32 or 64 bits an element")

    def _dense_literals(self) -> tuple[list[str], list[int]]:
        """The literals of a dense attribute as text, flattened, and their shape (empty for a splat)."""
        if self.parse_optional_punctuation("[") is None:
            return [self._dense_literal()], []
        if self.parse_optional_punctuation("]") is not None:
            return [], [0]
        rows = [self._dense_literals()]
        while self.parse_optional_punctuation(",") is not None:
            rows.append(self._dense_literals())
        self.parse_punctuation("]")
        if any(shape != rows[0][1] for _, shape in rows):
            self.raise_error("Tensor literal has inconsistent ranks between elements")
        return [value for values, _ in rows for value in values], [len(rows), *rows[0][1]]

    def _dense_literal(self) -> str:
        sign = "" if self.parse_optional_punctuation("-") is None else "-"
        token = self._parser_state.current_token
        number = token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.FLOAT_LIT)
        if not number and token.text not in ("true", "false"):
            self.raise_error("Expected either a float, integer, or boolean literal")
        self._consume_token()
        return sign + token.text


_VALUE = re.compile(rf"%{SUFFIX}(?:#[0-9]{{1,{_INDEX_DIGITS}}}(?![0-9]))?", re.ASCII)
_STRING_OR_VALUE = re.compile(r'"[^"]*"|' + _VALUE.pattern)
_RESULT = rf"%{SUFFIX}(?::[0-9]+)?"
_BEGINS = re.compile(rf'\s*({_RESULT}(?:, {_RESULT})* =|[a-z_]+\.|["}}^]|\Z)', re.ASCII)
"""What stands between two operations, and how the second begins (the group); or the end of a block."""
_LOCATION = re.compile(r"#loc\d*")
_SPACE = r"(?:\s|//[^\n]*\n)*"
_OPENS_LOCATION = re.compile(rf"loc{_SPACE}\({_SPACE}")
_ELSEWHERE = re.compile(r"#|!(?!tt\.)|\bdense_resource\b")
"""What stands for something that is written elsewhere, so that the same text may mean another thing in another module:
aliases, of types and attributes, and what is kept at the end of a file. Any type of another dialect counts as one."""
_LONGEST = 2048
_NOWHERE = Span(0, 0, Input("", ""))


class LineOfText(NamedTuple):
    """A line that may be one operation: its text but for names, and the names."""

    start: int
    end: int
    form: str
    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    location: str

    @staticmethod
    def at(text: str, start: int) -> LineOfText | None:
        """The line that begins at `start`, if it is of the kind that libtriton prints for most operations."""
        end = text.find("\n", start)
        if not 0 < end - start < _LONGEST:
            return None
        body, _, location = text[start:end].partition(" loc(")
        location, closing = location[:-1], location[-1:]
        # Regions and successors, aliases, and locations of another form are left to the whole parser.
        if body[-1] == "{" or "^" in body or (closing and not (closing == ")" and _LOCATION.fullmatch(location))):
            return None
        parts = _parts(body)
        return None if parts is None else LineOfText(start, end, *parts, location)

    def followed_by(self, text: str) -> re.Match[str] | None:
        """How what stands behind begins; None if the operation may go on there."""
        found = _BEGINS.match(text, self.end)
        # A name alone may go on with operands: `tt.return`.
        alone = self.form == self.name and not self.location
        return None if found is None or (alone and found[1].startswith("%")) else found


@functools.lru_cache(1 << 12)
def _parts(body: str) -> tuple[str, str, tuple[str, ...], tuple[str, ...]] | None:
    """Form, name, results and operands of a line."""
    names = _names(body)
    count = body.count("%", 0, body.index(" = ")) if body[0] == "%" and " = " in body else 0
    if names is None or (count == 0 and body[0] == "%") or body.count("%") != len(names):
        return None
    form = _VALUE.sub("%", body)
    name = form.split(" = ", 1)[1] if count else form
    if _ELSEWHERE.search(form) or "\\" in form:
        return None
    return form, name.split(" ", 1)[0], tuple(names[:count]), tuple(names[count:])


@functools.lru_cache(1 << 12)
def _is_hint(name: str) -> bool:
    """Whether a value keeps the name that it has in the text."""
    # xDSL takes all of `_0` for a suffix, and refuses the empty name when it is copied.
    return bool(SSAValue.is_valid_name(name) and SSAValue.extract_valid_name(name))


def _names(body: str) -> list[str] | None:
    """The values that a line names; None if a string looks like one."""
    if '"' not in body:
        return _VALUE.findall(body)
    found = _STRING_OR_VALUE.findall(body)
    names = [word for word in found if word[0] == "%"]
    return None if any("%" in word for word in found if word[0] == '"') else names


class LazyOperand(UnresolvedOperand):
    """An operand not yet resolved; its span is made only for an error."""

    __slots__ = ("_token",)

    def __init__(self, token: Any, index: int) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._token = token
        self.index = index

    @property
    def span(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._token.span

    @property
    def operand_name(self) -> str:
        return self._token.text[1:]


def parse_text(ctx: Context, text: str, name: str = "<ttir>") -> ModuleOp:
    """Parse one module; every mistake in `text` is an `IRParseError`."""
    try:
        return TritonParser(ctx, text, name).parse_module()
    except ParseError as error:
        where = error.span.get_location()
        raise IRParseError(where=where, detail=str(error)) from error
    except (VerifyException, RecursionError) as error:
        raise IRParseError(where=name, detail=f"{name}: {error}") from error
