# SPDX-License-Identifier: MIT
"""A quicker lexer for MLIR text: one regular expression a token, spans made only when an error needs them.

Lexing is the larger part of parsing TTIR with xDSL, and parsing is on the path of every cold kernel launch.
"""

from __future__ import annotations

import re
from typing import Any

from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import KIND_BY_PUNCTUATION_SPELLING, MLIRLexer, MLIRTokenKind, StringLiteral

SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"
_TOKEN = re.compile(
    # White space and comments, written so that a failing match cannot try them in many ways.
    r"\s*(?://[^\n]*(?:\n|\Z)\s*)*(?:"
    r"([a-zA-Z_][a-zA-Z0-9_$.]*)"
    rf"|(%{SUFFIX})"
    r"|(->|[:,()=}\[\]<>+*?|]|\{(?!-#))"
    r"|([0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?)"
    r"|((?!0x[0-9a-fA-F])[0-9]+(?!\.))"
    rf"|(\#{SUFFIX}(?<!\#-))"
    rf"|(!{SUFFIX})"
    rf"|(\^{SUFFIX})"
    r"|(@[a-zA-Z_][a-zA-Z0-9_$.]*)"
    r'|("[^"\\\n\v\f]*")'
    r"|(\Z)"
    r")",
    re.ASCII,
)
_PUNCTUATION = 3
_NUMBER_OF_BLOCK = re.compile(r"\^_?[0-9]+|\^[^a-zA-Z_].*")
_MOST_DIGITS = 1000
"""Python itself refuses to convert some thousands of digits."""
_CHECKED = (5, 8)
"""Integers and the names of blocks: not all that look like one are."""
_KINDS: tuple[Any, ...] = (
    None,
    MLIRTokenKind.BARE_IDENT,
    MLIRTokenKind.PERCENT_IDENT,
    None,
    MLIRTokenKind.FLOAT_LIT,
    MLIRTokenKind.INTEGER_LIT,
    MLIRTokenKind.HASH_IDENT,
    MLIRTokenKind.EXCLAMATION_IDENT,
    MLIRTokenKind.CARET_IDENT,
    MLIRTokenKind.AT_IDENT,
    MLIRTokenKind.STRING_LIT,
    MLIRTokenKind.EOF,
)


class LazyToken:
    """xDSL's Token, except that the span is made on demand."""

    __slots__ = ("input", "kind", "start", "text")

    def __init__(self, kind: MLIRTokenKind, text: str, start: int, input: Input[str]) -> None:
        self.kind = kind
        self.text = text
        self.start = start
        self.input = input

    @property
    def span(self) -> Span[str]:
        return Span(self.start, self.start + len(self.text), self.input)

    @property
    def content(self) -> str:
        return self.text

    @property
    def bytes(self) -> bytes:
        return self.text.encode()

    def __repr__(self) -> str:
        return f"LazyToken({self.kind.name}, {self.text!r})"


class FastLexer(MLIRLexer):
    """Lexes the common tokens with one regular expression and leaves the rest, and all errors, to xDSL's lexer."""

    # As xDSL's, but in linear time: its own takes for ever over a long string that is not closed.
    _unescaped_characters_regex = re.compile(r'"[^"\\\n\v\f]*(?:\\(?:["nt\\]|[0-9A-Fa-f]{2})[^"\\\n\v\f]*)*"')

    def lex(self) -> LazyToken:  # pyright: ignore[reportIncompatibleMethodOverride]
        match = _TOKEN.match(self.input.content, self.pos)
        if match is None:
            return self._lex_rare()
        index = match.lastindex or 0
        text = match.group(index)
        self.pos = match.end()
        if index == _PUNCTUATION:
            return LazyToken(KIND_BY_PUNCTUATION_SPELLING[text], text, match.start(index), self.input)
        if index in _CHECKED:
            return self._token(_KINDS[index], text, match.start(index))
        return LazyToken(_KINDS[index], text, match.start(index), self.input)

    def _lex_rare(self) -> LazyToken:
        token = super().lex()
        kind = token.kind
        if kind is MLIRTokenKind.BYTES_LIT and _is_text(token.span):
            # xDSL makes strings of ASCII only; the user's strings are UTF-8.
            kind = MLIRTokenKind.STRING_LIT
        return self._token(kind, token.span.text, token.span.start)

    def _token(self, kind: MLIRTokenKind, text: str, start: int) -> LazyToken:
        if kind is MLIRTokenKind.INTEGER_LIT and len(text) > _MOST_DIGITS:
            raise ParseError(Span(start, start + len(text), self.input), "integer literal of too many digits")
        if kind is MLIRTokenKind.CARET_IDENT and _NUMBER_OF_BLOCK.fullmatch(text):
            # xDSL has no such names, and says so with an error of its own.
            raise ParseError(Span(start, start + len(text), self.input), "the name of a block starts with a letter")
        return LazyToken(kind, text, start, self.input)


def _is_text(span: Span[str]) -> bool:
    try:
        return StringLiteral.from_span(span).bytes_contents.decode() != ""
    except UnicodeDecodeError:
        return False
