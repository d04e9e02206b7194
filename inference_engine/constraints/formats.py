"""String formats: some as expressions of our own, some as llguidance has them, all others refused by name.

Ours replace the ones that llguidance only approximates (29 February in every year, leap seconds at any time,
hosts of any length). Each allows a part of what its format does, and nothing else: years from 1000 on, upper
case T and Z, no leap seconds; hosts of at most six labels with one hyphen each, so never `xn--`.
"""

EXACT_IN_LLGUIDANCE = frozenset({"duration", "email", "ipv4", "ipv6", "uri", "uuid"})

_YEAR = "[1-9][0-9]{3}"
_LEAP_YEAR = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = f"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = f"{_HOUR_AND_MINUTE}:[0-5][0-9](?:[.][0-9]{{1,6}})?(?:Z|[+-]{_HOUR_AND_MINUTE})"
_LABEL = "[a-zA-Z0-9]{1,20}(?:-[a-zA-Z0-9]{1,20})?"

PATTERNS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
    "hostname": f"^{_LABEL}(?:[.]{_LABEL}){{0,5}}$",
}
