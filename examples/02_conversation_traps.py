"""The same words in another dialogue are another question; the same question in other words is not."""

from collections.abc import Sequence

from smartcache import Answer, Chunk, Request, SmartCache, Turn

AGES = {"Ann": "Ann is 41.", "Bo": "Bo is 29."}


def model(request: Request, chunks: Sequence[Chunk]) -> str:
    """Answers about whoever the conversation named last."""
    spoken = " ".join(turn.text for turn in request.turns)
    return AGES[max(AGES, key=spoken.rfind)]


def ask(cache: SmartCache, *conversation: str) -> Answer:
    """The conversation alternates between the user and the assistant; its last line is the question."""
    roles = ["user", "assistant"] * len(conversation)
    turns = [Turn(role, text) for role, text in zip(roles, conversation, strict=False)]
    answer = cache.answer(Request(turns), model)
    print(f"{answer.served_by:9} {' / '.join(conversation)}  ->  {answer.text}")
    return answer


# Needs the default embedder: pip install 'smartcache-llm[local]', and a sentence model (models.txt).
with SmartCache.open() as cache:
    first = ask(cache, "Who runs Acme?", "Ann runs Acme.", "How old is she?")
    other = ask(cache, "Who runs Birk?", "Bo runs Birk.", "How old is she?")
    reworded = ask(cache, "Who is running Acme?", "Ann runs Acme.", "How old is she?")
    standing = ask(cache, "Hello!", "Hi, how can I help?", "How old is Ann, who runs Acme?")

    assert first.text == reworded.text == standing.text == "Ann is 41."
    assert other.text == "Bo is 29.", "same last message, another person"
    assert other.served_by == "model"
    assert reworded.served_by == "semantic", "same question, reached by other words"
