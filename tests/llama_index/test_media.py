"""B17: a picture counts as what it shows, however it is given; a path is only a place."""

from __future__ import annotations

from io import BytesIO

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    CitableBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
)
from llama_index.core.schema import QueryBundle

from llama_index_smartcache import SmartCacheLLM

CAT, DOG = b"\x89PNG\r\n\x1a\n a cat", b"\x89PNG\r\n\x1a\n a dog"


def by_path(tmp_path, content):
    (tmp_path / "picture.png").write_bytes(content)
    return ImageBlock(path=tmp_path / "picture.png")


def cited(tmp_path, content):
    (tmp_path / "cited.txt").write_bytes(content)
    return CitableBlock(title="t", source="s", content=[DocumentBlock(path=tmp_path / "cited.txt", title="t")])


GIVEN = {
    "path": by_path,
    "bytes": lambda _, content: ImageBlock(image=content),
    "open file": lambda _, content: ImageBlock(image=BytesIO(content)),
    "inside another block": cited,
}


def ask(llm, block):
    message = ChatMessage(role="user", blocks=[TextBlock(text="What is this?"), block])
    return llm.chat([message]).additional_kwargs["smartcache"]["served_by"]


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_b17_another_picture_misses_and_the_same_one_hits(llm, cache, tmp_path, given):
    cached = SmartCacheLLM(llm, cache)
    served = [ask(cached, given(tmp_path, content)) for content in (CAT, DOG, CAT)]
    assert served == ["model", "model", "exact"]


def test_b17_an_open_file_stays_where_it_was_read_to(llm, cache):
    file = BytesIO(CAT)
    ask(SmartCacheLLM(llm, cache), ImageBlock(image=file))
    assert file.tell() == 0


def test_b17_a_picture_that_cannot_be_read_is_passed_by_and_counted(llm, cache):
    file = BytesIO(CAT)
    block = ImageBlock(image=file)
    file.close()
    assert ask(SmartCacheLLM(llm, cache), block) == "model"
    assert cache.stats().bypasses == {"unstable_key": 1}


def test_b17_a_question_with_another_picture_misses_and_with_the_same_one_hits(index, engine_over, tmp_path):
    engine, path = engine_over(index), tmp_path / "picture.png"
    served = []
    for content in (CAT, DOG, CAT):
        path.write_bytes(content)
        response = engine.query(QueryBundle("How long may this be sent back?", image_path=str(path)))
        served.append(response.metadata["smartcache"]["served_by"])
    assert served == ["model", "model", "exact"]
