"""State below the tree, on letters: what outlives eviction and a restart, what is never read, and what a load costs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from smartcache.layers.prefixes import NoPrefixCache, PrefixCache
from smartcache.storage.segments import Array, Packed
from smartcache.storage.tiers import TierUsage


@dataclass(frozen=True, slots=True)
class Letters:
    """A state whose step n is letter n, three bytes each; not exact is what went through a compressed tier."""

    text: str
    exact: bool = True

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, steps: slice) -> Letters:
        return replace(self, text=self.text[steps])

    @property
    def nbytes(self) -> int:
        return 3 * len(self.text)


class LetterFiles:
    """A codec; compressing is to write capitals."""

    def pack(self, segment: Letters, compress: str | None) -> Packed:
        text = segment.text.upper() if compress else segment.text
        content = Array("U8", (len(text),), text.encode())
        return Packed({"letters": content}, {"compress": compress or ""}, 32.0 if compress else 0.0)

    def unpack(self, packed: Packed) -> Letters:
        if set(packed.arrays) != {"letters"}:
            raise ValueError("no letters")
        return Letters(bytes(packed.arrays["letters"].content).decode(), exact=not packed.label["compress"])

    def join(self, segments: Sequence[Letters]) -> Letters:
        return Letters("".join(s.text for s in segments), all(s.exact for s in segments))


def tokens_of(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def cache(path: Path | None, *texts: str, max_bytes: int = 3_000, **options: Any) -> PrefixCache[Letters]:
    """A cache with blocks of four letters, that has stored `texts` and written them."""
    options = {"block_tokens": 4, "disk_path": path} | options
    prefixes: PrefixCache[Letters] = PrefixCache(max_bytes, **options)
    for name in ("model", "other"):
        prefixes.use_codec(name, LetterFiles())
    for text in texts:
        store(prefixes, text)
        prefixes.flush()
    return prefixes


def store(prefixes: PrefixCache[Letters], text: str, name: str = "model") -> int:
    return prefixes.store(name, tokens_of(text), Letters(text))


def known(prefixes: PrefixCache[Letters], text: str, name: str = "model") -> str:
    with prefixes.match(name, tokens_of(text)) as match:
        return "".join(segment.text for segment in match.segments)[: match.length]


def files(path: Path) -> list[Path]:
    """The blocks on disk, from the shortest chain on."""
    return sorted(path.glob("*/*.safetensors"), key=lambda file: file.stat().st_mtime_ns, reverse=True)


def names(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def disk_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# -- what outlives what


@pytest.mark.parametrize("length", range(1, 11))
def test_every_length_outlives_a_restart_to_the_token(tmp_path: Path, length: int) -> None:
    text = "abcdefghij"[:length]
    cache(tmp_path, text).close()
    assert known(cache(tmp_path), text + ".") == text


@pytest.mark.parametrize(
    ("prompt", "found"), [("abcdefxyz", "abcdef"), ("abxy", "ab"), ("xbcdef", ""), ("abcd", "abc")]
)
def test_what_comes_from_disk_is_the_longest_known_prefix(tmp_path: Path, prompt: str, found: str) -> None:
    cache(tmp_path, "abcdefghij", "abcdefgzzz").close()
    assert known(cache(tmp_path), prompt) == found


def test_eviction_from_the_tree_loses_nothing(tmp_path: Path) -> None:
    prefixes = cache(tmp_path, "abcdef", "uvwxyz", max_bytes=18)
    assert prefixes.bytes() == 18
    assert [known(prefixes, text + ".") for text in ("abcdef", "uvwxyz", "abcdef")] == ["abcdef", "uvwxyz", "abcdef"]


def test_without_a_disk_it_is_lost() -> None:
    prefixes = cache(None, "abcdef", "uvwxyz", max_bytes=18)
    assert [known(prefixes, text + ".") for text in ("abcdef", "uvwxyz")] == ["", "uvwxyz"]


def test_the_memory_tier_holds_what_the_tree_evicts() -> None:
    prefixes = cache(None, "abcdef", "uvwxyz", max_bytes=18, ram_max_bytes=100)
    assert [known(prefixes, text + ".") for text in ("abcdef", "uvwxyz")] == ["abcdef", "uvwxyz"]
    assert prefixes.tiers().ram_bytes == 12


def test_the_memory_tier_keeps_to_its_budget_and_the_last_used(tmp_path: Path) -> None:
    prefixes = cache(None, "abcdefgh", "uvwxyz", max_bytes=0, ram_max_bytes=10)
    assert prefixes.tiers().ram_bytes == 10
    assert [known(prefixes, text + ".") for text in ("abcdefgh", "uvwxyz")] == ["abcd", "uvwxyz"]


def test_what_the_disk_gave_is_in_memory_next_time(tmp_path: Path) -> None:
    cache(tmp_path, "abcdef").close()
    prefixes = cache(tmp_path, max_bytes=0, ram_max_bytes=100)
    assert known(prefixes, "abcdef.") == "abcdef"
    for file in files(tmp_path):
        file.unlink()
    assert known(prefixes, "abcdef.") == "abcdef"


def test_what_was_loaded_is_in_the_tree_within_its_budget(tmp_path: Path) -> None:
    cache(tmp_path, "abcdef").close()
    prefixes = cache(tmp_path, max_bytes=18)
    known(prefixes, "abcdef.")
    assert (prefixes.bytes(), len(prefixes)) == (18, 6)


def test_what_finds_no_room_in_the_tree_is_handed_out_all_the_same(tmp_path: Path) -> None:
    cache(tmp_path, "abcdef").close()
    prefixes = cache(tmp_path, max_bytes=9)
    assert (known(prefixes, "abcdef."), prefixes.bytes()) == ("abcdef", 0)


def test_a_continuation_is_loaded_after_what_the_tree_knows(tmp_path: Path) -> None:
    cache(tmp_path, "abcdefghij").close()
    prefixes = cache(tmp_path, max_bytes=27)
    store(prefixes, "abcdefxy")
    assert known(prefixes, "abcdefghij.") == "abcdefghij"


def test_a_longer_sequence_takes_the_place_of_its_shorter_end(tmp_path: Path) -> None:
    cache(tmp_path, "abcdef", "abcdefg", "abcdefghij").close()
    assert len(files(tmp_path)) == 3
    assert known(cache(tmp_path), "abcdefghij.") == "abcdefghij"


def test_a_block_that_went_missing_is_written_again_at_the_next_use(tmp_path: Path) -> None:
    prefixes = cache(tmp_path, "abcdefgh")
    prefixes._tiers._shelves[0].clear()
    known(prefixes, "abcdefgh.")
    prefixes.close()
    assert known(cache(tmp_path), "abcdefgh.") == "abcdefgh"


def test_what_is_stored_after_closing_stays_in_memory(tmp_path: Path) -> None:
    with cache(tmp_path) as prefixes:
        pass
    store(prefixes, "abcd")
    assert (known(prefixes, "abcd."), names(tmp_path)) == ("abcd", [])


def test_state_without_a_codec_stays_in_memory(tmp_path: Path) -> None:
    with cache(tmp_path) as prefixes:
        store(prefixes, "abcd", "unknown")
    assert (known(prefixes, "abcd.", "unknown"), names(tmp_path)) == ("abcd", [])


def test_a_scope_of_a_known_fingerprint_has_its_codec(tmp_path: Path) -> None:
    with cache(tmp_path) as prefixes:
        store(prefixes, "abcd", "model/acme")
    again = cache(tmp_path)
    assert [known(again, "abcd.", name) for name in ("model/acme", "model", "modelacme")] == ["abcd", "", ""]


def test_fingerprints_never_meet_on_disk(tmp_path: Path) -> None:
    cache(tmp_path, "abcd").close()
    again = cache(tmp_path)
    assert [known(again, "abcd.", name) for name in ("other", "model")] == ["", "abcd"]


# -- budgets


def test_the_least_recently_used_files_go_first_also_after_a_restart(tmp_path: Path) -> None:
    cache(tmp_path, "abcd", "efgh", "ijkl").close()
    room = disk_bytes(tmp_path)
    prefixes = cache(tmp_path, disk_max_bytes=room)
    known(prefixes, "abcd.")
    prefixes.close()
    prefixes = cache(tmp_path, "mnop", disk_max_bytes=room)
    prefixes.close()
    again = cache(tmp_path, disk_max_bytes=room)
    assert [known(again, text + ".") for text in ("abcd", "efgh", "ijkl", "mnop")] == ["abcd", "", "ijkl", "mnop"]


def test_the_end_of_a_sequence_goes_before_its_start(tmp_path: Path) -> None:
    cache(tmp_path, "abcdefghijkl").close()
    prefixes = cache(tmp_path, disk_max_bytes=disk_bytes(tmp_path) - 1)
    assert known(prefixes, "abcdefghijkl.") == "abcdefgh"


def test_disk_bytes_are_those_of_the_files(tmp_path: Path) -> None:
    prefixes = cache(tmp_path, "abcdefghij", "abcdefxy", "uvw")
    assert prefixes.tiers().disk_bytes == disk_bytes(tmp_path) > 0
    prefixes.close()
    assert cache(tmp_path).tiers().disk_bytes == disk_bytes(tmp_path)


def test_a_budget_of_nothing_writes_nothing(tmp_path: Path) -> None:
    cache(tmp_path, "abcdef", disk_max_bytes=0).close()
    assert names(tmp_path) == []


# -- what is never read


def cut(file: Path, at: float) -> None:
    file.write_bytes(file.read_bytes()[: int(at * file.stat().st_size)])


def flip(file: Path, at: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(at * (len(content) - 1))] ^= 0x10
    file.write_bytes(content)


def be_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{f"cut at {part}": (lambda file, part=part: cut(file, part)) for part in (0, 0.01, 0.03, 0.5, 0.99)},
    **{f"a bit at {part}": (lambda file, part=part: flip(file, part)) for part in (0, 0.01, 0.1, 0.4, 0.7, 1)},
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"x"),
    "foreign": lambda file: file.write_bytes(b"SQLite format 3\0" * 20),
    "another version": lambda file: file.write_bytes(file.read_bytes().replace(b"smartcache-kv-1", b"smartcache-kv-0")),
    "a header of a header": lambda file: file.write_bytes((10**5).to_bytes(8, "little") + b"[" * 10**5),
    "a folder": be_a_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_set_aside_and_what_is_before_it_is_used(tmp_path: Path, damage: str) -> None:
    cache(tmp_path, "abcdefghijkl").close()
    DAMAGES[damage](files(tmp_path)[1])
    prefixes = cache(tmp_path)
    assert known(prefixes, "abcdefghijkl.") == "abcd"
    assert dict(prefixes.tiers().reasons) == {"set aside: damaged or foreign": 1}
    assert len(list(tmp_path.glob("*/*.aside"))) == 1


def test_a_file_in_the_place_of_another_is_set_aside(tmp_path: Path) -> None:
    cache(tmp_path, "abcd").close()
    cache(tmp_path, "wxyz").close()
    first, second = files(tmp_path)
    second.write_bytes(first.read_bytes())
    prefixes = cache(tmp_path)
    assert sorted(known(prefixes, text) for text in ("abcd.", "wxyz.")) in (["", "abcd"], ["", "wxyz"])
    assert dict(prefixes.tiers().reasons) == {"set aside: damaged or foreign": 1}


def test_a_block_that_is_no_state_of_the_model_is_set_aside(tmp_path: Path) -> None:
    class OtherFiles(LetterFiles):
        def pack(self, segment: Letters, compress: str | None) -> Packed:
            return Packed({"numbers": Array("U8", (1,), b"1")})

    with cache(tmp_path) as prefixes:
        prefixes.use_codec("model", OtherFiles())
        store(prefixes, "abcd")
    prefixes = cache(tmp_path)
    assert known(prefixes, "abcd.") == ""
    assert dict(prefixes.tiers().reasons) == {"set aside: no state of this model": 1}


def test_a_file_that_vanishes_is_a_miss(tmp_path: Path) -> None:
    cache(tmp_path, "abcdefgh").close()
    prefixes = cache(tmp_path)
    files(tmp_path)[1].unlink()
    assert (known(prefixes, "abcdefgh."), dict(prefixes.tiers().reasons)) == ("abcd", {"vanished from disk": 1})


def test_a_disk_that_cannot_be_written_is_counted_and_nobodys_trouble(tmp_path: Path) -> None:
    prefixes = cache(tmp_path / "kv")
    os.rmdir(tmp_path / "kv")
    (tmp_path / "kv").write_text("in the way")
    store(prefixes, "abcd")
    prefixes.close()
    assert (known(prefixes, "abcd."), dict(prefixes.tiers().reasons)) == ("abcd", {"could not be written": 1})


def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kv").write_text("in the way")
    with pytest.raises(OSError, match="kv"):
        cache(tmp_path / "kv")


@pytest.mark.parametrize("options", [{"compress": "zip"}, {"ram_max_bytes": -1}, {"disk_max_bytes": -1}])
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        PrefixCache(**options)


# -- privacy


def test_what_is_on_disk_is_its_owners_alone(tmp_path: Path) -> None:
    cache(tmp_path / "kv", "abcdef").close()
    found = [tmp_path / "kv", *(tmp_path / "kv").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o700, 0o600}


def test_forget_deletes_the_files_and_keeps_what_others_share(tmp_path: Path) -> None:
    prefixes = cache(tmp_path, "abcdefgh", "abcdexyz", "abcdexyzuvw")
    prefixes.forget("model", tokens_of("abcdex"))
    prefixes.close()
    again = cache(tmp_path)
    assert [known(again, text + ".") for text in ("abcdexyzuvw", "abcdefgh")] == ["abcde", "abcdefgh"]
    assert len(files(tmp_path)) == 2


def test_forget_deletes_the_whole_way_to_a_sequence_that_shares_nothing(tmp_path: Path) -> None:
    cache(tmp_path, "abcdefghij", "wxyz").close()
    prefixes = cache(tmp_path)
    prefixes.forget("model", tokens_of("abcdefgh"))
    assert (known(prefixes, "wxyz."), len(files(tmp_path))) == ("wxyz", 1)


def test_forget_without_tokens_deletes_one_fingerprint(tmp_path: Path) -> None:
    prefixes = cache(tmp_path, "abcd")
    store(prefixes, "abcd", "other")
    prefixes.flush()
    prefixes.forget("model")
    prefixes.close()
    again = cache(tmp_path)
    assert [known(again, "abcd.", name) for name in ("model", "other")] == ["", "abcd"]


def test_clear_deletes_everything_also_what_was_set_aside(tmp_path: Path) -> None:
    cache(tmp_path, "abcdefgh").close()
    cut(files(tmp_path)[1], 0.5)
    prefixes = cache(tmp_path)
    known(prefixes, "abcdefgh.")
    prefixes.clear()
    assert (names(tmp_path), prefixes.tiers().disk_bytes) == ([], 0)


class SlowFiles(LetterFiles):
    """Writing waits until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def pack(self, segment: Letters, compress: str | None) -> Packed:
        self.begun.set()
        self.go.wait(10)
        return super().pack(segment, compress)


FORGETTING: dict[str, Callable[[PrefixCache[Letters]], object]] = {
    "all": lambda prefixes: prefixes.clear(),
    "a fingerprint": lambda prefixes: prefixes.forget("model"),
    "what begins so": lambda prefixes: prefixes.forget("model", tokens_of("a")),
}


@pytest.mark.parametrize("forget", FORGETTING.values(), ids=FORGETTING)
def test_nothing_that_was_queued_reappears_after_it_was_forgotten(
    tmp_path: Path, forget: Callable[[PrefixCache[Letters]], object]
) -> None:
    prefixes, slow = cache(tmp_path), SlowFiles()
    prefixes.use_codec("model", slow)
    for text in ("abcdefgh", "axyz", "abcdxyz"):
        store(prefixes, text)
    assert slow.begun.wait(10)
    forgetting = threading.Thread(target=forget, args=(prefixes,))
    forgetting.start()
    slow.go.set()
    forgetting.join()
    prefixes.close()
    assert (names(tmp_path), known(prefixes, "abcdefgh.")) == ([], "")


def test_a_file_that_vanishes_while_a_folder_is_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(tmp_path, "abcdefgh", "abcdxyzw", "qrst").close()
    whole, scan = disk_bytes(tmp_path), os.scandir

    class Vanishing:
        """The entries of a folder, of which the first is gone once it is looked at."""

        def __init__(self, path: Any) -> None:
            self.entries = list(scan(path))

        def __enter__(self) -> Any:
            for entry in self.entries[:1]:
                if entry.is_file():
                    os.unlink(entry.path)
            return iter(self.entries)

        def __exit__(self, *_: object) -> None: ...

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", Vanishing)
        prefixes = cache(tmp_path)
    assert 0 < disk_bytes(tmp_path) < whole
    assert prefixes.tiers().disk_bytes == disk_bytes(tmp_path)


def test_forgetting_reaches_what_lost_the_block_before_it(tmp_path: Path) -> None:
    """Of two processes one may evict what the other goes on to write after."""
    mine = cache(tmp_path, "abcdefghijkl")
    second = files(tmp_path)[1]
    second.unlink()
    mine.forget("model", tokens_of("abc"))
    assert names(tmp_path) == []


def test_what_another_process_deleted_is_written_again_before_what_follows_it(tmp_path: Path) -> None:
    mine = cache(tmp_path, "abcd")
    cache(tmp_path).clear()
    store(mine, "abcdefgh")
    mine.flush()
    assert known(cache(tmp_path), "abcdefgh.") == "abcdefgh"


def test_what_is_part_of_a_longer_block_that_was_deleted_is_written(tmp_path: Path) -> None:
    mine = cache(tmp_path, "abcd")
    cache(tmp_path).clear()
    assert known(mine, "ab.") == "ab"
    mine.flush()
    assert known(cache(tmp_path), "ab.") == "ab"


def test_a_folder_that_cannot_be_listed_is_taken_to_be_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no file descriptor left, say: what is to be forgotten is deleted all the same."""
    prefixes = cache(tmp_path, "abcdefgh", "zzzz")

    def full(*_: Any) -> Any:
        raise OSError("too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", full)
        prefixes.forget("model", tokens_of("ab"))
    assert len(files(tmp_path)) == 1
    assert (known(prefixes, "abcdefgh."), known(cache(tmp_path), "zzzz.")) == ("", "zzzz")


def test_forgetting_one_text_does_not_stop_the_writing_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefixes, replace_file = cache(tmp_path), os.replace
    begun, go = threading.Event(), threading.Event()

    def slow(*paths: Any) -> None:
        begun.set()
        go.wait(10)
        replace_file(*paths)

    monkeypatch.setattr(os, "replace", slow)
    store(prefixes, "abcd")
    assert begun.wait(10)
    prefixes.forget("model", tokens_of("zzz"))
    go.set()
    prefixes.close()
    assert (known(cache(tmp_path), "abcd."), dict(prefixes.tiers().reasons)) == ("abcd", {})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_bytes": "kv"}, "max_bytes is 'kv': it must be a number of bytes"),
        ({"max_bytes": float("nan")}, "max_bytes is nan: it must be 0 or more"),
        ({"disk_path": "", "max_bytes": 9}, "disk_path is empty"),
        ({"disk_path": __file__}, "disk_path is the file .*: it must be a folder"),
        ({"disk_path": "kv", "disk_max_bytes": "20GB"}, "disk_max_bytes is '20GB': it must be a number of bytes"),
        ({"ram_max_bytes": -1}, "ram_max_bytes is -1: it must be 0 or more"),
        ({"compress": "int8"}, "give a disk_path or ram_max_bytes"),
        ({"disk_path": "kv", "block_tokens": 1.5}, "block_tokens is 1.5: it must be a whole number"),
    ],
)
def test_what_cannot_be_kept_so_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError, NotADirectoryError), match=told):
        PrefixCache(**options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_may_be_named_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    cache(Path("~/kv"), "abcd").close()
    assert known(cache(tmp_path / "kv"), "abcd.") == "abcd"


@pytest.mark.parametrize("name", ["notes.tmp", "0" * 32 + "-1-2.tmp"])
def test_only_drafts_of_ours_are_deleted(tmp_path: Path, name: str) -> None:
    cache(tmp_path, "abcd").close()
    draft = files(tmp_path)[0].with_name(name)
    draft.write_text("mine")
    os.utime(draft, (0, 0))
    prefixes = cache(tmp_path)
    prefixes.forget("model")
    prefixes.clear()
    assert draft.exists() == (name == "notes.tmp")


@pytest.mark.parametrize("text", ["", "abcd", "zzzz"])
def test_forgetting_reaches_what_was_kept_in_another_form(tmp_path: Path, text: str) -> None:
    cache(tmp_path, "abcdefgh", compress="int8").close()
    cache(tmp_path, "abcdefgh", block_tokens=2).close()
    prefixes = cache(tmp_path)
    store(prefixes, "abcdefgh", "other")
    prefixes.flush()
    assert len(names(tmp_path)) == 2 + 4 + 2
    prefixes.forget("model", tokens_of(text))
    assert len(names(tmp_path)) == 2
    assert (known(cache(tmp_path), "abcdefgh.", "other"), known(cache(tmp_path), "abcdefgh.")) == ("abcdefgh", "")
    for form in ({"compress": "int8"}, {"block_tokens": 2}):
        assert known(cache(tmp_path, **form), "abcdefgh.") == ""


def test_what_is_fetched_while_it_is_forgotten_does_not_come_back(tmp_path: Path) -> None:
    cache(tmp_path, "abcd").close()
    prefixes = cache(tmp_path, ram_max_bytes=100)
    forgetting = threading.Thread(target=prefixes.forget, args=("model",))

    class ForgetfulFiles(LetterFiles):
        def unpack(self, packed: Packed) -> Letters:
            forgetting.start()
            forgetting.join(0.2)  # it has to wait for what is being fetched
            return super().unpack(packed)

    prefixes.use_codec("model", ForgetfulFiles())
    assert known(prefixes, "abcd.") == "abcd"
    forgetting.join(10)
    assert (len(prefixes), prefixes.tiers().ram_bytes, names(tmp_path)) == (0, 0, [])


def test_host_memory_takes_nothing_over_from_disk_without_what_it_continues(tmp_path: Path) -> None:
    """Or forgetting the beginning would not find it there."""
    cache(tmp_path, "abcdefgh", "wxyz").close()
    prefixes = cache(tmp_path, ram_max_bytes=6)  # a block and a half
    assert (known(prefixes, "abcd."), prefixes.tiers().ram_bytes) == ("abcd", 4)
    assert (known(prefixes, "wxyz."), prefixes.tiers().ram_bytes) == ("wxyz", 4)
    assert known(prefixes, "abcdefgh.") == "abcdefgh"  # the tree still has the first half
    for beginning in ("ab", "w"):
        prefixes.forget("model", tokens_of(beginning))
    assert (prefixes.tiers().ram_bytes, names(tmp_path)) == (0, [])


# -- the writer


def test_storing_never_waits_and_what_finds_no_place_in_the_queue_is_counted(tmp_path: Path) -> None:
    prefixes, slow = cache(tmp_path, max_bytes=160), SlowFiles()  # 40 bytes may wait, with those at work
    prefixes.use_codec("model", slow)
    store(prefixes, "abcd")
    assert slow.begun.wait(10)
    for text in ("efgh", "ijkl", "mnop"):
        store(prefixes, text)
    assert dict(prefixes.tiers().reasons) == {"not written: too much is waiting": 1}
    assert prefixes.tiers().waiting == 3
    slow.go.set()
    prefixes.close()
    again = cache(tmp_path)
    assert [known(again, text + ".") for text in ("abcd", "efgh", "ijkl", "mnop")] == ["abcd", "efgh", "ijkl", ""]


def test_a_sequence_that_grew_while_it_waited_is_written_once(tmp_path: Path) -> None:
    prefixes, slow = cache(tmp_path), SlowFiles()
    prefixes.use_codec("model", slow)
    store(prefixes, "wxyz")
    assert slow.begun.wait(10)
    for end in range(5, 9):
        store(prefixes, "abcdefgh"[:end])
    assert prefixes.tiers().waiting == 2
    slow.go.set()
    prefixes.close()
    assert known(cache(tmp_path), "abcdefgh.") == "abcdefgh"


PROCESS = """
import os, sys
sys.path[:0] = sys.argv[1:3]
from test_tiers import Path, cache, store
prefixes = cache(Path(sys.argv[3]))
for end in range(1, 60):
    store(prefixes, sys.argv[5] * end)
if sys.argv[4] == "flushed":
    prefixes.flush()
if sys.argv[4] != "ended":
    os._exit(9)
"""


def test_processes_that_end_or_are_killed_leave_what_was_written_and_nothing_broken(tmp_path: Path) -> None:
    ends = {"a": "ended", "b": "flushed", "c": "killed"}
    here = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    command = [sys.executable, "-c", PROCESS, *here, str(tmp_path)]
    for one in [subprocess.Popen([*command, end, letter]) for letter, end in ends.items()]:
        one.wait(60)
    again = cache(tmp_path)
    lengths = {end: len(known(again, letter * 59 + ".")) for letter, end in ends.items()}
    assert (lengths["ended"], lengths["flushed"]) == (59, 59)
    assert 0 <= lengths["killed"] < 60
    assert again.tiers().reasons == {}


def test_two_caches_on_one_folder_find_what_the_other_wrote(tmp_path: Path) -> None:
    one, other = cache(tmp_path), cache(tmp_path)
    store(one, "abcdefgh")
    one.flush()
    assert known(other, "abcdefgh.") == "abcdefgh"
    one.clear()
    assert known(cache(tmp_path), "abcdefgh.") == ""


def test_threads_read_only_the_state_of_their_own_tokens(tmp_path: Path) -> None:
    caches = [cache(tmp_path, max_bytes=60, ram_max_bytes=30, disk_max_bytes=4_000) for _ in range(2)]
    wrong: list[str] = []

    def converse(number: int) -> None:
        for step in range(40):
            prefixes, text = caches[step % 2], "ab" + chr(100 + (number + step) % 7) * 6 + str(step % 5)
            store(prefixes, text)
            if step % 9 == 0:
                prefixes.forget("model", tokens_of(text[:5]))
            if not text.startswith(known(prefixes, text)):
                wrong.append(text)

    threads = [threading.Thread(target=converse, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for prefixes in caches:
        prefixes.close()
        # a file that the other cache deletes while this one writes or reads it
        expected = {"vanished from disk", "not written: too much is waiting", "could not be written"}
        assert set(prefixes.tiers().reasons) <= expected
    assert wrong == []


# -- when a load pays


class Clock:
    """Each look at it is `step` seconds after the last."""

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize(("load_seconds", "found"), [(0.5, "efgh"), (10.0, "")])
def test_a_load_that_is_slower_than_computing_is_skipped(tmp_path: Path, load_seconds: float, found: str) -> None:
    cache(tmp_path, "abcd", "efgh").close()
    prefixes = cache(tmp_path, clock=Clock(load_seconds))
    prefixes.computed("model", 4, 4.0)
    assert known(prefixes, "abcd.") == "abcd", "the first load is a try"
    assert known(prefixes, "efgh.") == found
    assert prefixes.tiers().reasons.get("not loaded: computing is sooner", 0) == (not found)


def test_a_slow_load_is_tried_again_after_some_misses(tmp_path: Path) -> None:
    cache(tmp_path, "abcd", "efgh").close()
    prefixes = cache(tmp_path, clock=Clock(6.0))
    prefixes.computed("model", 4, 4.0)
    known(prefixes, "abcd.")
    assert [known(prefixes, "efgh.") for _ in range(4)] == ["", "", "efgh", "efgh"]


def test_without_a_measurement_of_computing_it_is_loaded(tmp_path: Path) -> None:
    cache(tmp_path, "abcd", "efgh").close()
    prefixes = cache(tmp_path, clock=Clock(1e6))
    prefixes.computed("model", 3, 1e-6)  # less than a block says nothing of one
    assert [known(prefixes, text) for text in ("abcd.", "efgh.")] == ["abcd", "efgh"]


def test_a_last_block_that_gives_too_little_is_left(tmp_path: Path) -> None:
    cache(tmp_path, "abcd", "efghijkl").close()
    prefixes = cache(tmp_path, clock=Clock(3.0))
    prefixes.computed("model", 4, 4.0)
    known(prefixes, "abcd.")
    assert known(prefixes, "efghi.") == "efgh"


# -- compressed


def test_compressed_state_says_that_it_is_not_exact_any_more(tmp_path: Path) -> None:
    prefixes = cache(tmp_path, "abcdef", compress="int8")
    with prefixes.match("model", tokens_of("abcdef.")) as match:
        assert match.exact
    prefixes.close()
    again = cache(tmp_path, compress="int8")
    with again.match("model", tokens_of("abcdef.")) as match:
        assert ([s.text for s in match.segments], match.exact) == (["ABCDEF"], False)
    assert again.tiers().max_error == 32.0


def test_exact_and_compressed_state_never_meet(tmp_path: Path) -> None:
    cache(tmp_path, "abcd", compress="int8").close()
    assert known(cache(tmp_path), "abcd.") == ""


def test_the_twin_without_memory_has_no_tiers_either() -> None:
    with NoPrefixCache() as prefixes:
        prefixes.use_codec("model", LetterFiles())
        prefixes.computed("model", 10, 1.0)
        prefixes.flush()
    assert prefixes.tiers() == TierUsage()


# -- all of it, beside a dict


class AgainstADict(RuleBasedStateMachine):
    """Any sequence of calls, beside a dict of all that was ever stored and not forgotten: with room enough on disk the
    longest prefix is found whatever the tree evicts, across restarts, and what was forgotten never."""

    texts = st.text("ab", min_size=1, max_size=11)
    names = st.sampled_from(["model", "other"])

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(self.folder)
        for file in self.path.rglob("*.*"):
            file.unlink()
        self.stored: dict[tuple[str, str], None] = {}
        self.open()

    folder = ""
    options: dict[str, Any]

    def open(self) -> None:
        self.prefixes = cache(self.path, max_bytes=30, **self.options)

    @rule(text=texts, name=names)
    def store(self, text: str, name: str) -> None:
        store(self.prefixes, text, name)
        self.prefixes.flush()
        self.stored |= {(name, text): None}

    @rule(text=texts, name=names)
    def match(self, text: str, name: str) -> None:
        beginnings = {text[:end] for end in range(len(text))}
        expected = max((b for b in beginnings if self.is_stored(name, b)), key=len)
        assert known(self.prefixes, text, name) == expected
        assert self.prefixes.bytes() <= 30

    def is_stored(self, name: str, beginning: str) -> bool:
        return not beginning or any(n == name and text.startswith(beginning) for n, text in self.stored)

    @rule(text=texts, name=names)
    def forget(self, text: str, name: str) -> None:
        self.prefixes.forget(name, tokens_of(text))
        self.restart()
        assert not known(self.prefixes, text + ".", name).startswith(text)
        # what leads to a forgotten sequence may be gone with it; what leads elsewhere is not
        for other, sequence in self.stored:
            if other != name or not (sequence.startswith(text) or text.startswith(sequence)):
                assert known(self.prefixes, sequence + ".", other) == sequence
        self.prefixes.forget(name)
        self.stored = {key: None for key in self.stored if key[0] != name}

    @rule()
    def clear(self) -> None:
        self.prefixes.clear()
        self.stored = {}

    @rule()
    def restart(self) -> None:
        self.prefixes.close()
        self.open()

    def teardown(self) -> None:
        self.prefixes.close()
        assert self.prefixes.tiers().reasons == {}
        assert self.prefixes.tiers().disk_bytes == disk_bytes(self.path)


@pytest.mark.parametrize("ram_max_bytes", [0, 9])
def test_any_sequence_of_calls_beside_a_dict(tmp_path: Path, ram_max_bytes: int) -> None:
    members = {"folder": str(tmp_path), "options": {"ram_max_bytes": ram_max_bytes}}
    machine = type("AgainstADictHere", (AgainstADict,), members)
    run_state_machine_as_test(machine, settings=settings(max_examples=60, stateful_step_count=25, deadline=None))


def test_what_others_keep_in_a_folder_named_like_ours_is_let_be(tmp_path: Path) -> None:
    theirs = tmp_path / ("a" * 32) / "thesis.txt"
    theirs.parent.mkdir()
    theirs.write_text("years of work")
    with cache(tmp_path, "abcdefgh", disk_max_bytes=0) as kept:
        kept.clear()
    with cache(tmp_path, "abcdefgh") as kept:
        kept.flush()
        kept.clear()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [theirs]
