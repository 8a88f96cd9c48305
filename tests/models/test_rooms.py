"""A conversation goes on in the room it was in, without a copy; what is known stays for the prefix cache to say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="needs the `local` extra")
pytest.importorskip("transformers", reason="needs the `local` extra")

from smartcache.layers.prefixes import PrefixCache  # noqa: E402 - after the skip
from smartcache.models.kv import Room  # noqa: E402 - after the skip
from smartcache.models.rooms import MAX_ROOMS, IdleRooms  # noqa: E402 - after the skip

if TYPE_CHECKING:
    from tests.models.conftest import MakeModel

PLENTY = 10**9


def filled(tokens: list[int], capacity: int = 16) -> Room:
    """A room in which the state of a token is the token."""
    room = Room(layer_count=1, capacity=capacity)
    states = torch.tensor(tokens, dtype=torch.float32).reshape(1, 1, -1, 1)
    room.layers[0].update(states, states)
    return room


def held(room: Room | None) -> list[int]:
    assert room is not None
    keys, _ = room.state(room.get_seq_length()).layers[0]
    return [int(token) for token in keys.flatten()]


def idle(*texts: list[int]) -> IdleRooms:
    rooms = IdleRooms()
    for text in texts:
        rooms.give(text, filled(text), PLENTY)
    return rooms


def test_a_conversation_gets_its_own_room_back() -> None:
    rooms = IdleRooms()
    room = filled([1, 2, 3])
    rooms.give([1, 2, 3], room, PLENTY)
    rooms.give([1, 2, 4], filled([1, 2, 4]), PLENTY)
    assert rooms.take([1, 2, 3, 9], known=3) is room
    assert held(room) == [1, 2, 3]


def test_the_longest_of_two_that_go_on_is_taken() -> None:
    assert held(idle([1, 2, 3], [1, 2]).take([1, 2, 3, 4], known=3)) == [1, 2, 3]


def test_a_branch_leaves_the_room_to_the_conversation_it_left() -> None:
    rooms = idle([1, 2, 3])
    assert rooms.take([1, 2, 9], known=2) is None
    assert held(rooms.take([1, 2, 3, 4], known=3)) == [1, 2, 3]


def test_a_room_is_taken_once() -> None:
    rooms = idle([1, 2, 3])
    assert rooms.take([1, 2, 3, 4], known=3)
    assert rooms.take([1, 2, 3, 4], known=3) is None


def test_no_more_is_held_than_is_known() -> None:
    assert held(idle([1, 2, 3]).take([1, 2, 3, 4], known=1)) == [1]


def test_the_oldest_room_serves_again_where_there_are_enough() -> None:
    rooms = idle(*([number, 2, 3] for number in range(MAX_ROOMS)))
    assert held(rooms.take([0, 2, 9], known=2)) == [0, 2]
    assert len(rooms) == MAX_ROOMS - 1


def test_no_more_rooms_stay_than_are_allowed() -> None:
    assert len(idle(*([number] for number in range(MAX_ROOMS + 3)))) == MAX_ROOMS


def test_rooms_stay_within_spare_bytes_but_for_the_last() -> None:
    rooms = idle([1], [2])
    size = rooms.nbytes // 2
    rooms.give([3], filled([3]), 2 * size)
    assert rooms.nbytes == 2 * size
    rooms.give([4], filled([4]), 0)
    assert held(rooms.take([4, 5], known=1)) == [4]
    assert len(rooms) == 0


def test_placing_adds_to_what_a_room_holds() -> None:
    room = filled([1, 2, 3])
    stored = filled([7, 8, 9, 4, 5, 6]).state(6)
    room.place([stored[:2], stored[2:]], 5)
    assert held(room) == [1, 2, 3, 4, 5]


def test_placing_more_than_a_room_has_place_for_lets_it_grow() -> None:
    room = filled([1, 2], capacity=2)
    room.place([filled([1, 2, 3, 4]).state(4)], 4)
    assert held(room) == [1, 2, 3, 4]


def room_of(model: Any) -> int:
    """Where the room of the last generation is in memory."""
    (idle_room,) = model._decoder._idle._rooms
    keys, _ = idle_room.room.state(1).layers[0]
    return int(keys.data_ptr())


def test_the_next_turn_goes_on_in_the_room_of_the_last(local_model: MakeModel) -> None:
    model = local_model()
    first = model.generate("the quick brown", max_new_tokens=20)
    before = room_of(model)
    second = model.generate("the quick brown" + first.text[:19], max_new_tokens=1)
    assert second.cached_tokens == second.prompt_tokens - 1
    assert room_of(model) == before


def test_what_the_cache_forgot_is_computed_though_a_room_holds_it(local_model: MakeModel) -> None:
    prefixes: PrefixCache[Any] = PrefixCache(10**8)
    model = local_model(prefix_cache=prefixes)
    first = model.generate("the quick brown", max_new_tokens=4)
    prefixes.clear()
    assert model.generate("the quick brown" + first.text + "!", max_new_tokens=4).cached_tokens == 0


def test_without_a_cache_no_room_stays(local_model: MakeModel) -> None:
    model = local_model(warm=False)
    model.generate("the quick brown", max_new_tokens=4)
    assert len(model._decoder._idle) == 0
