"""Which values differ from request to request: dates, times and ids by their form, placeholders by their name."""

from __future__ import annotations

import re
from types import MappingProxyType

_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\b\.?)?"
_ZONE = r"(?:\s*(?:Z|(?-i:[A-Z]{3,4})|[+-]\d{2}:?\d{2}))?"
_DATE = (
    rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH},?\s+\d{{4}}"
    r"|\d{4}年\d{1,2}月\d{1,2}日)"
)
TIMESTAMP = re.compile(
    rf"\b(?:{_DAY})?{_DATE}(?:(?:[T,]?\s*|\s+at\s+)(?:{_CLOCK}){_ZONE})?|\b{_CLOCK}{_ZONE}|(?<![\d.])1[4-9]\d{{8}}(?:\d{{3}})?(?![\d.])",
    re.I,
)
_NAMED_ID = (
    r"\b(?:(?:request|session|trace|span|user|customer|conversation|chat|thread|message|correlation|run|job|account|tenant)"
    r"[\s_-]?(?:id|no|number|key)|uuid|guid|nonce)\b[\"'`]?\s*(?:is\s+|[:=#]\s*)[\"'`<]?([\w./-]*\d[\w./-]*)"
)
ID = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,64}\b"
    r"|\b(?:req|sess|run|trace|call|toolu|msg|chatcmpl|thread|conv)[_-](?=\w*\d)\w{6,}"
    r"|\b01[0-9A-HJKMNP-TV-Z]{24}\b"
    rf"|{_NAMED_ID}",
    re.I,
)

_NAMES = MappingProxyType(
    {
        "timestamp": "date time now today timestamp datetime clock weekday day strftime time_now utcnow date_string",
        "id": "uuid uuid1 uuid4 guid nonce id ids random randint",
        "examples-order": "example examples shots fewshot fewshots demonstrations demos shuffle",
        "chunks-first": "context contexts doc docs document documents chunk chunks passage passages retrieved source "
        "sources results snippets evidence",
        "question-first": "question query input prompt request message messages history conversation scratchpad",
        "user-value": "user username name firstname lastname email customer account profile client location city "
        "locale device balance cart",
    }
)
_QUIET = re.compile(
    r"(?:agent|assistant|bot|tool|company|product|model|app|project|brand|organi[sz]ation)s?_?(?:name)?", re.I
)


def class_of(expression: str) -> str | None:
    """The code that a placeholder of this name stands for where stable text follows it; None where nothing is known of
    it. `user.name`, `currentDate` and `datetime.now()` are read by their parts."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", expression).lower()
    if re.search(r"json\.dumps\((?!.*sort_keys\s*=\s*true)", words):
        return "json-order"
    names = re.findall(r"[a-z_]\w*", words)
    if any(_QUIET.fullmatch(name) for name in names):
        return None
    if len(names) > 1 and not re.match("user|customer|client", names[0]):
        names = [name for name in names if name != "name"]  # of a tool, of a setting: not of who asks
    parts = {part for name in names for part in (name, name.rpartition("_")[2])}
    for code, known in _NAMES.items():
        if parts & set(known.split()):
            return code
    return "user-value" if any(re.match("(?:user|customer)_", name) for name in names) else None


def spans(code: str, text: str) -> list[tuple[int, int]]:
    """Where dates and times, or ids, stand in a text."""
    form = TIMESTAMP if code == "timestamp" else ID
    return [found.span(1) if found.lastindex else found.span() for found in form.finditer(text)]
