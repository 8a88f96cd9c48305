"""What a question is for, by its words: some kinds of answers bear a wrong one less than others."""

from __future__ import annotations

import re

INTENTS = ("code", "translation", "summary", "creative", "factual", "general")


def intent_of(question: str) -> str:
    """One of INTENTS: the first whose words the question has, "general" without any."""
    return next((intent for intent, pattern in _WORDS if pattern.search(question)), "general")


_WORDS = tuple(
    (intent, re.compile(pattern, re.I))
    for intent, pattern in (
        (
            "code",
            r"```|\b(?:python|javascript|typescript|java|sql|regex|bash|rust|html|css|api|json|yaml)\b|\bc\+\+|\(\)"
            r"|\b(?:function|script|code|compile|compiler|debug|refactor|stack ?trace|unit test|exception)\b"
            r"|代码|函数|编程",
        ),
        ("translation", r"\btranslat\w*\b|\bin (?:english|french|german|spanish|chinese|japanese|italian)\b|翻译"),
        ("summary", r"\b(?:summar\w*|tl;?dr|key points|in short|condense|recap)\b|总结|概括|摘要"),
        (
            "creative",
            r"\b(?:write|compose|invent|imagine|draft|make up)\b.*\b(?:poem|story|song|joke|haiku|limerick|slogan|essay"
            r"|lyrics|tale|email|letter|post)\b|\bbrainstorm\b|写.*(?:诗|故事|歌|文章)",
        ),
        (
            "factual",
            r"^\W*(?:who|when|where|which|how (?:many|much|old|long|far|tall|high|often))\b"
            r"|^\W*(?:what|who)(?:'s| is| are| was| were)\b|多少|几[个点年月天]|什么时候|哪[里儿个年]|谁",
        ),
    )
)
