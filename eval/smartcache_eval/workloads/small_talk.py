"""What people say that changes nothing: words to put around a question that must not turn it into another one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

ENGLISH = (
    ("Sorry, one moment please.", "Of course, take your time."),
    ("Thanks, you are quick.", "You are welcome."),
    ("I had to answer the door, I am back now.", "No problem."),
    ("This is going well so far.", "I am glad to hear that."),
    ("Can you hear me?", "Yes, I am here."),
    ("It has been a long day.", "Then let us finish this soon."),
)
CHINESE = (
    ("不好意思，稍等一下。", "没关系，你慢慢来。"),
    ("谢谢，你回得真快。", "不客气。"),
    ("我刚才去开了个门。", "没事。"),
    ("今天有点累。", "那我们快点聊完。"),
)
ENGLISH_LEAD_INS = ("Okay, thanks. ", "All right. ", "Great, then tell me: ", "Good. One more thing: ")
CHINESE_LEAD_INS = ("好的，谢谢。", "嗯嗯。", "明白了，", "那再问一下，")


def chattier(history: Sequence[str], random: Random, *, chinese: bool = False) -> list[str]:
    """The same history with one or two exchanges of small talk before turns of the user's."""
    said = list(history)
    for exchange in random.sample(CHINESE if chinese else ENGLISH, 2):
        place = 2 * random.randint(0, len(said) // 2) + len(said) % 2
        said[min(place, len(said)) : min(place, len(said))] = exchange
    return said


def led_in(question: str, random: Random, *, chinese: bool = False) -> str:
    return random.choice(CHINESE_LEAD_INS if chinese else ENGLISH_LEAD_INS) + question
