"""to_number, after PostgreSQL's ``formatting.c`` in the C locale."""

from __future__ import annotations

from decimal import Decimal

from ivm.errors import SqlError
from planner.expr.functions.formatting.number_template import NumberTemplate, number_template
from planner.expr.functions.numbers.numeric_math import power
from storage.types.numeric import WIDE
from storage.types.text_number import fit_numeric, parse_numeric


def parse_number(text: str, template: str) -> Decimal:
    """Reads a number by a template of digits, point, separators and signs. Raises 22P02 and 22003."""
    t = number_template(template)
    for given, name in ((t.scientific, "EEEE"), (t.roman, "RN")):
        if given:
            raise SqlError("0A000", f'"{name}" not supported for input')
    reader = _NumberReader(text, t)
    value = fit_numeric(parse_numeric(reader.read()), t.pre + t.multi + reader.post, reader.post)
    return WIDE.multiply(value, power(Decimal(10), Decimal(-t.multi))) if t.multiplied else value


class _NumberReader:
    """Reads one pattern at a time; each but a sign that is not there takes a character of the text."""

    def __init__(self, text: str, t: NumberTemplate) -> None:
        self.text, self.t, self.at = text, t, 0
        self.sign, self.digits, self.pre, self.post, self.point = " ", "", 0, 0, False

    def read(self) -> str:
        """The number's text."""
        for key, _ in self.t.tokens:
            if self._ended():
                break
            here = self.text[self.at]
            match key:
                case "":
                    self.at += 1
                case "9" | "0" | "." | "D":
                    self._digit(key)
                    self.at += 1
                case "," | "G":
                    self.at += here == "," and not self.t.fill
                case "L" | "TH":
                    if key == "L" or not self.t.point:
                        self._skip(1 if key == "L" else 2)
                case "MI" | "PL" | "SG":
                    if here in {"MI": "-", "PL": "+", "SG": "+-"}[key]:
                        self.sign = here
                        self.at += 1
                    else:
                        self._skip(1)
        return self.sign + self.digits.removesuffix(".")

    def _ended(self) -> bool:
        return self.at >= len(self.text)

    def _skip(self, count: int) -> None:
        """Skips characters that cannot belong to the number."""
        while count and not self._ended() and self.text[self.at] not in "0123456789.,+-":
            self.at += 1
            count -= 1

    def _is_digit(self, at: int) -> bool:
        return "0" <= self.text[at : at + 1] <= "9"

    def _digit(self, key: str) -> None:
        self.at += self.text[self.at] == " "
        if self._ended():
            return
        if self.sign == " " and key in "09" and not self.pre + self.post:
            self._sign_before()
        if self._ended():
            return
        if self._is_digit(self.at) and self.point and self.post == self.t.post:
            return
        taken = self._take()
        if self.sign == " " and self.pre + self.post:
            self._sign_after(taken)

    def _sign_before(self) -> None:
        here = self.text[self.at]
        if here in "+-":
            self.sign = here
            self.at += 1
        elif here == "<" and self.t.bracket:
            self.sign = "-"
            self.at += 1

    def _take(self) -> bool:
        here = self.text[self.at]
        if self._is_digit(self.at):
            self.digits += here
            self.post += self.point
            self.pre += not self.point
        elif here == "." and self.t.point and not self.point:
            self.digits += here
            self.point = True
        else:
            return False
        return True

    def _sign_after(self, taken: bool) -> None:
        """A sign behind the last digit: of S right after it, of MI, PL and SG where a digit was expected."""
        following = self.text[self.at + 1 : self.at + 2]
        if self.t.sign and taken and following and not self._is_digit(self.at + 1):
            if following in "+-":
                self.sign = following
                self.at += 1
        elif not taken and not self.t.sign and (self.t.plus or self.t.minus) and self.text[self.at] in "+-":
            self.sign = self.text[self.at]
