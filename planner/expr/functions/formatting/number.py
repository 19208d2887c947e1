"""to_char and to_number for numbers, after PostgreSQL's ``formatting.c`` (its NUM_processor) in the C locale."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError, unsupported
from storage.types.numeric import WIDE

_TOKEN: Final = re.compile(
    r'(?P<quote>\\")|"(?P<quoted>(?:[^"\\]|\\.)*)"?|(?P<key>EEEE|FM|PR|MI|PL|SG|RN|TH|[90.,DGSVLB])|(?P<plain>.)',
    re.IGNORECASE | re.DOTALL | re.ASCII,
)
_ROMAN: Final = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


@dataclass(slots=True)
class Description:
    """A parsed template: digits before and after the point, signs, zeros."""

    tokens: list[tuple[str, str]]
    pre: int = 0
    post: int = 0
    multi: int = 0
    zero_start: int = 0
    zero_end: int = 0
    lsign: str = ""
    pre_lsign: int = 0
    decimal: bool = False
    zero: bool = False
    fill: bool = False
    bracket: bool = False
    plus: bool = False
    minus: bool = False
    blank: bool = False
    scientific: bool = False
    roman: bool = False


def _syntax(message: str) -> SqlError:
    return SqlError("42601", message)


@lru_cache(1024)
def describe(template: str) -> Description:
    """Parses a template. Raises 42601 if its keywords contradict each other."""
    d = Description([])
    for match in _TOKEN.finditer(template):
        if match["key"] is None:
            plain = '"' if match["quote"] else match["plain"]
            text = plain if match["quoted"] is None else re.sub(r"\\(.)", r"\1", match["quoted"])
            d.tokens.append(("text", text))
            continue
        key = match["key"].upper()
        d.tokens.append((key, match["key"]))
        _note(d, key)
    return d


def _note(d: Description, key: str) -> None:
    if d.scientific and key in ("9", "0"):
        raise _syntax('"EEEE" must be the last pattern used')
    match key:
        case "9":
            if d.bracket:
                raise _syntax('"9" must be ahead of "PR"')
            if d.multi >= 0 and any(t[0] == "V" for t in d.tokens):
                d.multi += 1
            elif d.decimal:
                d.post += 1
            else:
                d.pre += 1
        case "0":
            if d.bracket:
                raise _syntax('"0" must be ahead of "PR"')
            if not d.zero and not d.decimal:
                d.zero, d.zero_start = True, d.pre + 1
            if d.decimal:
                d.post += 1
            else:
                d.pre += 1
            d.zero_end = d.pre + d.post
        case "." | "D":
            if d.decimal:
                raise _syntax("multiple decimal points")
            if any(t[0] == "V" for t in d.tokens):
                raise _syntax('cannot use "V" and decimal point together')
            d.decimal = True
        case "FM":
            d.fill = True
        case "S":
            if d.lsign:
                raise _syntax('cannot use "S" twice')
            if d.plus or d.minus or d.bracket:
                raise _syntax('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
            d.lsign = "post" if d.decimal else "pre"
            d.pre_lsign = d.pre
        case "MI" | "PL" | "SG":
            if d.lsign:
                raise _syntax(f'cannot use "S" and "{key}" together')
            d.minus = d.minus or key != "PL"
            d.plus = d.plus or key != "MI"
        case "PR":
            if d.lsign or d.plus or d.minus:
                raise _syntax('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            d.bracket = True
        case "EEEE":
            if d.fill or d.lsign or d.bracket or d.minus or d.plus or d.roman or any(t[0] == "V" for t in d.tokens):
                raise SqlError(
                    "42601", '"EEEE" is incompatible with other formats',
                    '"EEEE" may only be used together with digit and decimal point patterns.',
                )  # fmt: skip
            d.scientific = True
        case "RN":
            d.roman = True
        case "B":
            d.blank = d.pre == 0 and d.post == 0 and not d.zero
        case "V":
            if d.decimal:
                raise _syntax('cannot use "V" and decimal point together')
            d.multi = 0


def format_number(value: Decimal, template: str, digits: str | None = None) -> str:
    """to_char of a number. ``digits``: its rounded digits with sign, if the caller has rounded it by its own rule."""
    d = describe(template)
    if not d.tokens:
        return ""
    if d.scientific:
        return _scientific(value, d)
    if not value.is_finite():
        return _special(value, d)
    if d.roman:
        return _roman(value, d)
    pre = d.pre
    if any(t[0] == "V" for t in d.tokens):
        value, pre = WIDE.scaleb(value, d.multi), pre + d.multi
    negative = digits is not None and digits.startswith("-")
    if digits is None:
        digits = f"{WIDE.quantize(value, Decimal((0, (1,), -d.post))):f}"
        negative = digits.startswith("-") and digits.strip("-0.") != ""
    number = digits.lstrip("-")
    whole = len(number.partition(".")[0])
    if whole > pre:
        number = "#" * pre + "." + "#" * len(number.partition(".")[2])
    return _Writer(d, number, negative, max(pre - whole, 0), pre).write()


def _special(value: Decimal, d: Description) -> str:
    # NaN and infinities fill the number's places with '#'
    number = "#" * d.pre + "." + "#" * d.post
    return _Writer(d, number, bool(value.is_infinite() and value < 0), 0, d.pre).write()


def _scientific(value: Decimal, d: Description) -> str:
    if not value.is_finite():
        return " " + "#" * (d.pre + 1) + "." + "#" * (d.post + 4) if d.post else " " + "#" * (d.pre + 6)
    power = value.adjusted() if value else 0
    rounded = WIDE.quantize(WIDE.scaleb(value, -power), Decimal((0, (1,), -d.post)))
    if abs(rounded) >= 10:
        power, rounded = power + 1, WIDE.quantize(rounded / 10, Decimal((0, (1,), -d.post)))
    mantissa = f"{rounded:f}"
    text = f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return text if text.startswith("-") else " " + text


def _roman(value: Decimal, d: Description) -> str:
    number = int(WIDE.quantize(value, Decimal(1)))
    if not 1 <= number <= 3999:
        return "#" * 15
    out = ""
    for size, letters in _ROMAN:
        out += letters * (number // size)
        number %= size
    lower = any(key == "RN" and text == "rn" for key, text in d.tokens)
    out = out.lower() if lower else out
    return out if d.fill else out.rjust(15)


class _Writer:
    """PostgreSQL's NUM_processor for output, one template token at a time; keeps its clearer variable names."""

    def __init__(self, d: Description, number: str, negative: bool, spaces: int, pre: int) -> None:
        self.d, self.number, self.negative, self.spaces = d, number, negative, spaces
        self.at, self.current, self.inside = 0, 0, False
        self.bracket = d.bracket and not (d.fill and not negative)
        self.lsign = d.lsign
        self.relevant: int | None = None
        self.zero_start = d.zero_start - 1 if d.zero_start else 0
        if d.plus or d.minus:
            self.sign_wrote = d.minus
        else:
            self.sign_wrote = not negative and d.fill and not d.lsign
            if self.lsign == "pre" and d.pre == d.pre_lsign:
                self.lsign = "post"
        if d.fill and d.decimal:
            self._last_relevant()
        self.count = d.post + pre - 1 + (not self.sign_wrote and not spaces)
        self.out: list[str] = []

    def _last_relevant(self) -> None:
        point = self.number.find(".")
        if point < 0:
            return
        last = point
        for i in range(point + 1, len(self.number)):
            if self.number[i] != "0":
                last = i
        if self.d.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, self.d.zero_end - self.spaces))
        self.relevant = last

    def write(self) -> str:
        for key, text in self.d.tokens:
            match key:
                case "9" | "0" | "." | "D":
                    self._place(key)
                case "," | "G":
                    if self.inside:
                        self.out.append(",")
                    elif not self.d.fill:
                        self.out.append(" ")
                case "MI":
                    if self.negative:
                        self.out.append("-")
                    elif not self.d.fill:
                        self.out.append(" ")
                case "PL":
                    if not self.negative:
                        self.out.append("+")
                    elif not self.d.fill:
                        self.out.append(" ")
                case "SG":
                    self.out.append("-" if self.negative else "+")
                case "TH":
                    self._ordinal(text)
                case "L":
                    self.out.append(" ")
                case "text":
                    self.out.append(text)
        return "".join(self.out)

    def _ordinal(self, text: str) -> None:
        if self.negative or self.d.decimal or "#" in self.number:
            return
        suffix = ordinal(int(self.number.partition(".")[0] or "0"))
        self.out.append(suffix if text == "th" else suffix.upper())

    def _predec_space(self) -> bool:
        return not self.d.zero and self.at == 0 and self.number[:1] == "0" and self.d.post != 0

    def _place(self, key: str) -> None:
        d = self.d
        dot = self.relevant is not None and self.number[self.relevant] == "."
        reached = self.current >= self.spaces or (d.zero and self.zero_start == self.current)
        if not self.sign_wrote and reached and (not self._predec_space() or dot):
            self._sign()
        if self.current < self.spaces and (self.zero_start > self.current or not d.zero):
            if not d.fill:
                self.out.append(" ")
        elif d.zero and self.current < self.spaces and self.zero_start <= self.current:
            self.out.append("0")
            self.inside = True
        else:
            self._digit(key, dot)
            end = self.count + (1 if self.spaces else 0) + (1 if d.decimal else 0)
            if self.relevant is not None and self.relevant == self.at - 1 + (self.at > len(self.number)):
                end = self.current
            if self.current + 1 == end:
                self._trailing_sign()
        self.current += 1

    def _sign(self) -> None:
        if self.lsign:
            if self.lsign == "pre":
                self.out.append("-" if self.negative else "+")
                self.sign_wrote = True
        elif self.bracket:
            self.out.append("<" if self.negative else " ")
            self.sign_wrote = True
        elif not self.negative:
            if not self.d.fill:
                self.out.append(" ")
            self.sign_wrote = True
        else:
            self.out.append("-")
            self.sign_wrote = True

    def _digit(self, key: str, dot: bool) -> None:
        c = self.number[self.at : self.at + 1]
        if c == ".":
            if self.relevant is None or not dot or self.d.fill:
                self.out.append(".")
        elif self.relevant is not None and self.at > self.relevant and key != "0":
            pass
        elif self._predec_space():
            if not self.d.fill:
                self.out.append(" ")
            elif dot:
                self.out.append("0")
        elif c:
            self.out.append(c)
            self.inside = True
        if c:
            self.at += 1

    def _trailing_sign(self) -> None:
        if self.sign_wrote and self.bracket:
            self.out.append(">" if self.negative else " ")
        elif self.lsign == "post":
            self.out.append("-" if self.negative else "+")


def ordinal(number: int) -> str:
    """The ordinal suffix: st, nd, rd or th."""
    if 10 < number % 100 < 20:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def parse_number(text: str, template: str) -> Decimal:
    """to_number: reads a number by a template of digits, point, separators and signs."""
    d = describe(template)
    if d.scientific or d.roman:
        raise unsupported(f'to_number with "{"EEEE" if d.scientific else "RN"}"')
    digits, negative, at = "", False, 0
    for key, literal in d.tokens:
        if at >= len(text):
            break
        if key == "FM":
            continue
        if key in ("9", "0", ".", "D"):
            while at < len(text) and text[at] in " -+<":
                negative = negative or text[at] in "-<"
                at += 1
            if at < len(text) and (text[at].isdigit() or (text[at] == "." and d.decimal)):
                if text[at] == "." and key in ("9", "0"):
                    continue
                digits += text[at]
                at += 1
        elif key in (",", "G"):
            at += text[at] == ","
        elif key in ("S", "MI", "PL", "SG", "PR"):
            if text[at] in "-+<> ":
                negative = negative or text[at] in "-<"
                at += 1
        else:
            # skips at most the literal's length, and nothing that may belong to the number (NUM_eat_non_data_chars)
            for _ in literal:
                if at >= len(text) or text[at] in "0123456789.,+-":
                    break
                at += 1
    if any(key in ("MI", "S", "SG") for key, _ in d.tokens) and text.rstrip().endswith("-"):
        negative = True
    if not digits.strip("."):
        raise SqlError("22P02", f'invalid input syntax for type numeric: "{digits or " "}"')
    return Decimal(("-" if negative else "") + digits.rstrip("."))
