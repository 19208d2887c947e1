"""The abbreviations of time zones that Postgres knows by default (its setting timezone_abbreviations = Default)."""

from __future__ import annotations

from typing import Final

FIXED: Final[dict[str, tuple[int, bool]]] = {
    "acdt": (37800, True), "acsst": (37800, True), "acst": (34200, False), "act": (-18000, False),
    "acwst": (31500, False), "adt": (-10800, True), "aedt": (39600, True), "aesst": (39600, True),
    "aest": (36000, False), "aft": (16200, False), "akdt": (-28800, True), "akst": (-32400, False),
    "almst": (25200, True), "almt": (21600, False), "amt": (-14400, False), "ast": (-14400, False),
    "awsst": (32400, True), "awst": (28800, False), "azost": (0, True), "azot": (-3600, False), "bdst": (7200, True),
    "bdt": (21600, False), "bnt": (28800, False), "bort": (28800, False), "bot": (-14400, False),
    "bra": (-10800, False), "brst": (-7200, True), "brt": (-10800, False), "bst": (3600, True), "btt": (21600, False),
    "cadt": (37800, True), "cast": (34200, False), "cct": (28800, False), "cdt": (-18000, True), "cest": (7200, True),
    "cet": (3600, False), "cetdst": (7200, True), "chadt": (49500, True), "chast": (45900, False),
    "chut": (36000, False), "clst": (-10800, True), "cot": (-18000, False), "cst": (-21600, False),
    "cxt": (25200, False), "ddut": (36000, False), "eat": (10800, False), "edt": (-14400, True),
    "eest": (10800, True), "eet": (7200, False), "eetdst": (10800, True), "egst": (0, True), "egt": (-3600, False),
    "est": (-18000, False), "fet": (10800, False), "fjst": (46800, True), "fjt": (43200, False),
    "fnst": (-3600, True), "fnt": (-7200, False), "galt": (-21600, False), "gamt": (-32400, False),
    "gft": (-10800, False), "gilt": (43200, False), "gmt": (0, False), "hkt": (28800, False), "hst": (-36000, False),
    "ict": (25200, False), "idt": (10800, True), "irt": (12600, False), "ist": (7200, False), "jayt": (32400, False),
    "jst": (32400, False), "kdt": (36000, True), "kgst": (21600, True), "kst": (32400, False), "lhst": (37800, False),
    "ligt": (36000, False), "mart": (-34200, False), "mdt": (-21600, True), "mest": (7200, True),
    "mesz": (7200, True), "met": (3600, False), "metdst": (7200, True), "mez": (3600, False), "mht": (43200, False),
    "mmt": (23400, False), "mpt": (36000, False), "msd": (14400, True), "mst": (-25200, False), "must": (18000, True),
    "mut": (14400, False), "mvt": (18000, False), "myt": (28800, False), "ndt": (-9000, True), "nft": (-12600, False),
    "npt": (20700, False), "nst": (-12600, False), "nzdt": (46800, True), "nzst": (43200, False),
    "nzt": (43200, False), "pdt": (-25200, True), "pet": (-18000, False), "pgt": (36000, False),
    "pht": (28800, False), "pkst": (21600, True), "pkt": (18000, False), "pmdt": (-7200, True),
    "pmst": (-10800, False), "pont": (39600, False), "pst": (-28800, False), "pwt": (32400, False),
    "pyst": (-10800, True), "ret": (14400, False), "sadt": (37800, True), "sast": (7200, False),
    "sct": (14400, False), "taht": (-36000, False), "tft": (18000, False), "tjt": (18000, False),
    "tot": (46800, False), "trut": (36000, False), "tvt": (43200, False), "uct": (0, False), "ulast": (32400, True),
    "ut": (0, False), "utc": (0, False), "uyst": (-7200, True), "uyt": (-10800, False), "uzst": (21600, True),
    "uzt": (18000, False), "vut": (39600, False), "wadt": (28800, True), "wakt": (43200, False),
    "wast": (25200, False), "wat": (3600, False), "wdt": (32400, True), "wet": (0, False), "wetdst": (3600, True),
    "wft": (43200, False), "wgst": (-7200, True), "wgt": (-10800, False), "xjt": (21600, False),
    "yapt": (36000, False), "yekst": (21600, True), "z": (0, False), "zulu": (0, False),
}  # fmt: skip
"""Those of one meaning: seconds east of Greenwich, whether it is daylight saving time."""
DYNAMIC: Final[dict[str, str]] = {
    "amst": "Asia/Yerevan", "anast": "Asia/Anadyr", "anat": "Asia/Anadyr", "arst": "America/Argentina/Buenos_Aires",
    "art": "America/Argentina/Buenos_Aires", "azst": "Asia/Baku", "azt": "Asia/Baku", "ckt": "Pacific/Rarotonga",
    "clt": "America/Santiago", "davt": "Antarctica/Davis", "easst": "Pacific/Easter", "east": "Pacific/Easter",
    "fkst": "Atlantic/Stanley", "fkt": "Atlantic/Stanley", "gest": "Asia/Tbilisi", "get": "Asia/Tbilisi",
    "gyt": "America/Guyana", "iot": "Indian/Chagos", "irkst": "Asia/Irkutsk", "irkt": "Asia/Irkutsk",
    "kgt": "Asia/Bishkek", "kost": "Pacific/Kosrae", "krast": "Asia/Krasnoyarsk", "krat": "Asia/Krasnoyarsk",
    "lhdt": "Australia/Lord_Howe", "lint": "Pacific/Kiritimati", "lkt": "Asia/Colombo", "magst": "Asia/Magadan",
    "magt": "Asia/Magadan", "mawt": "Antarctica/Mawson", "msk": "Europe/Moscow", "novst": "Asia/Novosibirsk",
    "novt": "Asia/Novosibirsk", "nut": "Pacific/Niue", "omsst": "Asia/Omsk", "omst": "Asia/Omsk",
    "petst": "Asia/Kamchatka", "pett": "Asia/Kamchatka", "pyt": "America/Asuncion", "sgt": "Asia/Singapore",
    "tkt": "Pacific/Fakaofo", "tmt": "Asia/Ashgabat", "ulat": "Asia/Ulaanbaatar", "vet": "America/Caracas",
    "vlast": "Asia/Vladivostok", "vlat": "Asia/Vladivostok", "volt": "Europe/Volgograd", "yakst": "Asia/Yakutsk",
    "yakt": "Asia/Yakutsk", "yekt": "Asia/Yekaterinburg",
}  # fmt: skip
"""Those whose meaning has changed: the zone that knows when."""
