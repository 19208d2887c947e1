"""Writes digits into a template of to_char, one pattern at a time (PostgreSQL's NUM_processor)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from ivm.stops import polled
from planner.expr.functions.formatting.number_template import NumberTemplate


def write_number(t: NumberTemplate, number: str, sign: str = "", spaces: int = 0) -> str:
    """The template filled in. ``number``: digits without a sign, or a Roman numeral; ``sign``: ``+``, ``-`` or none;
    ``spaces``: how many digits less than the template has."""
    if t.roman:
        t = NumberTemplate(t.tokens, fill=t.fill, roman=True, zero_start=t.zero_start)
    return _Writer(t, number, sign, spaces).write()


def ordinal(number: int) -> str:
    """The ordinal suffix: st, nd, rd or th."""
    if 10 < number % 100 < 20:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


_END: Final = "\0"
"""What PostgreSQL writes for a digit or a sign that there is not; it ends the text."""


class _Writer:
    """``at``: the next digit of the number; ``place``: the next digit of the template; ``inside``: a digit was the
    last thing written, so that a separator follows; ``relevant``: the last digit that FM leaves."""

    def __init__(self, t: NumberTemplate, number: str, sign: str, spaces: int) -> None:
        self.number, self.sign, self.spaces = number, sign, spaces
        self.at, self.place, self.inside = 0, 0, False
        self.out: list[str] = []
        self.sign_last = t.sign_last
        if t.plus or t.minus:
            self.signed = t.minus
        else:
            if sign != "-" and t.bracket and t.fill:
                t = replace(t, bracket=False)
            self.signed = sign == "+" and t.fill and not t.sign
            self.sign_last = t.sign_last or (t.sign and t.pre == t.sign_at)
        self.t = t
        self.zero_start = max(t.zero_start - 1, 0)
        self.relevant = self._last_relevant() if t.fill and t.point else None
        self.end = t.post + t.pre - 1 + (not self.signed and not spaces) + bool(spaces) + t.point

    def _last_relevant(self) -> int | None:
        point = self.number.find(".")
        if point < 0:
            return None
        last = max(point, len(self.number.rstrip("0")) - 1)
        if self.t.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, self.t.zero_end - self.spaces))
        return last

    def write(self) -> str:
        for key, text in polled(self.t.tokens):
            match key:
                case "":
                    self.out.append(text)
                case "9" | "0" | "." | "D":
                    if not self.t.roman:
                        self._digit_place(key)
                case "," | "G":
                    self._padded("," if self.inside else "")
                case "L":
                    self.out.append(" ")
                case "RN":
                    numeral = self.number.lower() if text == "rn" else self.number
                    self.out.append(numeral if self.t.fill else numeral.rjust(15))
                case "TH":
                    self._ordinal(text)
                case "MI":
                    self._padded("-" if self.sign == "-" else "")
                case "PL":
                    self._padded("+" if self.sign == "+" else "")
                case "SG":
                    self.out.append(self.sign or _END)
        return "".join(self.out).partition(_END)[0]

    def _padded(self, text: str) -> None:
        """A character, or a blank for it but in fill mode."""
        if text or not self.t.fill:
            self.out.append(text or " ")

    def _ordinal(self, text: str) -> None:
        if self.t.roman or self.number[:1] == "#" or self.sign == "-" or self.t.point:
            return
        if not self.number[-1:].isdigit():
            raise SqlError("22P02", f'"{self.number}" is not a number')
        suffix = ordinal(int(self.number[-2:].replace(".", "")))
        self.out.append(suffix if text == "th" else suffix.upper())

    def _leading_space(self) -> bool:
        """Whether the next digit is the zero of ``0.1``, which 9.9 does not show."""
        return not self.t.zero and self.at == 0 and self.number[:1] == "0" and self.t.post != 0

    def _digit_place(self, key: str) -> None:
        t = self.t
        self.inside = False
        bare_point = self.relevant is not None and self.number[self.relevant] == "."
        reached = self.place >= self.spaces or (t.zero and self.zero_start == self.place)
        if not self.signed and reached and (not self._leading_space() or bare_point):
            self._write_sign()
        if self.place < self.spaces and (self.zero_start > self.place or not t.zero):
            if not t.fill:
                self.out.append(" ")
        elif t.zero and self.place < self.spaces:
            self.out.append("0")
            self.inside = True
        else:
            self._digit(key, bare_point)
        last = self.place if self.relevant is not None and self.relevant == self.at else self.end
        if self.place + 1 == last:
            self._sign_after()
        self.place += 1

    def _write_sign(self) -> None:
        if self.t.sign:
            if not self.sign_last:
                self.out.append(self.sign)
                self.signed = True
            return
        if self.t.bracket:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "-" or not self.t.fill:
            self.out.append("-" if self.sign == "-" else " ")
        self.signed = True

    def _digit(self, key: str, bare_point: bool) -> None:
        c = self.number[self.at : self.at + 1]
        if c == ".":
            if not bare_point or self.t.fill:
                self.out.append(".")
        elif self.relevant is not None and self.at > self.relevant and key != "0":
            pass
        elif self._leading_space():
            if not self.t.fill:
                self.out.append(" ")
            elif bare_point:
                self.out.append("0")
        else:
            self.out.append(c or _END)
            self.inside = True
        self.at += bool(c)

    def _sign_after(self) -> None:
        if self.signed and self.t.bracket:
            self.out.append(" " if self.sign == "+" else ">")
        elif self.t.sign and self.sign_last:
            self.out.append(self.sign)
